"""Summaries over tables: SciPy's ranks, U and tau, plain loops, and the variance of resamples."""

import csv
import itertools
from dataclasses import replace

import models
import numpy as np
import pytest
import yaml
from leaderboards import make_run, publish_table, random_scores
from scipy.stats import kendalltau, mannwhitneyu, rankdata, trim_mean

from reporting import __main__ as reporting
from reporting.leaderboard import quantities
from reporting.leaderboard import summary as of_folder
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.publishing import publish
from reporting.leaderboard.summary_text import render
from reporting.records.read import table_runs
from reporting.statistics import summary
from reporting.statistics.samples import sample
from reporting.tables.model import Table
from tests.tiebench.refusals import refused
from tiebench.paired import difference

METHODS = ["a", "b", "c", "d"]


def block(runs, per_query=None, name="t"):
    return summary.Block(name, name.upper(), np.asarray(runs, dtype=float), per_query)


def blocks(*parts, methods=METHODS):
    return summary._blocks(parts, methods)


def random_block(seed, columns=2, runs=5, name="t", methods=4):
    generator = np.random.default_rng(seed)
    middle = generator.random((methods, columns, 1))
    return block(middle + 0.2 * generator.normal(size=(methods, columns, runs)), name=name)


@pytest.fixture(scope="module")
def three():
    """Tables of two, one and three columns, of five runs; every second cell of the last lacks two."""
    last = random_block(3, columns=3, name="z")
    last.runs[::2, ::2, 3:] = np.nan
    return blocks(random_block(1, name="x"), random_block(2, columns=1, name="y"), last)


def test_ranks_are_means_of_scipys_over_columns_then_tables(three):
    found = summary.standing(three)
    by_table = [rankdata(-np.nanmean(of.runs, axis=2), axis=0).mean(axis=1) for of in three]
    np.testing.assert_allclose(found.by_table, by_table)
    np.testing.assert_allclose(found.rank[0], np.mean(by_table, axis=0))
    assert found.order == sorted(range(4), key=lambda place: found.rank[0][place])
    low, high = found.rank[1:]
    assert np.all(low <= found.rank[0] + 1e-9) and np.all(found.rank[0] <= high + 1e-9)


def test_intervals_are_of_resamples_of_which_95_percent_lie_within():
    assert summary.with_interval(np.array(0.0), np.arange(1001.0)).tolist() == [0.0, 25.0, 975.0]


def test_intervals_have_the_draw_of_tables_in_them():
    """Of two tables that disagree, whose runs agree: 1st and 3rd in one of them, 2nd in both together."""
    levels = np.array([0.9, 0.5, 0.1])[:, None, None]
    both = [block(np.repeat(of, 5, axis=2), name=name) for of, name in ((levels, "x"), (levels[::-1], "y"))]
    rank = summary.standing(blocks(*both, methods=["a", "b", "c"])).rank
    assert rank[:, 0].tolist() == rank[:, 2].tolist() == [2.0, 1.0, 3.0] and rank[:, 1].tolist() == [2.0] * 3


def test_other_scores_of_queries_are_other_blocks():
    runs = np.random.default_rng(0).random((2, 1, 5))
    one, two = (blocks(block(runs, np.full((2, 1, 4), value)), methods=["a", "b"]) for value in (0.1, 0.2))
    assert one != two


def test_equal_means_share_a_rank():
    found = summary.standing(blocks(block([[[0.5]], [[0.5]], [[0.1]], [[0.9]]])))
    assert found.rank[0].tolist() == [2.5, 2.5, 4, 1]


def test_iqm_of_equally_many_runs_is_the_trimmed_mean():
    of = random_block(4, columns=4, runs=5)
    means = of.runs.mean(axis=2)
    low, high = means.min(axis=0), means.max(axis=0)
    values = (of.runs - low[:, None]) / (high - low)[:, None]
    expected = [trim_mean(values[place].ravel(), 0.25) for place in range(4)]
    np.testing.assert_allclose(summary.standing(blocks(of)).iqm[0], expected)


def test_iqm_weighs_columns_alike_whatever_their_runs():
    """A run of a column with one counts as much as four of a column with four."""
    few = block([[[0.2, np.nan, np.nan, np.nan]], [[1.0, np.nan, np.nan, np.nan]], [[0.0, *[np.nan] * 3]]])
    many = block([[[0.1, 0.3, 0.2, 0.6]], [[1.0] * 4], [[0.0] * 4]], name="u")
    found = summary.standing(blocks(few, many, methods=["a", "b", "c"])).iqm[0][0]
    values = sorted([(0.2, 4)] + [(value, 1) for value in (0.1, 0.3, 0.2, 0.6)])
    every = [value for value, times in values for _ in range(times)]
    assert found == pytest.approx(trim_mean(every, 0.25))


def test_profile_is_the_share_of_columns_within_tau_of_the_best(three):
    found = summary.standing(three).profile[0]
    for place, (at, tau) in itertools.product(range(4), enumerate(summary.TAUS)):
        shares = []
        for of in three:
            means = np.nanmean(of.runs, axis=2)
            shares.append(np.mean([1 - column[place] / column.max() <= tau + 1e-12 for column in means.T]))
        assert found[place, at] == pytest.approx(np.mean(shares))


def test_methods_without_scores_in_a_column_have_no_rank():
    hole = random_block(5)
    hole.runs[1, 1] = np.nan
    found = summary.standing(blocks(hole, random_block(6)))
    assert found.methods == ("a", "c", "d")
    alone = block(hole.runs.copy())
    alone.runs[[0, 2], 0] = np.nan
    with refused(pattern="fewer than two methods"):
        summary.standing(blocks(alone))


def test_probability_of_improvement_is_u_over_the_number_of_pairs(three):
    last = random_block(4, columns=2, name="w")
    last.runs[0] = np.nan  # a method without scores in one of seven tables
    of_seven = blocks(*three, *(random_block(seed, name=f"{seed}") for seed in (5, 6, 7)), last)
    found = summary.improvement(of_seven)
    for one, other in itertools.permutations(range(4), 2):
        shares = []
        for of in of_seven[: 6 if 0 in (one, other) else 7]:
            runs = [[column[~np.isnan(column)] for column in of.runs[place]] for place in (one, other)]
            shares.append(np.mean([mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(*runs)]))
        assert found.tables[one, other] == len(shares)
        assert found.probability[one, other] == pytest.approx(np.mean(shares))
        signed = [np.dot(np.subtract(shares, 0.5), s) for s in itertools.product([1, -1], repeat=len(shares))]
        assert found.p[one, other] == pytest.approx(np.mean(np.abs(signed) >= abs(signed[0]) - 1e-12))
    assert np.isnan(np.diagonal(found.probability)).all()


def test_a_lone_table_compares_no_pair(three):
    found = summary.improvement(blocks(three[0]))
    assert np.isnan(found.p).all() and np.isnan(found.probability).all()


def test_pairs_in_fewer_than_six_tables_are_not_compared():
    """Tables that agree: six of them have p = 2 / 64, five would have 2 / 32."""
    levels = np.array([0.9, 0.5, 0.1])[:, None, None].repeat(5, axis=2)
    of = [block(levels.copy(), name=str(place)) for place in range(7)]
    for place, method in ((0, 0), (1, 1)):
        of[place].runs[method] = np.nan
    found = summary.improvement(blocks(*of, methods=["a", "b", "c"]))
    assert found.tables[0, 1] == 5 and np.isnan(found.probability[0, 1]) and not found.above[0, 1]
    assert found.tables[0, 2] == 6 and found.p[0, 2] == 2 / 64
    assert found.above[0, 2] and not found.above[2, 0]


def test_agreement_is_kendalls_tau_of_the_means():
    methods = [f"m{place}" for place in range(7)]
    one, other = (random_block(seed, methods=7, name=f"t{seed}") for seed in (8, 9))
    few = random_block(10, methods=7, name="few")
    few.runs[:2] = np.nan
    found = summary.agreement(blocks(one, other, few, methods=methods))
    tau = kendalltau(*(of.runs.mean(axis=(1, 2)) for of in (one, other)))
    assert found == {(0, 1): (tau.statistic, tau.pvalue, 7)}


def test_resamples_of_runs_have_the_variance_of_a_mean():
    """(n - 1) / n of that of n runs, without scores of queries; methods are drawn each alone."""
    of = random_block(11, columns=1, runs=6)
    means = of.resampled(np.random.default_rng(0), 40_000).mean(axis=3)[..., 0]
    expected = of.runs[:, 0].var(axis=1) / 6
    np.testing.assert_allclose(means.var(axis=0), expected, rtol=0.05)
    assert np.abs(np.corrcoef(means.T)[np.triu_indices(4, 1)]).max() < 0.03


def test_resamples_of_queries_move_all_methods_together():
    """The same queries for all: methods with one pattern of hard queries keep their difference."""
    hard = np.random.default_rng(1).random((3, 50))  # of three columns
    per_query = np.stack([hard, hard + 0.1, hard[:, ::-1], np.full((3, 50), 0.5)])
    runs = np.repeat(per_query.mean(axis=2)[..., None], 2, axis=2)
    drawn = block(runs, per_query).resampled(np.random.default_rng(2), 20_000).mean(axis=3)
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 0.1)
    np.testing.assert_allclose(drawn.var(axis=0), per_query.var(axis=2) / 50, rtol=0.05, atol=1e-20)


STYLES = {name: {"title": name.upper(), "family": "listwise"} for name in METHODS}
PLAN = {"tables": {name: {"bits": [8]} for name in "pqrstu"}, "frontiers": ["p"]}
PLAN["sets"] = {"all": {"title": "All", "tables": ["p", "q", "r"]}}


def table_of(protocol):
    table = {"name": f"table_{protocol}", "methods": METHODS, "seeds": [0, 1, 2], "styles": STYLES}
    table["families"] = dict.fromkeys(METHODS, "listwise")
    return table | {"blocks": [{"protocol": protocol, "metric": "ap", "bits": [8]}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Six published tables of four methods with three runs, and a plan."""
    place, generator = tmp_path_factory.mktemp("summary"), np.random.default_rng(3)
    for protocol in PLAN["tables"]:
        for (at, method), seed in itertools.product(enumerate(METHODS), range(3)):
            scores = {"ap": np.clip(generator.random(20) * 0.5 + 0.1 * at, 0, 1)}
            make_run(place, protocol, method, 8, seed, random_scores(generator, 20) | scores)
        publish_table(place, table_of(protocol))
        publish([f"table_{protocol}"], place, place / "leaderboard")
    (place / "leaderboard" / "summary.yaml").write_text(yaml.safe_dump(PLAN))
    return place


@pytest.mark.thorough
def test_the_command_writes_what_the_statistics_say(folder, tmp_path, capsys):
    board = folder / "leaderboard"
    assert reporting.main(["summary", "--folder", str(board), "--results", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    printed = captured.out.split()
    assert "not drawn: table" in captured.err  # of the agreement of orders of four methods
    assert printed[0] == str(tmp_path / "summary.csv")
    assert {path.rpartition("/")[2] for path in printed} >= {"summary_ranks_all.svg", "summary_cost_p.png"}
    rows = list(csv.DictReader((tmp_path / "summary.csv").open(newline="")))
    plan, boards = of_folder.read(board), Boards(board)
    found = summary.standing(summary.blocks_of(*plan.model("all", boards)))
    ranks = {row["method"]: float(row["value"]) for row in rows if row["statistic"] == "rank"}
    assert ranks == pytest.approx(dict(zip(found.methods, found.rank[0])))
    assert sum(row["statistic"] == "probability_above" for row in rows) == 12
    # Nothing on a front costs more and scores less than another.
    points = [row for row in rows if row["statistic"] == "frontier" and row["other"] == "bits of a code"]
    best = max(points, key=lambda row: float(row["value"]))
    assert [row["method"] for row in points if row["front"] == "True"] == [best["method"]]


def test_the_page_says_the_ranks_of_a_set(folder):
    boards = Boards(folder / "leaderboard")
    text = render({"summary": "ranks", "set": "all"}, boards)
    found = summary.standing(summary.blocks_of(*of_folder.read(boards.folder).model("all", boards)))
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("|")][2:]
    assert [row[0].strip("| ") for row in rows] == [found.methods[place].upper() for place in found.order]
    assert [row[1].split()[0] for row in rows] == [f"{found.rank[0][place]:.1f}" for place in found.order]
    assert "Without any one of the tables D stays first." in " ".join(text.split())


def test_the_page_says_who_is_first_without_a_table(folder, monkeypatch):
    boards = Boards(folder / "leaderboard")
    found = summary.standing(summary.blocks_of(*of_folder.read(boards.folder).model("all", boards)))
    ranks = np.array([[1.5, 1.5, 3, 4], [4, 1, 2, 3], [1, 2, 3, 4]])
    ranked = replace(found, by_table=ranks, rank=np.tile(ranks.mean(axis=0), (3, 1)))
    monkeypatch.setattr(summary, "standing", lambda blocks: ranked)
    text = " ".join(render({"summary": "ranks", "set": "all"}, boards).split())
    assert "tables: B 1.5 (1.5 to 1.5)." in text
    assert "First where one table is left out: A without “q”." in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sets": {"all": {"title": "All", "tables": ["pp"]}}}, "unknown table 'pp'"),
        ({"sotas": {}}, "sotas"),
        ({"tables": {"p": {"bit": [8]}}}, "bit"),
        ({"frontiers": ["z"]}, "unknown table 'z'"),
    ],
)
def test_plans_that_do_not_fit_are_refused_in_one_line(tmp_path, change, message):
    (tmp_path / "summary.yaml").write_text(yaml.safe_dump(PLAN | change))
    with refused(message):
        of_folder.read(tmp_path)


def test_unknown_names_have_the_nearest(folder):
    with refused(pattern="did you mean"):
        render({"summary": "rank", "set": "all"}, Boards(folder / "leaderboard"))


def test_numbers_of_sentences_are_those_of_the_runs(folder):
    boards = Boards(folder / "leaderboard")
    now = "0.0000 (0.0 to\n0.1)"
    asked = [("mean p ap 8 d", "0.1234"), ("difference p ap\n8 d a", now), ("rank all d", "9.9")]
    one, two, three = (quantities.render(words, now, boards) for words, now in asked)
    table = Table.from_json({"table": table_of("p")})
    of = {name: {} for name in METHODS}
    for run in table_runs(table, folder / "runs", also=["per_query"]):
        of[run.method][run.seed] = run
    mean = np.mean([run.metrics["ap"] for run in of["d"].values()])
    pair = difference(sample(of["d"], "ap"), sample(of["a"], "ap"))
    assert one == f"{mean:.4f}" and two == f"{pair.mean:.4f} ({pair.low:.4f} to {pair.high:.4f})"
    found = summary.standing(summary.blocks_of(*of_folder.read(boards.folder).model("all", boards)))
    value, low, high = found.rank[:, found.methods.index("d")]
    assert three == f"{value:.1f} ({low:.1f} to {high:.1f})"
    means = [
        [float(quantities.render(f"mean {p} ap 8 {m}", "0.12345678", boards)) for p in "pqr"] for m in METHODS
    ]
    four = quantities.render("deviation p,q,r ap 8", "0.12345", boards)
    assert float(four) == pytest.approx(np.sqrt(np.var(means, axis=1, ddof=1).mean()), abs=1e-5)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("meen p ap 8 d", "did you mean 'mean'"),
        ("mean p ap 8", "mean PROTOCOL METRIC BITS METHOD"),
        ("mean pp ap 8 d", "did you mean"),
        ("mean p ap 9 d", "has no codes of 9 bits"),
        ("mean p ap eight d", "a number of bits"),
        ("mean p ap 8 dd", "did you mean"),
        ("difference p ap 8 d e", "no method 'e'"),
        ("deviation p ap 8", "needs two protocols"),
        ("deviation p,pp ap 8", "did you mean"),
        ("rank all e", "no method 'e'"),
        ("rank al d", "no set 'al'"),
    ],
)
def test_quantities_that_are_unknown_are_refused_in_one_line(folder, words, message):
    with refused(message):
        quantities.render(words, "?", Boards(folder / "leaderboard"))


def test_a_metric_of_which_less_is_better_is_not_summarised():
    table = models.small(blocks=[models.block(metric="empty_radius_2")])
    with refused(pattern="less is better by empty_radius_2"):
        summary.blocks_of(*models.model_of(table, []))
