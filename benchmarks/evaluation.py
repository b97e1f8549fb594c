"""Codes to scores: seconds, memory, first call, growth; against peers and limits."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks import evaluation_peers as peers
from benchmarks import handwritten, probe, synthetic
from benchmarks.report import duration, figure, megabytes, progress
from benchmarks.timing import Competitor, interleave
from evaluation import _popcount, exact
from evaluation.hamming import joint_histograms
from evaluation.scoring import score

JOINT = "joint_histograms"
KERNEL = "its kernel alone (codes sliced already)"
WHOLE = "score, everything included"
ARGSORT = "argsort loop (CalcTopMap style)"
BARE = "limit: XOR + popcount alone, compiled"
HANDWRITTEN = "hand-written C, vector code (kernel alone)"


class Disagreement(Exception):
    """A peer computes something else: its time would say nothing."""


def run(report, quick):
    """Print all tables. Returns the summary: rows (figure, reach, seen)."""
    rounds = 3 if quick else 7
    report.write("## Evaluation: codes to scores")
    try:
        by_hand, reason = handwritten.load(), None
    except handwritten.Unavailable as error:
        by_hand, reason = None, str(error)
        report.write(f"{HANDWRITTEN}: skipped ({reason}).")
    summary = []
    cells = [(synthetic.IMAGENET100, 48), (synthetic.CIFAR10_S1, 48), (synthetic.NUS21, 48)]
    if not quick:
        cells[1:1] = [(synthetic.IMAGENET100, 16), (synthetic.IMAGENET100, 64)]
    for shape, bits in cells:
        progress(f"evaluation: {shape.name}, {bits} bits")
        summary += _compare(report, synthetic.codes(shape, bits), by_hand, rounds, quick)
    progress("evaluation: growth")
    _growth(report, quick)
    progress("evaluation: memory and first calls, in fresh processes")
    summary += _fresh(report, quick)
    return summary


def _compare(report, codes, by_hand, rounds, quick):
    """One shape and length: all competitors in one interleaved run, shown in two tables."""
    shape, bits, affinity = codes.shape, codes.bits, codes.affinity
    some = 20 if quick else 40
    few = codes.first(some)  # extrapolated from these
    fewer = codes.first(some // 4)
    many = codes.first(min(8 * some, shape.queries))
    found = joint_histograms(codes.query, codes.database, bits, affinity)

    query_words, database_words = peers.words(codes.query), peers.words(codes.database)
    levels = many.affinity.block(0, len(many.query))
    scalar_counts = np.zeros((len(many.query), *found.counts.shape[1:]), np.int64)
    distances = np.bitwise_count(query_words[: len(fewer.query)] ^ database_words[:, 0]).astype(np.float64)
    affinities = fewer.affinity.levels[fewer.affinity.block(0, len(fewer.query))]
    query_signs, database_signs = peers.signs(codes.query, bits), peers.signs(codes.database, bits)
    labels = [peers.one_hot(part, shape.labels) for part in (codes.query_labels, codes.database_labels)]
    product = np.empty((some, shape.items), np.float32)

    def scalar():
        scalar_counts[:] = 0
        _popcount.count_levels(query_words[: len(levels)], database_words, levels, bits, scalar_counts)
        return scalar_counts

    def numpy_alone():
        return peers.numpy_histograms(few.query, few.database, bits, few.affinity)

    def argsort():
        return peers.argsort_average_precision(
            query_signs[:some], database_signs, labels[0][:some], labels[1]
        )

    def scikit():
        return peers.sklearn_ndcg(distances, affinities)

    def part(call, number):
        return Competitor(call, scale=shape.queries / number)

    whole = {WHOLE: lambda: score(codes.query, codes.database, bits, affinity)}
    whole[f"{ARGSORT}, {some} queries"] = argsort_part = part(argsort, some)
    whole[f"scikit-learn ndcg_score, distances given, {len(distances)} queries"] = part(
        scikit, len(distances)
    )
    counting = {JOINT: lambda: joint_histograms(codes.query, codes.database, bits, affinity)}
    if not shape.multi_hot:
        prepared = handwritten.Prepared(codes)
        counts = prepared.counts()

        def kernel(function):
            def call():
                counts[:] = 0
                function(prepared, counts)

            return call

        counting[KERNEL] = kernel(handwritten.count_with_the_product)
        if by_hand is not None:
            counting[HANDWRITTEN] = kernel(by_hand)
    counting[f"scalar XOR-popcount histogram, compiled, affinities given, {len(levels)} queries"] = part(
        scalar, len(levels)
    )
    counting[f"numpy bitwise_count + bincount, {some} queries"] = part(numpy_alone, some)
    counting[BARE + f", {len(levels)} queries"] = part(
        lambda: peers.sum_of_distances(query_words[: len(levels), 0], database_words[:, 0]), len(levels)
    )
    counting[f"limit: XOR + bitwise_count alone, numpy, {some} queries"] = part(
        lambda: [np.bitwise_count(database_words[:, 0] ^ word).max() for word in query_words[:some, 0]], some
    )
    counting[f"limit: one float32 matrix product of the same pairs, {some} queries"] = part(
        lambda: np.matmul(query_signs[:some], database_signs.T, out=product), some
    )

    # Timed only if they compute the same.
    agree = {
        "scalar": np.array_equal(scalar(), found.counts[: len(levels)]),
        "numpy": np.array_equal(numpy_alone(), found.counts[:some]),
        "scikit-learn": np.isclose(scikit(), exact.ndcg(found).expected[: len(distances)].mean(), atol=1e-9),
        "argsort": _within(argsort(), exact.average_precision(found), some),
    }
    if KERNEL in counting:
        counting[KERNEL]()
        agree["kernel"] = np.array_equal(counts, found.counts)
    if HANDWRITTEN in counting:
        counting[HANDWRITTEN]()
        agree["hand-written"] = np.array_equal(counts, found.counts)
    if not all(agree.values()):
        raise Disagreement(f"{shape.name}, {bits} bits: {[name for name, same in agree.items() if not same]}")

    seen = interleave(whole | counting, rounds)

    def rate(name):
        return figure(codes.pairs / seen[name].median / 1e9)

    report.write(
        f"### {shape.name}: {shape.queries:,} x {shape.items:,} codes of {bits} bits, {shape.labels} "
        + ("labels (multi-hot)" if shape.multi_hot else "classes"),
        "Rows that name a number of queries ran with so many and are extrapolated linearly to all; all histograms "
        "and metrics were checked to agree first.",
    )
    title = {"G pairs/s a thread": rate}
    report.times(seen, JOINT, list(counting), title)
    report.times(seen, WHOLE, list(whole), title)

    where = f"{shape.name}, {bits} bits"
    ratio = seen[f"{ARGSORT}, {some} queries"].ratio_to(seen[WHOLE])
    assert argsort_part.scale == shape.queries / some
    summary = []
    if shape is synthetic.IMAGENET100 and bits == 48:
        summary.append((f"joint histograms, {where}", "at least 5 G pairs/s", f"{rate(JOINT)} G pairs/s"))
        summary.append((f"{WHOLE}, {where}", "under 0.5 s", duration(seen[WHOLE].median)))
        summary.append((f"argsort loop over score, {where}", "at least 300", figure(ratio)))
        if by_hand is not None:
            gap = seen[KERNEL].ratio_to(seen[HANDWRITTEN])
            summary.append((f"kernel over hand-written vector code, {where}", "at most 2", figure(gap)))
    if shape is synthetic.CIFAR10_S1:
        summary.append((f"argsort loop over score, {where}", "at least 30", figure(ratio)))
    return summary


def _within(value, tie_range, queries):
    """A sort leaves ties in one of the orders that the range covers. float32 distances are exact here."""
    low, high = tie_range.minimum[:queries].mean(), tie_range.maximum[:queries].mean()
    return low - 1e-9 <= value <= high + 1e-9


def _growth(report, quick):
    sizes = (16000, 32000, 64000) if quick else (8000, 16000, 32000, 64000, 128000, 256000)
    queries = (500, 1000, 2000) if quick else (250, 500, 1000, 2000, 4000)
    lengths = (12, 16, 24, 32, 48, 64, 128)

    def shape(q, n):
        return synthetic.Shape("growth", q, n, 10)

    series = (
        ("N (Q = 1,000, 48 bits)", sizes, lambda n: synthetic.codes(shape(1000, n), 48)),
        ("Q (N = 59,000, 48 bits)", queries, lambda q: synthetic.codes(shape(q, 59000), 48)),
        ("bits (Q = 1,000, N = 59,000)", lengths, lambda b: synthetic.codes(shape(1000, 59000), b)),
    )
    report.write(
        "### Growth of joint_histograms and of score",
        "The exponent is that of the step from the row above: log of the ratio of times over log of the ratio of "
        "sizes. Above 64 bits the scalar kernel serves.",
    )
    for name, values, make in series:
        competitors = {}
        for value in values:
            codes = make(value)
            arguments = (codes.query, codes.database, codes.bits, codes.affinity)
            competitors[JOINT, value] = lambda given=arguments: joint_histograms(*given)
            competitors[WHOLE, value] = lambda given=arguments: score(*given)
        seen = interleave(competitors, 3 if quick else 5)
        rows = []
        for k, value in enumerate(values):
            row = [f"{value:,}"]
            for what in (JOINT, WHOLE):
                row.append(duration(seen[what, value].median))
                row.append(_exponent(seen, what, values[k - 1], value) if k else "")
            rows.append(row)
        report.rows([name, JOINT, "exponent", "score", "exponent"], rows)


def _exponent(seen, what, before, value):
    ratio = seen[what, value].ratio_to(seen[what, before])
    return f"{np.log(ratio) / np.log(value / before):.2f}"


def _fresh(report, quick):
    summary = []
    lengths = (48,) if quick else (16, 48, 64)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "codes.npz"
        rows = []
        shapes = [(synthetic.IMAGENET100, bits) for bits in lengths]
        if not quick:
            shapes.append((synthetic.Shape("4 x the database", 5000, 4 * 128503, 100), 48))
        for shape, bits in shapes:
            codes = synthetic.codes(shape, bits)
            probe.save(file, codes)
            empty, full = probe.run("load", file), probe.run("score", file)
            size = codes.query.nbytes + codes.database.nbytes
            size += codes.query_labels.nbytes + codes.database_labels.nbytes
            histograms = shape.queries * 2 * (bits + 1) * 8
            rows.append(
                (
                    f"{shape.name}, {shape.queries:,} x {shape.items:,}, {bits} bits",
                    megabytes(full["peak"] - empty["peak"]),
                    megabytes(full["peak"]),
                    megabytes(size),
                    megabytes(histograms),
                    megabytes(4 * codes.pairs),
                )
            )
            if bits == 48 and shape is synthetic.IMAGENET100:
                # What is compiled once serves every length; the file still holds this cell if it is the last.
                first = probe.run("first", file)
                with tempfile.TemporaryDirectory() as cache:
                    cold = probe.run("first", file, cache)
        report.write(
            "### Peak memory of score, in a fresh process",
            "Above baseline: less the peak of a process that only imports the same and loads the arrays. It "
            "includes loading the compiled kernels.",
        )
        report.rows(
            [
                "",
                "above baseline",
                "whole process",
                "codes and labels",
                "histograms",
                "a float32 Q x N matrix",
            ],
            rows,
        )
        report.write("### First call in a fresh process, ImageNet100, 48 bits")
        report.rows(
            ["kernels", "imports (numba included)", "first score", "second score", "difference"],
            [
                (name, duration(seen["import"]), *map(duration, seen["calls"]), _pause(seen["calls"]))
                for name, seen in (("cached (as after set-up)", first), ("empty cache: compiled", cold))
            ],
        )
        pause = first["calls"][0] - first["calls"][1]
        summary.append(
            ("first score of a process, kernels cached: pause", "at most 1 s", duration(max(pause, 0)))
        )
    return summary


def _pause(calls):
    return duration(max(calls[0] - calls[1], 0))
