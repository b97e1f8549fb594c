"""Codes as a FAISS index and as runs, read by what they are for; `tiebench export`, `tiebench search`."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from test_neighbours import made

from tiebench.codes.packing import pack
from tiebench.search import export
from tiebench.search.neighbours import nearest

MEASURES = "ap,ap@10,ndcg,ndcg@10,recall@10,precision@10,reciprocal_rank"


@pytest.fixture
def arrays():
    generator = np.random.default_rng(2)
    labels = {"query_labels": generator.integers(0, 4, 6), "database_labels": generator.integers(0, 4, 200)}
    return dict(zip(("query", "database"), made(13, 6, 200))) | labels


@pytest.fixture(autouse=True)
def codes(tmp_path, monkeypatch, arrays):
    """Commands run beside codes.npz."""
    monkeypatch.chdir(tmp_path)
    np.savez("codes.npz", **arrays)


@pytest.mark.parametrize("bits", [1, 8, 13, 65, 200])
def test_faiss_finds_the_distances_that_tiebench_ranks(tmp_path, bits):
    """Of tied items FAISS may list any: items of a smaller distance than the last must be the same."""
    faiss = pytest.importorskip("faiss")
    query, database = made(bits, items=20_000)
    export.write_faiss(tmp_path / "codes.faiss", pack(database), bits)
    index = faiss.read_index_binary(str(tmp_path / "codes.faiss"))
    assert (index.ntotal, index.d) == (20_000, -(-bits // 8) * 8)
    distances, items = index.search(pack(query), 50)
    true = (query[:, None] != database).sum(axis=2)
    for row, one in enumerate(nearest(pack(query), pack(database), bits, 50)):
        assert distances[row].tolist() == one.distances.tolist()
        assert true[row, items[row]].tolist() == one.distances.tolist()
        inside = one.distances < one.distances[-1]
        assert set(items[row][inside].tolist()) == set(one.items[inside].tolist())


def test_faiss_returns_the_ids_of_items(arrays, printed):
    faiss = pytest.importorskip("faiss")
    ids = np.random.default_rng(0).permutation(10**6)[:200] + 2**40
    np.savez("named.npz", **arrays, query_items=np.arange(6), database_items=ids)
    about = printed("export", "named.npz", "--to", "faiss", "--output", "named.faiss")
    assert (about["ids"], about["index_bits"], about["bits"]) == ("items", 16, 13)
    index = faiss.read_index_binary("named.faiss")
    distances, found = index.search(pack(arrays["query"]), 200)
    of_item = (arrays["query"][:, None] != arrays["database"]).sum(axis=2)
    for row in range(6):
        by_id = dict(zip(ids.tolist(), of_item[row].tolist()))
        assert [by_id[one] for one in found[row].tolist()] == distances[row].tolist()


@pytest.mark.parametrize("labels", ["classes", "tags"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_an_exported_run_has_the_scores_of_its_codes(arrays, labels, ending, printed):
    if labels == "tags":
        generator = np.random.default_rng(1)
        for part in ("query", "database"):
            arrays[f"{part}_labels"] = generator.integers(0, 2, (len(arrays[part]), 3)) | [1, 0, 0]
        np.savez("codes.npz", **arrays)
    files = f"run.txt{ending}", f"qrels.txt{ending}"
    about = printed("export", "codes.npz", "--to", "trec", "--output", files[0], "--qrels", files[1])
    assert about["lines"] == 6 * 200
    options = ("--gains", "exponential", "--ap-at-normaliser", "hits")
    measured = printed("score-run", *files, "--measures", MEASURES, *options)
    scored = printed("score", "codes.npz", "--at", "10")
    compared = [name for name in measured if name.partition("@")[0].split("_m")[0] in MEASURES]
    assert len(compared) >= 3 * 7
    for name in compared:
        assert measured[name] == pytest.approx(scored[name], abs=1e-12), name


def test_a_run_of_neighbours_keeps_the_metrics_of_the_first_items_exact(printed):
    """As the tie at the last place is whole; a cut tie would hide from the metric that there are others."""
    printed("export", "codes.npz", "--to", "trec", "--output", "all.txt", "--qrels", "q.txt")
    whole = printed("export", "codes.npz", "--to", "trec", "--output", "w.txt", "--neighbours", "20")
    cut = ("--neighbours", "20", "--ties", "cut")
    cut = printed("export", "codes.npz", "--to", "trec", "--output", "cut.txt", *cut)
    assert (cut["lines"], whole["ties_cut"]) == (120, 0) and whole["lines"] > 120 and cut["ties_cut"] > 0
    names = ("--measures", "precision@20,success@20,reciprocal_rank@20")
    found = [printed("score-run", run, "q.txt", *names) for run in ("all.txt", "w.txt", "cut.txt")]
    for name in ("precision@20", "precision@20_min", "precision@20_max", "reciprocal_rank@20"):
        assert found[1][name] == pytest.approx(found[0][name], abs=1e-12)
    assert found[2]["precision@20_min"] != pytest.approx(found[0]["precision@20_min"])


def test_lines_of_a_run_are_the_distances_in_order(arrays, printed):
    names = {"query_ids": [f"q{row}" for row in range(6)], "database_ids": np.arange(200) * 3}
    np.savez("named.npz", **arrays, **names)
    printed("export", "named.npz", "--to", "trec", "--output", "r.txt", "--radius", "3", "--tag", "itq")
    lines = [line.split(" ") for line in Path("r.txt").read_text().splitlines()]
    expected = []
    for row, code in enumerate(arrays["query"]):
        distances = (code != arrays["database"]).sum(axis=1)
        near = [item for item in np.argsort(distances, kind="stable") if distances[item] <= 3]
        expected += [
            [f"q{row}", "Q0", str(item * 3), str(rank), str(-distances[item]), "itq"]
            for rank, item in enumerate(near, 1)
        ]
    assert lines == expected and len(lines) > 6


def test_a_query_without_relevant_items_is_counted(arrays, printed):
    np.savez("codes.npz", **arrays | {"query_labels": [9, 0, 1, 2, 3, 9]})
    printed("export", "codes.npz", "--to", "trec", "--output", "run.txt", "--qrels", "q.txt")
    found = printed("score-run", "run.txt", "q.txt", "--measures", "ap")
    assert (found["queries"], found["queries_without_relevant"]) == (6, 2)
    assert found["ap"] == pytest.approx(printed("score", "codes.npz")["ap"], abs=1e-12)


def test_ranx_reads_the_run_and_scores_it_within_the_range(arrays, printed):
    """ranx puts tied items in some order: its values lie between the smallest and the largest."""
    ranx = pytest.importorskip("ranx", reason="ranx is not installed")
    printed("export", "codes.npz", "--to", "ranx", "--output", "run.json", "--qrels", "qrels.json")
    run, qrels = ranx.Run.from_file("run.json"), ranx.Qrels.from_file("qrels.json")
    for row, code in enumerate(arrays["query"]):
        distances = (code != arrays["database"]).sum(axis=1)
        its = run.to_dict()[str(row)]
        assert its == {str(item): -distance for item, distance in enumerate(distances.tolist())}
    values = ranx.evaluate(qrels, run, ["map", "precision@10", "mrr", "ndcg_burges@10"])
    scored = printed("score", "codes.npz", "--at", "10")
    for theirs, ours in zip(values, ("ap", "precision@10", "reciprocal_rank", "ndcg@10"), strict=True):
        assert scored[f"{ours}_min"] - 1e-9 <= values[theirs] <= scored[f"{ours}_max"] + 1e-9, theirs


def test_the_json_of_a_run_is_that_of_json_dump(arrays, printed):
    """Written query by query, without ranx beside it."""
    printed(
        "export", "codes.npz", "--to", "ranx", "--output", "run.json", "--qrels", "q.json", "--radius", "0"
    )
    run = json.loads(Path("run.json").read_text())
    assert list(run) == [str(row) for row in range(6)]
    same = (arrays["query"][:, None] == arrays["database"]).all(axis=2)
    assert run == {str(row): {str(item): 0.0 for item in np.flatnonzero(same[row])} for row in range(6)}
    relevant = arrays["query_labels"][:, None] == arrays["database_labels"]
    qrels = json.loads(Path("q.json").read_text())
    assert qrels == {str(row): {str(item): 1 for item in np.flatnonzero(relevant[row])} for row in range(6)}


def test_judgements_that_cannot_be_written_leave_an_earlier_run_as_it_is(arrays, fails, misused):
    Path("run.json").write_text("mine")
    options = ("export", "codes.npz", "--to", "ranx", "--output", "run.json", "--qrels")
    assert "--qrels: ranx reads JSON from files that end in .json, not q.txt" in misused(*options, "q.txt")
    assert "--output: ranx reads JSON" in misused(*options, "q.json", "--output", "run.txt")
    two = {"query_labels": arrays["query_labels"][:, None] == np.arange(3)}
    np.savez("codes.npz", **arrays | two)
    fails(*options, "q.json")
    assert Path("run.json").read_text() == "mine"


def test_a_run_of_the_suite_gets_names_and_labels_from_its_split(arrays, said, printed):
    rows = np.random.default_rng(0).permutation(206)
    labels = np.zeros(206, int)
    labels[rows[:6]], labels[rows[6:]] = arrays["query_labels"], arrays["database_labels"]
    np.save("labels.npy", labels)
    np.savez("split.npz", query=rows[:6], database=rows[6:], training=rows[:3])
    np.savez("bare.npz", query=pack(arrays["query"]), database=pack(arrays["database"]), bits=13)
    named = ("--split", "split.npz", "--labels", "labels.npy")
    (line,) = said("search", "bare.npz", "--rows", "2", *named).splitlines()
    answer = json.loads(line)
    assert (answer["query"], answer["label"]) == (rows[2], arrays["query_labels"][2])
    (one,) = nearest(pack(arrays["query"][2:3]), pack(arrays["database"]), 13, 10)
    assert answer["items"] == rows[6:][one.items].tolist()
    assert answer["labels"] == labels[answer["items"]].tolist()
    printed("export", "bare.npz", "--to", "trec", "--output", "run.txt", "--qrels", "q.txt", *named)
    found = printed("score-run", "run.txt", "q.txt", "--measures", "ap")
    assert found["ap"] == pytest.approx(printed("score", "codes.npz")["ap"], abs=1e-12)


def test_search_says_where_it_cuts_a_tie(arrays, said):
    distances = (arrays["query"][:, None] != arrays["database"]).sum(axis=2)
    answers = [json.loads(line) for line in said("search", "codes.npz", "--neighbours", "7").splitlines()]
    assert [one["query"] for one in answers] == list(range(6)) and any(one["cut"] for one in answers)
    for row, answer in enumerate(answers):
        order = np.argsort(distances[row], kind="stable")[:7]
        last = distances[row, order[-1]]
        assert answer["items"] == order.tolist() and answer["distances"] == distances[row, order].tolist()
        tied = np.flatnonzero(distances[row] == last)
        listed = len(set(tied) & set(order))
        whole = listed == len(tied)
        expected = None if whole else {"distance": last, "listed": listed, "items": len(tied)}
        assert answer["cut"] == expected
    for line in said("search", "codes.npz", "--neighbours", "7", "--ties", "whole").splitlines():
        answer = json.loads(line)
        assert answer["cut"] is None
        assert len(answer["items"]) == (distances[answer["query"]] <= answer["distances"][-1]).sum()


def test_search_takes_queries_of_another_file(arrays, said, fails):
    np.savez("new.npz", query=pack(arrays["database"][[4, 9]]), bits=13, query_ids=["a", "b"])
    lines = said("search", "codes.npz", "--queries", "new.npz", "--radius", "0").splitlines()
    for name, item, line in zip("ab", (4, 9), lines, strict=True):
        answer = json.loads(line)
        same = np.flatnonzero((arrays["database"] == arrays["database"][item]).all(axis=1))
        assert answer["query"] == name and answer["items"] == same.tolist()
        assert set(answer["distances"]) == {0} and "label" not in answer
    np.savez("new.npz", query=np.zeros((1, 12), int))
    error = fails("search", "codes.npz", "--queries", "new.npz")
    assert "new.npz: codes of 12 bits, those of codes.npz have 13" in error


def test_search_prints_a_table(arrays, said):
    lines = said("search", "codes.npz", "--rows", "1,3-4", "--neighbours", "2", "--text").splitlines()
    expected = [f"query {row}, label {arrays['query_labels'][row]}" for row in (1, 3, 4)]
    assert [line for line in lines if line.startswith("query")] == expected
    assert lines[1].split() == ["item", "distance", "label"]
    (one, *_) = nearest(pack(arrays["query"][1:2]), pack(arrays["database"]), 13, 2)
    item = one.items[0]
    assert lines[2].split() == [str(n) for n in (item, one.distances[0], arrays["database_labels"][item])]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "codes.npz", "--rows", "6"], "codes.npz: --rows 6: there are 6 queries, rows 0 to 5"),
        (["search", "codes.npz", "--radius", "14"], "codes.npz: radius must be between 0 and 13"),
        (["export", "codes.npz", "--to", "sql", "--output", "r", "--table", "a\tb"], "error: table 'a"),
        (["export", "names.npz", "--to", "trec", "--output", "r"], "names.npz: database_ids has 'a b'"),
        (["export", "names.npz", "--to", "faiss", "--output", "r"], "FAISS index are 64-bit integers"),
        (["export", "twice.npz", "--to", "trec", "--output", "r"], "twice.npz: database_items has '7' twice"),
        (["export", "half.npz", "--to", "trec", "--output", "r"], "half.npz: it lacks query_ids: give both"),
        (["export", "codes.npz", "--to", "sql", "--output", "r", "--split", "s.npz"], "3 rows of `query`"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(arrays, words, message, tmp_path, fails):
    names = {"query_ids": list("abcdef"), "database_ids": [f"a b{row or ''}" for row in range(200)]}
    np.savez("names.npz", **arrays, **names)
    np.savez("twice.npz", **arrays, query_items=np.arange(6), database_items=np.full(200, 7))
    np.savez("half.npz", **arrays, database_ids=np.arange(200))
    np.savez("s.npz", query=np.arange(3), database=np.arange(200))
    before = sorted(tmp_path.iterdir())
    assert message in fails(*words)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "--neighbours", "3", "--radius", "1"], "exclude each other"),
        (["search", "--radius", "1", "--ties", "whole"], "--ties goes with --neighbours"),
        (["search", "--rows", "3-1"], "rows '3-1' end before they begin"),
        (["search", "--rows", "x"], "rows are written as 0,3-5"),
        (["search", "--labels", "l.npy"], "--labels goes with --split"),
        (["export", "--to", "xml", "--output", "r"], "invalid choice: 'xml'"),
        (["export", "--to", "faiss", "--output", "r", "--qrels", "q"], "--qrels does not go with --to faiss"),
        (["export", "--to", "ranx", "--output", "r", "--inserts"], "--inserts does not go with --to ranx"),
        (["export", "--to", "trec", "--output", "r", "--qrels", "r"], "--output r is the same file"),
    ],
)
def test_options_that_do_not_go_together_are_refused(misused, words, message):
    assert message in misused(words[0], "codes.npz", *words[1:])


def test_the_same_codes_are_the_same_bytes(tmp_path, printed):
    for name in ("one.gz", "two.gz"):
        printed("export", "codes.npz", "--to", "trec", "--output", name)
    one, two = ((tmp_path / name).read_bytes() for name in ("one.gz", "two.gz"))
    assert one == two and gzip.decompress(one).count(b"\n") == 1200
