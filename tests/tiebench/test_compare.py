"""tiebench compare: leaderboards made by hand, SciPy's intervals and tests, and errors of one line."""

import hashlib
import json
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tiebench
from tiebench import leaderboards, paired
from tiebench.affinities import SharedLabels
from tiebench.codes.packing import pack
from tiebench.comparison import compare
from tiebench.query_identity import describe
from tiebench.scoring import score_codes

ROOT = Path(__file__).parents[2]
COLUMNS = ("protocol", "metric", "method", "bits", "seeds", "mean", "std", "ci_low", "ci_high")
COLUMNS += ("status", "collapsed")
QUERIES, ITEMS, BITS = 60, 300, 12


@pytest.fixture
def arrays():
    """Codes that say something of their classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, QUERIES + ITEMS)
    codes = rng.normal(size=(4, BITS))[labels] + rng.normal(size=(len(labels), BITS)) > 0
    return {
        "query": codes[:QUERIES],
        "database": codes[QUERIES:],
        "query_labels": labels[:QUERIES],
        "database_labels": labels[QUERIES:],
    }


@pytest.fixture(autouse=True)
def place(tmp_path, arrays, monkeypatch):
    """A folder with codes.npz, and its folder leaderboard/, empty."""
    monkeypatch.chdir(tmp_path)
    np.savez("codes.npz", **arrays)
    Path("leaderboard").mkdir()
    return tmp_path


def cell(method, mean, metric="ap", bits=BITS, scores=(), protocol="p", **more):
    """A row of a tidy file; scores: of its seeds, for spread and interval."""
    row = {"protocol": protocol, "metric": metric, "method": method, "bits": bits, "status": "done"}
    row |= {"seeds": max(len(scores), 1), "mean": float(mean), "collapsed": 0}
    if len(scores) > 1:
        half = stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores)
        low, high = np.mean(scores) - half, np.mean(scores) + half
        row |= {"mean": np.mean(scores), "std": np.std(scores, ddof=1), "ci_low": low, "ci_high": high}
    return row | more


def make_board(cells, per_query=None, members=(), **about):
    """The files of the protocol p in leaderboard/. about: further keys of the provenance."""
    files = [Path("leaderboard/p.tidy.csv")]
    pd.DataFrame(cells).reindex(columns=COLUMNS).to_csv(files[0], index=False)
    if per_query is not None:
        files.append(Path("leaderboard/p.per_query.npz"))
        np.savez(files[1], **per_query)
    known = {"protocol": "p", "title": "The protocol", "members": list(members)}
    known |= {"sha256": {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}}
    known |= {"settings": {"label_affinity": "equal", "ap_at_normaliser": "hits"}, **about}
    Path("leaderboard/p.provenance.json").write_text(json.dumps(known))


def member(arrays, items=None):
    labels = {part: arrays[f"{part}_labels"] for part in ("query", "database")}
    return {"protocol": "p"} | describe(labels, items)


COMMAND = ("compare", "codes.npz", "--protocol", "p")


@pytest.fixture
def compared(printed):
    """Function of options: what the command prints with them, read as JSON."""
    return partial(printed, *COMMAND, "--json")


@pytest.fixture
def refused(fails):
    """Function of options, of which the last counts: the one line that a comparison ends in."""
    return lambda *options: fails(*COMMAND, *options).removeprefix("error: ").strip()


def scores_of(arrays, **options):
    return tiebench.score(**arrays, **options)


def test_ranks_and_differences_of_a_leaderboard_made_by_hand(arrays, compared, said):
    ap = scores_of(arrays).means["ap"]
    rows = [cell("worse", ap - 0.1), cell("best", ap + 0.2), cell("better", ap + 0.1), cell("equal", ap)]
    bounds = [cell("bound", ap + 0.25), cell("uncoded", ap + 0.3, status="uncoded", seeds=0)]
    other = [cell("best", 0.99, bits=16), cell("better", 0.9, metric="ndcg")]
    styles = {"best": {"title": "The Best"}, "bound": {"title": "A bound", "family": "bound"}}
    make_board([*rows, *bounds, *other], members=[member(arrays)], methods=styles)
    found = compared()
    assert (found["metric"], found["bits"], found["queries"], found["database"]) == ("ap", 12, 60, 300)
    assert found["score"] == ap and (found["rank"], found["competitors"]) == (3, 4)
    lines = [(one["title"], one["rank"], round(one["difference"], 12)) for one in found["lines"]]
    assert lines == [
        *(("Uncoded features", None, -0.3), ("A bound", None, -0.25), ("The Best", 1, -0.2)),
        *(("better", 2, -0.1), ("equal", 3, 0.0), ("worse", 5, 0.1)),
    ]
    # One run of a method that may vary; the features themselves have none, but no scores of queries either.
    assert [one["verdict"] for one in found["lines"]] == ["cannot tell", *["too few runs"] * 5]
    assert {(one["over"], one["low"], one["p"]) for one in found["lines"]} == {("", None, None)}
    lines = said(*COMMAND).splitlines()
    assert lines[0] == "p (The protocol): 60 queries, 300 database items"
    assert lines[1].startswith(f"12 bits, AP {ap:.4f}, rank 3 of 5; ")
    assert lines[3].split() == ["rank", "method", "seeds", "score", "difference", "verdict"]
    words = [line.split() for line in lines[4:11]]
    assert [line[0] for line in words] == ["-", "-", "1", "2", "3", "3", "5"]
    assert words[5] == ["3", "YOURS", "1", f"{ap:.4f}"]
    assert words[6][1:] == ["worse", "1", f"{ap - 0.1:.4f}", "+0.1000", "too", "few", "runs"]
    some = compared("--methods", "worse,best")
    assert [one["method"] for one in some["lines"]] == ["best", "worse"]
    assert (some["rank"], some["competitors"]) == (3, 4)  # among all


def test_a_metric_of_which_less_is_better_ranks_the_other_way(arrays, compared):
    name = "candidates_radius_2"
    value = scores_of(arrays).means[name]
    make_board([cell("few", value - 1, name), cell("many", value + 1, name), cell("most", value + 2, name)])
    found = compared()
    assert found["metric"] == name and found["rank"] == 2
    assert [(one["method"], one["rank"]) for one in found["lines"]] == [("few", 1), ("many", 3), ("most", 4)]


def per_query_of(arrays, **shifted):
    """Scores of queries of methods that differ from the codes by some amounts, as leaderboards hold them."""
    ap = scores_of(arrays).per_query["ap"]
    return {f"ap/{name}/{BITS}": (ap - shift).astype(np.float32) for name, shift in shifted.items()}


@pytest.mark.parametrize(
    ("count", "spread", "kept"), [(2, 0.0, "means"), (5, 0.03, "means"), (5, 0.03, "each run")]
)
def test_codes_are_compared_over_queries_and_over_a_methods_own_runs(arrays, count, spread, kept, compared):
    """By `paired.difference`, which tests/tiebench/test_paired.py compares with SciPy."""
    rng, ap = np.random.default_rng(5), scores_of(arrays).per_query["ap"]
    rows, per_query, theirs = [], {}, {}
    for name, gap in zip("abcd", (0.3, 0.06, 0.001, -0.3)):
        noise = spread * (rng.normal(size=(count, 1)) + 10 * rng.normal(size=(count, QUERIES)))
        runs = (ap - rng.normal(gap, 0.2, QUERIES) + noise).astype(np.float32)
        per_query[f"ap/{name}/{BITS}"] = known = runs if kept == "each run" else runs.mean(axis=0)
        rows.append(cell(name, 0, scores=runs.mean(axis=1, dtype=float)))
        theirs[name] = paired.scores_of(runs.mean(axis=1, dtype=float), known.astype(float))
    make_board(rows, per_query, [member(arrays)])
    found = {one["method"]: one for one in compared()["lines"]}
    mine = paired.scores_of([ap.mean()], ap, deterministic=True)
    expected = {name: paired.difference(mine, theirs[name]) for name in found}
    for (name, of), adjusted in zip(expected.items(), paired.holm([of.p for of in expected.values()])):
        one = found[name]
        assert one["over"] == of.over == ("queries and runs" if spread else "queries")
        # Scores of queries are in single precision.
        assert (one["low"], one["high"]) == pytest.approx((of.low, of.high), abs=1e-6)
        assert (one["p"], one["p_adjusted"]) == pytest.approx((of.p, adjusted), rel=1e-4)
        assert one["verdict"] == of.verdict(adjusted)
    assert [found[name]["verdict"] for name in "acd"] == ["higher", "cannot tell", "lower"]


def test_without_scores_of_queries_the_interval_is_that_of_the_methods_runs(arrays, compared, said):
    ap = scores_of(arrays).means["ap"]
    of_seeds = {
        "near": ap + np.array([0.01, -0.02, 0.02, 0.0, 0.01]),
        "far": ap + np.array([0.2, 0.21, 0.19, 0.2, 0.22]),
        "few": ap + np.array([0.2, 0.21, 0.19, 0.2]),
    }
    still = cell("still", 0, scores=[ap + 0.1] * 3)
    make_board([cell(name, 0, scores=values) for name, values in of_seeds.items()] + [still])
    found = {one["method"]: one for one in compared()["lines"]}
    for name, values in of_seeds.items():
        low, high = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert (found[name]["low"], found[name]["high"]) == pytest.approx((ap - high, ap - low))
        assert found[name]["over"] == "runs"
        p = None if name == "few" else pytest.approx(stats.ttest_1samp(values, ap).pvalue)
        assert found[name]["p"] == p
    assert [found[name]["verdict"] for name in of_seeds] == ["cannot tell", "lower", "too few runs"]
    # Runs that are all equal show no error: without scores of queries nothing follows from them.
    assert (found["still"]["over"], found["still"]["verdict"]) == ("", "cannot tell")
    assert "too few runs: a method that varies has fewer than 5" in said(*COMMAND)


def test_a_published_run_compared_with_itself_has_no_difference_on_any_query(arrays, compared):
    scores = scores_of(arrays, at=(50,))
    metrics = ("ap", "ap@50", "ndcg")
    per_query = {f"{name}/self/{BITS}": scores.per_query[name].astype(np.float32) for name in metrics}
    rows = [cell("self", 0, name, scores=[scores.means[name]] * 2) for name in metrics]
    make_board(rows, per_query, [member(arrays)])
    for name in metrics:
        (line,) = compared("--metric", name)["lines"]
        assert line["difference"] == line["low"] == line["high"] == 0.0
        assert (line["p"], line["verdict"], line["over"]) == (1.0, "cannot tell", "queries")


def test_codes_of_another_length_are_shown_beside_the_nearest_ones(arrays, compared, said):
    means = (4, "a", 0.1), (8, "a", 0.4), (8, "b", 0.5), (16, "a", 0.6), (32, "a", 0.7)
    make_board([cell(name, mean, bits=bits) for bits, name, mean in means], members=[member(arrays)])
    found = compared()
    assert found["rank"] is None and found["lines"] == [] and found["lengths"] == [4, 8, 16, 32]
    near = {bits: [one["method"] for one in of] for bits, of in found["neighbours"].items()}
    assert near == {"8": ["b", "a"], "16": ["a"]}
    text = said(*COMMAND)
    assert "no AP of 12 bits; it has 4, 8, 16, 32 bits" in text and "0.5000" in text


def test_relevance_is_that_of_the_protocol(compared, refused):
    """Any shared label: NDCG does not weigh their number, as it does where codes are scored by themselves."""
    rng = np.random.default_rng(1)
    arrays = {"query": rng.random((20, 8)) < 0.5, "database": rng.random((90, 8)) < 0.5}
    arrays |= {f"{part}_labels": rng.random((len(arrays[part]), 5)) < 0.4 for part in ("query", "database")}
    np.savez("codes.npz", **arrays)
    labels = arrays["query_labels"], arrays["database_labels"]
    for how, binary in (("any", True), ("shared", False)):
        make_board([cell("a", 0.5, "ndcg", 8)], settings={"label_affinity": how}, members=[member(arrays)])
        codes = pack(arrays["query"]), pack(arrays["database"])
        expected = score_codes(*codes, 8, SharedLabels(*labels, binary)).means["ndcg"]
        assert compared()["score"] == expected
    make_board([cell("a", 0.5, "ndcg", 8)], settings={"label_affinity": None})
    assert "p has affinities that do not follow from labels" in refused()


def test_the_normaliser_of_ap_at_k_is_the_protocols(arrays, compared, refused):
    for normaliser in ("min", "hits"):
        settings = {"label_affinity": "equal", "ap_at_normaliser": normaliser}
        make_board([cell("a", 0.5, "ap@10"), cell("a", 0.5, "transfer_accuracy")], settings=settings)
        expected = scores_of(arrays, at=(10,), ap_at_normaliser=normaliser).means["ap@10"]
        assert compared()["score"] == expected
    message = "transfer_accuracy does not follow from codes and labels alone; metrics that do: "
    assert refused("--metric", "transfer_accuracy") == f"{message}ap@10"
    make_board([cell("a", 0.5, "transfer_accuracy")])
    assert refused("--metric", "transfer_accuracy") == f"{message}none"


def test_codes_that_collapsed_and_orders_of_ties_that_decide_are_noted(arrays, compared):
    half = arrays | {part: arrays[part] & (np.arange(BITS) == 0) for part in ("query", "database")}
    np.savez("codes.npz", **half)
    means = scores_of(half).means
    low, high = ((means["ap"] + means[f"ap_{end}"]) / 2 for end in ("min", "max"))
    make_board([cell("a", high), cell("b", low, collapsed=1)], members=[member(arrays)])
    found = compared()
    assert (found["rank"], found["rank_low"], found["rank_high"]) == (2, 3, 1)
    assert (found["low"], found["high"]) == (means["ap_min"], means["ap_max"])
    notes = " ".join(found["notes"])
    assert "Your codes count as collapsed: 11 of 12 bits are constant" in notes
    assert "The order of tied items alone decides between rank 3" in notes
    assert "collapsed: see docs/health.md" in notes


def test_collapsed_seeds_are_a_rate_beside_the_score(arrays, said):
    ap = scores_of(arrays).means["ap"]
    seeds = {name: ap + gap + 0.01 * np.arange(10) for name, gap in (("a", 0.1), ("b", -0.2))}
    rows = [cell("a", 0, scores=seeds["a"], collapsed=1), cell("b", 0, scores=seeds["b"])]
    make_board(rows, members=[member(arrays)])
    header, *lines = said(*COMMAND).splitlines()[3:7]
    assert re.split(r"  +", header.strip())[3:5] == ["score", "collapse"]
    by_method = {words[1]: words for line in lines if len(words := re.split(r"  +", line.strip())) > 2}
    assert by_method["a"][3:5] == [f"{seeds['a'].mean():.4f}", "1 of 10 seeds collapsed"]
    assert "collapsed" not in " ".join(by_method["b"])
    make_board([cell("b", 0, scores=seeds["b"])], members=[member(arrays)])
    assert "collapse" not in said(*COMMAND)


ROWS = {"query": np.arange(QUERIES), "database": np.arange(QUERIES, QUERIES + ITEMS)}


@pytest.fixture
def known(arrays):
    """A protocol whose queries are known, and codes that say which rows they are of."""
    per_query = per_query_of(arrays, a=0.1) | {"query": ROWS["query"]}
    make_board([cell("a", 0.5)], per_query, [member(arrays, ROWS)])
    np.savez("codes.npz", **arrays, query_items=ROWS["query"], database_items=ROWS["database"])
    np.savez("split.npz", **ROWS, training=np.arange(3))
    return arrays


def test_codes_of_the_protocol_are_accepted_with_and_without_row_numbers(known, compared):
    with_items = compared("--split", "split.npz")
    np.savez("codes.npz", **known)
    assert compared() == with_items
    assert not any("record" in note for note in with_items["notes"])


def test_shuffled_queries_are_noticed(known, refused):
    order = np.random.default_rng(0).permutation(QUERIES)
    shuffled = known | {name: known[name][order] for name in ("query", "query_labels")}
    np.savez("codes.npz", **shuffled)
    assert "codes.npz: the query labels are not those of protocol p in its order" in refused()
    # Within a class only row numbers can tell.
    same = np.flatnonzero(known["query_labels"] == 2)
    order = np.arange(QUERIES)
    order[same] = np.roll(same, 1)
    np.savez("codes.npz", **known | {"query": known["query"][order]}, query_items=ROWS["query"][order])
    assert "query_items are not `query` of the split of protocol p" in refused()
    # The split that the codes were made with tells, too, where the leaderboard knows labels alone.
    make_board([cell("a", 0.5)], members=[member(known)])
    message = refused("--split", "split.npz")
    assert message == "codes.npz: query_items are not `query` of split.npz, in its order"


def test_another_split_is_refused_with_its_numbers(known, refused):
    np.savez("codes.npz", **known)
    np.savez("split.npz", query=ROWS["query"] + 1, database=ROWS["database"])
    assert "split.npz: query_items are not `query`" in refused("--split", "split.npz")
    np.savez("split.npz", query=ROWS["query"], database=ROWS["database"][:-1])
    wrong = "split.npz has 299 rows of `database`, the codes are of 300"
    assert wrong in refused("--split", "split.npz")
    np.savez("split.npz", query=ROWS["query"])
    assert "split.npz lacks `database`" in refused("--split", "split.npz")
    np.savez("split.npz", query=np.array(3), database=ROWS["database"])
    assert "split.npz: query must be row numbers (m,)" in refused("--split", "split.npz")
    np.savez("codes.npz", **known | {"query_items": np.array(3)})
    assert "codes.npz: query_items must be row numbers (m,)" in refused()


def test_a_leaderboard_that_records_no_queries_is_used_and_the_codes_are_not_vouched_for(arrays, compared):
    make_board([cell("a", 0.5)], members=[{"protocol": "p", "queries": QUERIES, "database": ITEMS}])
    assert any("of your codes sizes could be checked" in note for note in compared()["notes"])
    make_board([cell("a", 0.5)], settings={})
    notes = compared()["notes"]
    assert any("of your codes nothing could be checked" in note for note in notes)
    assert any("how labels decide relevance" in note for note in notes)


def test_the_figure_has_each_difference_with_its_interval_in_the_order_of_the_table(arrays, compared):
    pytest.importorskip("matplotlib")
    from tiebench import forest

    ap, rng = scores_of(arrays).means["ap"], np.random.default_rng(2)
    shifts = {name: rng.normal(gap, 0.1, QUERIES) for name, gap in (("low", 0.3), ("high", -0.3))}
    rows = [cell(name, 0, scores=[ap + gap] * 2) for name, gap in (("low", -0.3), ("high", 0.3))]
    rows += [cell("once", ap + 0.01), cell("seeds", 0, scores=ap + np.array([0.1, -0.1]))]
    make_board(rows, per_query_of(arrays, **shifts), [member(arrays)])
    scores = scores_of(arrays)
    found = compare(leaderboards.load("p", "leaderboard"), scores.means, scores.per_query, "ap")
    assert [line.verdict for line in found.lines] == ["lower", "too few runs", "too few runs", "higher"]
    axes = forest.forest(found, "mine").axes[0]
    drawn = {artist.get_gid(): artist for artist in axes.get_lines() if artist.get_gid()}
    assert len(drawn) == 4 + 3
    for row, line in enumerate(found.lines):
        dot = drawn[f"difference-{line.method}"]
        assert dot.get_data()[0][0] == line.difference and dot.get_data()[1][0] == row
        assert dot.get_color() == forest.COLOURS[line.verdict]
        if line.over:
            assert list(drawn[f"interval-{line.method}"].get_data()[0]) == [line.low, line.high]
        else:
            assert f"interval-{line.method}" not in drawn
    assert [text.get_text() for text in axes.get_yticklabels()] == [line.title for line in found.lines]
    low, _ = axes.get_xlim()
    assert low < min(line.low for line in found.lines if line.over) < 0
    for file, start in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.svg", b"<?xml")):
        compared("--figure", file)
        content = Path(file).read_bytes()
        assert content.startswith(start)
        compared("--figure", file)
        assert Path(file).read_bytes() == content


def test_a_figure_of_nothing_or_of_another_kind_is_refused(arrays, refused, misused):
    make_board([cell("a", 0.5, bits=16)], members=[member(arrays)])
    assert refused("--figure", "a.pdf") == "a.pdf: p has no ap of 12 bits to draw"
    assert "a.jpg: the file must end in .png, .pdf or .svg" in misused(*COMMAND, "--figure", "a.jpg")


def test_names_have_the_nearest_one(arrays, refused):
    make_board([cell("itq", 0.5), cell("itq", 0.5, "ap@10")], members=[member(arrays)])
    assert "no protocol 'pp'; did you mean 'p'? Known: p" in refused("--protocol", "pp")
    assert "p has no metric 'ap@11'; did you mean 'ap@10'?" in refused("--metric", "ap@11")
    assert "p has no method 'iqt'; did you mean 'itq'?" in refused("--methods", "iqt")


def test_folds_are_compared_one_at_a_time(arrays, compared, refused):
    """Each has its own queries; the arrays of scores hold one fold after the other."""
    scores = scores_of(arrays)
    other = {"protocol": "p_fold1", "queries": 7, "database": 20}
    own = member(arrays) | {"protocol": "p_fold2"}
    rows = [cell("a", 0.5, protocol=name) for name in ("p", "p_fold1")]
    rows.append(cell("a", 0, scores=[scores.means["ap"]] * 2, protocol="p_fold2"))
    values = np.append(np.zeros(7), scores.per_query["ap"]).astype(np.float32)
    make_board(rows, {f"ap/a/{BITS}": values}, [other, own])
    assert "p has 2 folds, " in refused() and "--protocol p_fold1, p_fold2" in refused()
    found = compared("--protocol", "p_fold2")
    assert (found["lines"][0]["low"], found["lines"][0]["high"]) == (0.0, 0.0)
    assert "60 queries and 300 database items, protocol p_fold1 has 7" in refused("--protocol", "p_fold1")


def test_the_leaderboard_is_looked_for_here_and_beside_the_library(
    place, arrays, monkeypatch, compared, refused
):
    make_board([cell("a", 0.5)], members=[member(arrays)])
    assert leaderboards.find() == Path("leaderboard")
    Path("leaderboard").rename("elsewhere")
    assert leaderboards.find() == ROOT / "leaderboard"
    assert compared("--leaderboard", "elsewhere")["lines"][0]["method"] == "a"
    monkeypatch.setattr(leaderboards, "__file__", str(place / "lib" / "tiebench" / "leaderboards.py"))
    message = refused()
    assert f"neither leaderboard nor {place / 'lib' / 'leaderboard'} exists" in message
    assert "--leaderboard" in message
    assert "nowhere is not a folder" in refused("--leaderboard", "nowhere")


def test_files_that_do_not_belong_together_are_refused(arrays, refused):
    make_board([cell("a", 0.5)], per_query_of(arrays, a=0.1), [member(arrays)])
    for name in ("p.tidy.csv", "p.per_query.npz"):
        content = Path("leaderboard", name).read_bytes()
        Path("leaderboard", name).write_bytes(content[:-1] + b"x")
        assert f"{name} is not the file that" in refused()
        Path("leaderboard", name).write_bytes(content)
    make_board([cell("a", 0.5)], {f"ap/a/{BITS}": np.zeros(9, np.float32)}, [member(arrays)])
    assert "p has 9 queries, the codes have 60" in refused()


@pytest.mark.parametrize(
    "change",
    [
        *({"protocol": "q"}, {"sha256": "0" * 64}, {"members": {"p": 1}}, {"members": [3]}),
        *({"fingerprints": [{"split": "x"}]}, {"settings": [1]}, {"methods": ["a"]}),
    ],
)
def test_a_provenance_of_another_shape_is_refused(arrays, change, refused):
    make_board([cell("a", 0.5)], members=[member(arrays)])
    path = Path("leaderboard/p.provenance.json")
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole | change))
    assert "p.provenance.json is not the provenance of p; publish it again" in refused()
    path.write_text(json.dumps(whole)[:-9])
    assert "p.provenance.json: invalid JSON" in refused()


def test_comparing_loads_neither_torch_nor_pandas_nor_matplotlib(arrays):
    make_board([cell("a", 0.5)], per_query_of(arrays, a=0.1), [member(arrays)])
    program = """if True:
        import sys
        from tiebench.__main__ import main
        main(["compare", "codes.npz", "--protocol", "p"])
        print(sorted({"torch", "pandas", "matplotlib", "scipy.stats", "reporting"} & set(sys.modules)))
    """
    variables = {"PYTHONPATH": str(ROOT), "PATH": ""}
    found = subprocess.check_output([sys.executable, "-c", program], text=True, env=variables)
    assert found.splitlines()[-1] == "[]"


def test_missing_packages_are_named(arrays, monkeypatch, refused):
    make_board([cell("a", 0.5)], members=[member(arrays)])
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    assert refused() == "tiebench compare needs SciPy: pip install scipy"


def test_the_function_is_what_the_command_prints(arrays, compared):
    make_board([cell("a", 0.5)], per_query_of(arrays, a=0.1), [member(arrays)])
    scores = scores_of(arrays)
    found = compare(leaderboards.load("p", "leaderboard"), scores.means, scores.per_query, "ap")
    printed = compared()
    assert {name: printed[name] for name in found.as_dict()} == json.loads(json.dumps(found.as_dict()))
