"""Runs and judgements: every measure against all orders of tied documents, every form of input, bad lines."""

import csv
import gzip
import math

import numpy as np
import pytest
from refusals import refused
from test_orders import orders

from tiebench import score_array, score_run
from tiebench.runs import tokens
from tiebench.runs.scores import LISTS, score_lists

MEASURES = (
    *("ap", "ap@1", "ap@3", "ap@9", "ndcg", "ndcg@2", "ndcg@4", "recall@2", "recall@9", "precision@3"),
    *("precision@9", "success@1", "success@3", "r_precision", "reciprocal_rank", "reciprocal_rank@2"),
)


def plain(measure, ranking, judged, gains, normaliser="relevant", level=1, without_relevant=0.0):
    """A measure of one ranking without ties, by its definition; judged: document -> relevance;
    without_relevant: NDCG of a query without gains."""
    name, _, cutoff = measure.partition("@")
    cut = int(cutoff) if cutoff else len(ranking)
    good = {document for document, relevance in judged.items() if relevance >= level}
    ranks = [rank for rank, document in enumerate(ranking, start=1) if document in good]
    hits = [rank for rank in ranks if rank <= cut]
    if name == "ap":
        total = sum((place + 1) / rank for place, rank in enumerate(hits))
        kind = normaliser if cutoff else "relevant"
        divisor = {"relevant": len(good), "min": min(cut, len(good)), "hits": len(hits)}[kind]
        return total / divisor if divisor else 0.0
    if name == "ndcg":
        gain = {d: (r if gains == "linear" else 2**r - 1) for d, r in judged.items() if r > 0}
        found = sum(gain.get(d, 0) / math.log2(rank + 1) for rank, d in enumerate(ranking[:cut], start=1))
        best = sorted(gain.values(), reverse=True)[: cut if cutoff else None]
        ideal = sum(value / math.log2(rank + 1) for rank, value in enumerate(best, start=1))
        return found / ideal if ideal else without_relevant
    if name == "recall":
        return len(hits) / len(good) if good else 0.0
    if name == "precision":
        return len(hits) / cut
    if name == "success":
        return float(bool(hits))
    if name == "r_precision":
        return sum(rank <= len(good) for rank in ranks) / len(good) if good else 0.0
    return 1 / hits[0] if hits else 0.0


def rankings_of(scored):
    """All rankings of {document: score}, best first, ties in every order."""
    for ranking in orders([(-score, document) for document, score in scored.items()]):
        yield [document for _, document in ranking]


def tied_run(seed):
    """A small run with many ties, judgements that reach beyond it, queries missing on both sides."""
    rng = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in range(int(rng.integers(1, 5))):
        retrieved = rng.permutation(9)[: rng.integers(1, 6)]
        run[f"q{query}"] = {f"document-{d}": float(rng.integers(0, 3)) for d in retrieved}
        if query == 0 or rng.random() < 0.8:
            judged = rng.permutation(9)[: rng.integers(1, 6)]
            qrels[f"q{query}"] = {f"document-{d}": int(rng.integers(-1, 4)) for d in judged}
    if rng.random() < 0.5:
        qrels["absent"] = {"document-0": 1}
    return run, qrels


@pytest.mark.parametrize(
    ("gains", "normaliser", "level"),
    [("linear", "relevant", 1), ("exponential", "min", 2), ("linear", "hits", 1)],
)
def test_every_measure_is_the_mean_and_range_over_all_orders(gains, normaliser, level):
    for seed in range(25):
        run, qrels = tied_run(seed)
        settings = {"gains": gains, "ap_at_normaliser": normaliser, "relevant_from": level}
        found = score_run(run, qrels, MEASURES, **settings)
        assert found.queries == list(qrels)
        for measure in MEASURES:
            for row, (query, judged) in enumerate(qrels.items()):
                rankings = rankings_of(run.get(query, {}))
                values = [plain(measure, one, judged, gains, normaliser, level) for one in rankings]
                expected = np.mean(values), min(values), max(values)
                seen = [found.per_query[measure + ending][row] for ending in ("", "_min", "_max")]
                assert seen == pytest.approx(expected, abs=1e-12), (seed, measure, query)
        for name, values in found.per_query.items():
            assert found.means[name] == pytest.approx(values.mean())


def test_counts_say_what_was_averaged_and_what_is_tied():
    run = {
        "a": {"1": 2.0, "2": 2.0, "3": 1.0},  # a tie of a relevant and an irrelevant document
        "b": {"1": 2.0, "2": 2.0, "3": 2.0},  # a tie of irrelevant ones
        "unjudged": {"1": 1.0, "2": 1.0},
    }
    qrels = {"a": {"2": 1}, "b": {"4": 1}, "empty": {"1": 0}, "missing": {"1": 1}}
    counts = {
        "queries": 4,
        "queries_without_relevant": 1,
        "queries_missing": 2,
        "queries_unjudged": 1,
        "lines": 8,
        "tied_lines": 5 / 6,
        "queries_where_order_matters": 1 / 4,
    }
    means = score_run(run, qrels, ["ap"]).means
    assert means == counts | {"ap": 0.75 / 4, "ap_min": 0.5 / 4, "ap_max": 1 / 4}
    assert score_run(run, qrels, ["ap"], without_relevant="skip").means["ap"] == 0.75 / 3
    skipped = score_run(run, qrels, ["ap"], missing="skip")
    assert (skipped.means["ap"], skipped.queries) == (0.75 / 2, ["a", "b"])
    with refused("all queries are skipped"):
        score_run({"b": {"1": 1.0}}, {"b": {"1": 0}}, without_relevant="skip")


def test_scores_that_agree_in_single_precision_are_tied_if_asked_for():
    run = {"q": {"a": 1.00000001, "b": 1.0}}
    assert score_run(run, {"q": {"b": 1}}, ["ap"]).means["ap"] == 0.5
    means = score_run(run, {"q": {"b": 1}}, ["ap"], float32=True).means
    assert (means["ap_min"], means["ap"], means["ap_max"]) == (0.5, 0.75, 1.0)


def written(folder, run, qrels):
    """The run and its judgements as files: interleaved and unsorted lines, as no program writes them."""
    lines = [
        f"{query} Q0\t{document} 0  {value!r} tag\n"
        for query, documents in run.items()
        for document, value in documents.items()
    ]
    np.random.default_rng(0).shuffle(lines)
    (folder / "run.txt").write_text("\n".join(lines).replace("\n\n", "\n") + "\n\n")
    judged = [(q, d, r) for q, documents in qrels.items() for d, r in documents.items()]
    (folder / "qrels.txt").write_text("".join(f"{q} 0 {d} {r}\r\n" for q, d, r in judged))
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels.tsv").write_text(header + "".join(f"{q}\t{d}\t{r}\n" for q, d, r in judged))
    for name in ("run.txt", "qrels.tsv"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))


def varied_run():
    """Ids of many lengths, of which some begin alike, with letters beyond ASCII; scores in many notations."""
    rng = np.random.default_rng(5)
    ids = [f"{'http://example.org/' * (i % 3)}é{i}" for i in range(40)]
    values = [0.1, 1e-7, -3.0, 12345678.123456789, 5e22, 0.1, 2.5]
    run, qrels = {}, {}
    for query in ids[:20]:
        chosen = rng.permutation(40)[:15]
        run[query] = {ids[d]: values[rng.integers(len(values))] for d in chosen}
        qrels[query] = {ids[d]: int(rng.integers(0, 3)) for d in rng.permutation(40)[:12]}
    return run, qrels


def test_files_dictionaries_and_lists_of_ids_score_the_same(tmp_path, monkeypatch, printed):
    run, qrels = varied_run()
    written(tmp_path, run, qrels)
    expected = score_run(run, qrels, MEASURES)
    for first, second in (("run.txt", "qrels.txt"), ("run.txt.gz", "qrels.tsv.gz"), ("run.txt", "qrels.tsv")):
        found = score_run(tmp_path / first, str(tmp_path / second), MEASURES)
        assert found.means == expected.means and found.queries == expected.queries
    assert score_run(tmp_path / "run.txt", qrels, MEASURES).means == expected.means
    pairs = [(q, d, v) for q, some in run.items() for d, v in some.items()]
    judged = [(q, d, v) for q, some in qrels.items() for d, v in some.items()]
    arrays = dict(zip(LISTS, (np.array(part) for part in (*zip(*pairs), *zip(*judged)))))
    np.savez(tmp_path / "lists.npz", **arrays)
    assert printed("score-run", tmp_path / "lists.npz", "--measures", ",".join(MEASURES)) == expected.means
    # A hash under which all documents of a length are equal must not change a thing.
    hashes = tokens.hashes

    def by_length(words, seed):
        return hashes(words, seed) if seed > 1 else words.length.astype(np.uint64)

    monkeypatch.setattr(tokens, "hashes", by_length)
    monkeypatch.setattr(tokens, "_BLOCK", 100)
    assert score_run(tmp_path / "run.txt", tmp_path / "qrels.tsv", MEASURES).means == expected.means


def test_the_command_prints_and_writes_what_the_function_returns(tmp_path, printed):
    run, qrels = varied_run()
    written(tmp_path, run, qrels)
    options = ["--measures", "ap@5, ndcg@5", "--gains", "exponential", "--ap-at-normaliser", "min"]
    options += ["--relevant-from", "2", "--per-query", tmp_path / "out.csv"]
    found = printed("score-run", tmp_path / "run.txt", tmp_path / "qrels.txt", *options)
    settings = {"gains": "exponential", "ap_at_normaliser": "min", "relevant_from": 2}
    expected = score_run(run, qrels, ["ap@5", "ndcg@5"], **settings)
    assert found == expected.means
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["query"] for row in rows] == expected.queries
    for name, values in expected.per_query.items():
        assert [float(row[name]) for row in rows] == values.tolist()
    scores, relevance = np.random.default_rng(0).integers(0, 4, (2, 5, 30))
    np.savez(tmp_path / "dense.npz", scores=scores.astype(np.float16), relevance=relevance)
    found = printed("score-run", tmp_path / "dense.npz", "--measures", "ap,ndcg")
    assert found == score_array(scores, relevance, ["ap", "ndcg"]).means


GOOD_RUN, GOOD_QRELS = "1 Q0 a 1 2.5 t\n1 Q0 b 2 2.5 t\n", "1 0 a 1\n"


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ("1 Q0 a 1 2.5 t\n\n1 Q0 b 2 2.5\n", GOOD_QRELS, "run.txt: line 3: 5 columns where 6 are expected"),
        ("1 Q0 a 1 2.5 t\n1 Q0 b 2 2,5 t\n", GOOD_QRELS, "line 2: the score is not a number: '2,5'"),
        ("1 Q0 a 1 nan t\n", GOOD_QRELS, "run.txt: line 1: the score is not a number: 'nan'"),
        (f"1 Q0 a 1 {'x' * 99} t\n", GOOD_QRELS, "line 1: the score is not a number: 'xxx"),
        (GOOD_RUN + "1 Q0 a 3 1 t\n", GOOD_QRELS, "line 3: document 'a' is retrieved twice for query '1'"),
        ("", GOOD_QRELS, "run.txt: no lines"),
        ("2 Q0 a 1 2.5 t\n", GOOD_QRELS, "none of its queries (its first is '2') is judged in"),
        (GOOD_RUN, "1 0 a 1\n1 0 a 2\n", "qrels.txt: line 2: document 'a' is judged twice for query '1'"),
        (GOOD_RUN, "1 0 a 0.5\n", "qrels.txt: line 1: the relevance is not an integer: '0.5'"),
        (GOOD_RUN, "1 0 a 1\n1 a 1\n", "qrels.txt: line 2: 3 columns where 4 are expected"),
        (GOOD_RUN, "\n1 a\n", "qrels.txt: line 2: 2 columns where judgements have 4"),
        (GOOD_RUN, "query-id\tcorpus-id\tscore\n", "qrels.txt: no lines"),
        (GOOD_RUN, "1 0 a 3000000000\n", "the relevance is larger than 2^31 - 1: '3000000000'"),
        (GOOD_RUN, "1 0 a -3e9\n", "the relevance is smaller than -2147483647: '-3e9'"),
        ("a b\tQ0\td\t1\t1\tt\na b\tQ0\te\t1\t1\n", GOOD_QRELS, "run.txt: line 2: 5 columns where 6 are"),
        ('{"q": {"d": 1}, "q": {"e": 1}}', GOOD_QRELS, "'q' is there twice"),
        ("[1]", GOOD_QRELS, "run.txt: line 1: 1 columns where 6 are expected"),
        ('{"q": {"d": 1}', GOOD_QRELS, 'run.txt: not JSON of the form {"query": {"document": number}}'),
        ('{"q": {"d": "1_0"}}', GOOD_QRELS, "every value must be a number (is not a number: '1_0')"),
        ('{"q": [1]}', GOOD_QRELS, "run.txt: query 'q' must map documents to numbers"),
    ],
)
def test_a_malformed_line_ends_in_one_line_with_its_number(tmp_path, fails, run, qrels, message):
    (tmp_path / "run.txt").write_text(run)
    (tmp_path / "qrels.txt").write_text(qrels)
    assert message in fails("score-run", tmp_path / "run.txt", tmp_path / "qrels.txt")


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        ("map", "it is called 'ap' here"),
        ("MRR@10", "it is called 'reciprocal_rank@10' here"),
        ("ndcg_cut_10", "it is called 'ndcg@10' here"),
        ("P_5", "it is called 'precision@5' here"),
        ("Rprec", "it is called 'r_precision' here"),
        ("ndgc@10", "did you mean 'ndcg@K'"),
        ("recall@0", "K must be a positive integer, as in 'recall@10'"),
        ("ap@K", "K must be a positive integer, as in 'ap@10'"),
        ("recall", "it is called 'recall@K' here"),
    ],
)
def test_an_unknown_measure_is_told_what_it_is_called(measure, message):
    with refused(message):
        score_run({"q": {"a": 1.0}}, {"q": {"a": 1}}, [measure])


def lists(values):
    return score_lists(dict.fromkeys(LISTS, np.array(values, object if "1" in values else None)))


ONE = {"q": {"a": 1}}
MUST_BE = "must be the path of a file or a dictionary {query: {document: number}}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: score_run({"q": {"a": np.nan}}, ONE), "run: query 'q': the score is not a number"),
        (lambda: score_run(ONE, {"q": {"a": 1.5}}), "qrels: query 'q': the relevance is not an"),
        (lambda: score_run(ONE, ONE, "ap"), "measures must be a list of names"),
        (lambda: score_run(ONE, ONE, gains="cubic"), "gains must be one of linear"),
        (lambda: score_run(ONE, ONE, relevant_from=0), "relevant_from must be a pos"),
        (lambda: score_run(ONE, {"q": {"a": 2000}}, ["ndcg"], gains="exponential"), "use linear gains"),
        (lambda: score_run({"q": {}}, ONE), "run: no document is retrieved for a judged query"),
        (lambda: score_run({1: {"a": 1.0}, "1": {"b": 1.0}}, ONE), "run: 1 and '1' are one query"),
        (lambda: score_run(ONE, {1: {"a": 1}, "1": {"b": 1}}), "qrels: 1 and '1' are one query"),
        (lambda: score_run({"q": {1: 1.0, "1": 2.0}}, ONE), "document '1' is retrieved twice for query 'q'"),
        (lambda: score_run({"q": {"a": "1_0"}}, ONE), "run: every value must be a number"),
        (lambda: score_run(ONE, {"q": {"a": 2**64 - 1}}), "the relevance is larger than 2^31 - 1"),
        (lambda: score_run([["q", "a", 1.0]], ONE), f"run {MUST_BE}, not list; columns of a table go to"),
        (lambda: score_run(ONE, np.ones(3)), f"qrels {MUST_BE}, not ndarray; columns of a table go to"),
        (lambda: score_lists({"query": np.ones(2)}), "arrays: there is no document, score, judged_query"),
        (lambda: lists([0.5, 1]), "arrays: query[0] is 0.5; it must be an integer"),
        (lambda: lists([1, "1"]), "arrays: query must be all integers or all text: it holds '1' and 1"),
        (lambda: lists([[1, 1], [1, 1]]), "query must be integers or strings (n,), not"),
        (lambda: score_array(np.ones((2, 3)), np.ones((2, 4), int)), "must be matrices"),
        (lambda: score_array([[0.5, np.nan]], [[1, 0]]), "NaN, as the one of query 0 and item 1"),
        (lambda: score_array([[0.5, 1.0]], [[1.0, 0.5]]), "relevance[0, 1] is 0.5; it must be an integer"),
        (lambda: score_array([[0.5, 1.0]], np.array([[2**64 - 1, 0]], np.uint64)), f"at most {2**63 - 1}"),
        (lambda: score_array([[0.5, 1.0]], np.ma.array([[1, 0]], mask=[[0, 1]])), "relevance: 1 of its 2"),
        (lambda: score_array([[2**53 + 1, 2**53]], [[1, 0]]), "scores[0, 0] is 9007199254740993; integers"),
        (lambda: score_run({"q": {"a": 2**60 + 1, "b": 2**60}}, ONE), "is 1152921504606846977; integers"),
        (lambda: score_run({"q": {"a": 0.5, "b": 2**60 + 1}}, ONE), "is 1152921504606846977; integers"),
        (lambda: score_run({"q": {"a": 0.5, "b": np.int64(2**60 + 1)}}, ONE), "504606846977; integers"),
    ],
)
def test_values_that_cannot_be_scored_are_refused_in_one_line(call, message):
    with refused(message):
        call()


def test_wrong_arguments_of_the_command_are_refused(tmp_path, fails, misused):
    np.savez(tmp_path / "other.npz", scores=np.ones((2, 2)))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GOOD_RUN.encode())[:-9])
    (tmp_path / "qrels.txt").write_text(GOOD_QRELS)
    for arguments, message in (
        (["other.npz"], "it must hold scores and relevance, or query, document"),
        (["cut.gz", "qrels.txt"], "cut.gz: not a whole gzip file"),
        (["absent.txt", "qrels.txt"], "No such file"),
    ):
        assert message in fails("score-run", *(tmp_path / name for name in arguments))
    assert "required: QRELS" in misused("score-run", "run.txt")
    assert "give one file" in misused("score-run", "a.npz", "b.txt")
