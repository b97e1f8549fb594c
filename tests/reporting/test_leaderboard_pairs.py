"""Every two methods of a leaderboard: the differences are those of a table with the runs themselves."""

import itertools
import math

import numpy as np
import pytest
from leaderboards import make_run, publish_table, random_scores
from models import block, model_of

from reporting import __main__ as reporting
from reporting import frames
from reporting.leaderboard.boards import Boards, as_table
from reporting.leaderboard.per_query import with_scores
from reporting.leaderboard.publishing import publish
from reporting.printed import markdown
from reporting.printed.cells import cells
from reporting.records.read import table_runs
from reporting.statistics import columns
from reporting.statistics.samples import against, sample
from reporting.tables.model import Table
from reporting.tables.runs import Results
from tiebench.paired import difference, holm
from workflow.documentation.leaderboard_models import Protocol

STYLES = {
    "lsh": {"title": "LSH", "family": "unsupervised"},
    "itq": {"title": "ITQ", "family": "unsupervised"},
    "talr": {"title": "TALR", "family": "listwise"},
    "mih": {"title": "MIHash", "family": "listwise"},
    "wide": {"title": "Wide", "family": "pointwise", "sees": "database labels"},
    "onehot": {"title": "One-hot", "family": "bound"},
}
RANKED = ["lsh", "itq", "talr", "mih"]
TABLE = {"name": "t", "methods": list(STYLES), "seeds": [0, 1, 2, 3, 4], "styles": STYLES}
TABLE["families"] = {name: style["family"] for name, style in STYLES.items()}
TABLE["blocks"] = [block("p", bits=[8])]


def published(folder, table=TABLE, seeds_of=lambda method: range(5)):
    """Publish random scores of 40 queries; the folder of the leaderboard, the runs with scores per query."""
    generator = np.random.default_rng(1)
    for place, method in enumerate(STYLES):
        hard = generator.random(40)
        for seed in seeds_of(method):
            scores = {"ap": np.clip(hard + 0.02 * place + 0.1 * generator.normal(size=40), 0, 1)}
            make_run(folder, "p", method, 8, seed, random_scores(generator, 40) | scores)
    publish_table(folder, table)
    publish([table["name"]], folder, folder / "leaderboard")
    settings = {"table": table, "refused": [], "published": [], "claims": []}
    runs = table_runs(Table.from_json(settings), folder / "runs", also=["per_query"])
    return folder / "leaderboard", runs


def pairs_of(board, folder):
    table = as_table([board], TABLE["blocks"])
    return Protocol(board, table, with_scores(board, folder)).pairs[8]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return published(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def found(plain):
    folder, runs = plain
    return pairs_of(Boards(folder)["p"], folder), runs


def test_every_pair_is_there_once_and_is_that_of_the_two_methods_alone(found):
    every, measured = found
    expected = {frozenset(pair) for pair in itertools.combinations(STYLES, 2)}
    assert {frozenset(pair) for pair in every} == expected and len(every) == len(expected)
    runs = {}
    for run in measured:
        runs.setdefault(run.method, {})[run.seed] = run
    for (one, other), pair in every.items():
        plain = difference(sample(runs[one], "ap"), sample(runs[other], "ap"))
        assert pair.found.mean == pytest.approx(plain.mean, abs=1e-12) and pair.over == "queries and runs"
        assert (pair.found.low, pair.found.high, pair.found.p) == pytest.approx(
            (plain.low, plain.high, plain.p), rel=1e-4, abs=1e-7
        )
        assert against(every, other, [one]) == {one: pair}
        turned = against(every, one, [other])[other].found
        assert (turned.mean, turned.p) == (-pair.found.mean, pair.found.p)
        assert (turned.low, turned.high) == (-pair.found.high, -pair.found.low)


def test_p_values_are_adjusted_over_the_pairs_with_ranks_alone(found):
    every, _ = found
    ranked = list(itertools.combinations(RANKED, 2))
    expected = holm([every[pair].found.p for pair in ranked])
    assert [every[pair].p_adjusted for pair in ranked] == expected.tolist()
    outside = [pair for key, pair in every.items() if key not in ranked]
    assert len(outside) == 9 and all(math.isnan(pair.p_adjusted) for pair in outside)


def test_methods_with_other_numbers_of_seeds_are_compared_where_there_are_five(tmp_path):
    # Two tables: the leaderboard keeps the rows of the first beside those of the second.
    first = TABLE | {"methods": ["lsh", "itq"], "seeds": [0, 1, 2, 3, 4], "fewer_seeds": {"lsh": 4}}
    folder, _ = published(tmp_path, first)
    second = TABLE | {"name": "more", "methods": ["talr"]}
    publish_table(tmp_path, second)
    publish(["more"], tmp_path, folder)
    board = Boards(folder)["p"]
    found = pairs_of(board, folder)
    few = dict.fromkeys([("lsh", "itq"), ("lsh", "talr")], "too few runs")
    assert {key: pair.over for key, pair in found.items()} == few | {("itq", "talr"): "queries and runs"}
    assert all(math.isnan(found["lsh", name].p_adjusted) for name in ("itq", "talr"))
    measured = Results.of(as_table([board], TABLE["blocks"]), board.measured)
    of = {method: sample(runs, "ap") for (_, method, _), runs in measured.runs.items()}
    assert {method: scores.runs for method, scores in of.items()} == {"lsh": 4, "itq": 5, "talr": 5}
    for (left, right), pair in found.items():
        means = [of[method].mean for method in (left, right)]
        assert pair.found.mean == pytest.approx(means[0] - means[1], abs=1e-12)
        assert pair.found.per_query.mean() == pytest.approx(pair.found.mean, abs=1e-7)


def test_one_seed_without_scores_per_query_has_a_difference_alone(tmp_path):
    folder, _ = published(tmp_path, TABLE | {"seeds": [0]}, lambda method: (0,))
    board = Boards(folder)["p"]
    del board.about["sha256"]["p.per_query.npz"]
    found = pairs_of(board, folder)
    for pair in found.values():
        assert pair.over == "too few runs" and math.isnan(pair.found.low) and math.isnan(pair.found.p)
        assert not math.isnan(pair.found.mean)


def test_a_printed_protocol_is_the_table_of_its_runs(plain, capsys):
    """Best, second, spread and marks are those of the table that was published."""
    folder, runs = plain
    wanted = ["lsh", "itq", "talr"]
    command = ["table", "p", "--leaderboard", str(folder), "--methods", ",".join(wanted)]
    assert reporting.main(command) == 0
    model = model_of(TABLE | {"methods": wanted, "name": "p"}, [run for run in runs if run.method in wanted])
    expected = markdown.to_markdown(cells(frames.tidy(*model), model[0], columns.comparisons(*model)), 3)
    rows = [[line for line in text.splitlines() if line.startswith("| ")]
            for text in (capsys.readouterr().out, expected)]  # fmt: skip
    assert rows[0] == rows[1] and len(rows[0]) > len(wanted)
    assert reporting.main([*command, "--format", "tex"]) == 0
    first, _, rest = capsys.readouterr().out.partition("\n")
    assert first.startswith("% Papers: python -m methods --bibtex") and rest.startswith("\\begin{table}")
    for more in (["--bits", "9"], ["--metric", "apx"], ["--methods", "talrr"], ["--blocks", "p/ap"]):
        assert reporting.main([*command, *more]) == 1
        assert capsys.readouterr().err.startswith("error: ")
