"""Codes to scores: seconds, memory and first call, beside peers and the limit of the machine."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks import evaluation_peers as peers
from benchmarks import optional_peers, probe, synthetic
from benchmarks.report import duration, megabytes, progress, rounded
from benchmarks.timing import Competitor, Disagreement, interleave
from tiebench.codes.packing import as_words
from tiebench.counting import on_device
from tiebench.counting.histograms import joint_histograms
from tiebench.rankings import exact
from tiebench.scoring import score_codes

JOINT = "joint_histograms"
WHOLE = "score"
RATE = "G pairs/s a thread"
ARGSORT = "argsort loop of the field (CalcTopMap)"
ARGSORT_TARGETS = {synthetic.IMAGENET100: "at least 500", synthetic.CIFAR10_S1: "at least 150"}
SHAPES = (synthetic.IMAGENET100, synthetic.CIFAR10_S1, synthetic.NUS21)
BITS = 48


@dataclass(frozen=True)
class Peer:
    """What is timed beside `base`, on the first `queries` of a cell; agrees: whether its result is right."""

    base: str
    name: str
    queries: int
    call: Callable
    agrees: Callable
    limit: bool = False  # of the machine, which does less

    @property
    def title(self):
        return f"{self.name} ({self.queries:,} queries)"


def run(report, quick):
    """Print all tables."""
    report.write("## Evaluation: codes to scores")
    libraries = optional_peers.found(optional_peers.PEERS)
    if "pytorch_metric_learning" in libraries and "faiss" not in libraries:
        report.write("pytorch_metric_learning: skipped (it searches with faiss, which is not installed).")
        del libraries["pytorch_metric_learning"]
    if not torch.cuda.is_available():
        report.write("tiebench.counting.on_device: not timed (no CUDA device).")
    for shape in SHAPES:
        progress(f"evaluation: {shape.name}")
        _compare(report, synthetic.codes(shape, BITS), libraries, quick)
    progress("evaluation: lengths of codes")
    _lengths(report, quick)
    progress("evaluation: memory and first calls, in fresh processes")
    _fresh(report)


def _compare(report, codes, libraries, quick):
    """One shape and length: all competitors in one interleaved run, shown in two tables."""
    shape, bits = codes.shape, codes.bits
    given = (codes.query, codes.database, bits, codes.affinity)
    found = joint_histograms(*given)
    some = 20 if quick else 40
    compared = [*_peers(codes, found, some), *_libraries(libraries, codes, found, some // 4)]
    # Timed only if they compute the same.
    if wrong := [peer.name for peer in compared if not peer.agrees(peer.call())]:
        raise Disagreement(f"{shape.name}, {bits} bits: {wrong}")
    competitors = {JOINT: lambda: joint_histograms(*given), WHOLE: lambda: score_codes(*given)}
    competitors |= {
        peer.title: Competitor(peer.call, scale=shape.queries / peer.queries) for peer in compared
    }
    seen = interleave(competitors, 3 if quick else 7)

    where, size = f"{shape.name}, {bits} bits", f"{shape.queries:,} x {shape.items:,}, {bits} bits"
    report.write(
        f"### {where}: {shape.queries:,} x {shape.items:,}, {shape.labels} "
        + ("labels (multi-hot)" if shape.multi_hot else "classes"),
        "Rows that state a number of queries were measured on that many and extrapolated linearly to "
        "all of them. All histograms and metrics were first checked to agree.",
    )
    for base in (JOINT, WHOLE):
        names = [base, *(peer.title for peer in compared if peer.base == base)]
        report.times(seen, base, names, (RATE, codes.pairs / 1e9))
    report.target(f"{WHOLE}, {where}", "under 0.5 s", duration(seen[WHOLE].median))
    report.wait(f"`score`, every metric, {size}", duration(seen[WHOLE].median))
    ratios = {peer.name: seen[peer.title].ratio_to(seen[peer.base]) for peer in compared}
    if shape in ARGSORT_TARGETS:
        report.target(f"{ARGSORT} over score, {where}", ARGSORT_TARGETS[shape], ratios[ARGSORT])
    if shape is synthetic.IMAGENET100:
        rate = rounded(codes.pairs / seen[JOINT].median / 1e9)
        report.target(f"joint histograms, {where}", "at least 5 G pairs/s", f"{rate} G pairs/s")
        for peer in compared:
            if not peer.limit:
                report.peer(f"`{peer.base}`, {size}", peer.name, ratios[peer.name])


def _peers(codes, found, some):
    """What this package holds, on the first `some` queries, and the limit on more of them."""
    bits, shape, counts = codes.bits, codes.shape, found.counts
    query, database = (as_words(part) for part in (codes.query, codes.database))
    columns = peers.columns(query), peers.columns(database)
    levels = codes.affinity.block(0, some)
    signs = peers.signs(codes.query[:some], bits), peers.signs(codes.database, bits)
    labels = [
        peers.one_hot(part, shape.labels) for part in (codes.query_labels[:some], codes.database_labels)
    ]
    fast_labels = [part.astype(np.float32) for part in labels]
    few, many = some // 4, min(8 * some, shape.queries)
    given = peers.distances(query[:few], database), found.levels[levels[:few]]
    ranges, gains = exact.average_precision(found), exact.ndcg(found)
    sums = (counts[:many].sum(axis=1) * np.arange(bits + 1)).sum()

    def in_range(value):
        return _within(value, ranges, some)

    def limit():
        return sum(peers.sum_of_distances(one[:many], other) for one, other in zip(*columns))

    def by_argsort(labels):
        return lambda: peers.argsort_average_precision(*signs, *labels)

    def of(queries):
        return lambda result: np.array_equal(result, counts[:queries])

    if torch.cuda.is_available():
        held = [torch.from_numpy(part).cuda() for part in (codes.query, codes.database)]
        name = "tiebench.counting.on_device on CUDA, codes there already"
        call = lambda: on_device.joint_histograms(*held, bits, codes.affinity).counts  # noqa: E731
        yield Peer(JOINT, name, shape.queries, call, of(shape.queries))
    name = "numpy bitwise_count + bincount, affinities given"
    call = lambda: peers.numpy_histograms(*columns, bits, levels, len(found.levels))  # noqa: E731
    yield Peer(JOINT, name, some, call, of(some))
    name = "limit: XOR + popcount alone, compiled"
    yield Peer(JOINT, name, many, limit, lambda total: total == sums, limit=True)
    yield Peer(WHOLE, ARGSORT, some, by_argsort(labels), in_range)
    yield Peer(WHOLE, f"{ARGSORT}, float32 labels", some, by_argsort(fast_labels), in_range)
    name = "scikit-learn ndcg_score, distances and affinities given"
    expected = gains.expected[:few].mean()
    yield Peer(
        WHOLE, name, few, lambda: peers.sklearn_ndcg(*given), lambda value: abs(value - expected) < 1e-9
    )


def _libraries(libraries, codes, found, queries):
    """Published libraries that are installed, on the first queries."""
    bits, depth = codes.bits, len(found.levels)
    query, database = as_words(codes.query[:queries]), as_words(codes.database)
    levels = codes.affinity.block(0, queries)
    ranges, gain = exact.average_precision(found), exact.ndcg(found).expected[:queries].mean()

    def peer(base, name, call, agrees):
        return Peer(base, name, queries, call, agrees)

    def in_range(value):
        # Single precision, and a mean of the queries.
        return _within(value, ranges, queries, 1e-5)

    if faiss := libraries.get("faiss"):
        faiss.omp_set_num_threads(1)
        yield peer(
            JOINT,
            "faiss.hammings + numpy bincount, affinities given",
            lambda: optional_peers.faiss_histograms(faiss, query, database, bits, levels, depth),
            lambda counts: np.array_equal(counts, found.counts[:queries]),
        )
        for heap, kind in ((False, "without a heap"), (True, "a heap, its default")):
            index = optional_peers.faiss_index(faiss, database, heap)
            yield peer(
                WHOLE,
                f"faiss IndexBinaryFlat, k = N, {kind}; AP, index and affinities given",
                lambda index=index: optional_peers.faiss_average_precision(index, query, levels > 0),
                in_range,
            )
    if "torchmetrics" in libraries:
        from torchmetrics.functional import retrieval

        torch.set_num_threads(1)
        distances = torch.from_numpy(peers.distances(query, database).astype(np.float32))
        hits = torch.from_numpy((levels > 0).astype(np.int64))
        # It takes integers; its running sum of discounts is of single precision.
        gains = torch.from_numpy((2**found.levels - 1)[levels])
        for function, targets, agrees in (
            (retrieval.retrieval_average_precision, hits, in_range),
            (retrieval.retrieval_normalized_dcg, gains, lambda value: abs(value - gain) < 2e-3),
        ):
            yield peer(
                WHOLE,
                f"torchmetrics {function.__name__}, distances and affinities given",
                lambda function=function, targets=targets: optional_peers.torchmetrics_mean(
                    function, distances, targets, bits
                ),
                agrees,
            )
    if "pytorch_metric_learning" in libraries and not codes.shape.multi_hot:
        calculator = optional_peers.learning_calculator(libraries["pytorch_metric_learning"])
        given = (peers.signs(codes.query[:queries], bits), peers.signs(codes.database, bits))
        given += (codes.query_labels[:queries], codes.database_labels)
        yield peer(
            WHOLE,
            "pytorch-metric-learning, mean average precision of its AccuracyCalculator",
            lambda: optional_peers.learning_average_precision(calculator, *given),
            in_range,
        )


def _within(value, tie_range, queries, tolerance=1e-9):
    """A sort leaves ties in one of the orders that the range covers. float32 distances are exact here."""
    low, high = tie_range.minimum[:queries].mean(), tie_range.maximum[:queries].mean()
    return low - tolerance <= value <= high + tolerance


def _lengths(report, quick):
    """Joint histograms of codes of several lengths."""
    shape, competitors = synthetic.CIFAR10_S1, {}
    for bits in (16, 32, 64, 128):
        codes = synthetic.codes(shape, bits)
        given = (codes.query, codes.database, bits, codes.affinity)
        competitors[f"{bits} bits"] = lambda given=given: joint_histograms(*given)
    title, work = f"joint_histograms by length, {shape.name}", (RATE, codes.pairs / 1e9)
    seen = report.compare(title, competitors, 3 if quick else 5, "64 bits", work=work)
    quantity = "joint histograms, 1,000 x 59,000: pairs a second at 128 bits over those at 64"
    report.target(quantity, "at least 0.5", seen["64 bits"].ratio_to(seen["128 bits"]))


def _fresh(report):
    """Memory, first calls and scores without Numba, each in a process of its own."""
    codes, smaller = (synthetic.codes(shape, BITS) for shape in (synthetic.IMAGENET100, synthetic.CIFAR10_S1))
    with tempfile.TemporaryDirectory() as folder:
        file = _save(codes, Path(folder, "codes.npz"))
        cached = probe.run("score", file)
        compiled = probe.run("score", file, NUMBA_CACHE_DIR=f"{folder}/empty")
        plain = probe.run("score_without_numba", _save(smaller, Path(folder, "smaller.npz")))
    report.write("### Peak memory of score in a fresh process, ImageNet100, 48 bits")
    sizes = {
        "whole process": cached["peak"],
        "codes and labels": sum(array.nbytes for array in _arrays(codes).values()),
        "a float32 Q x N matrix": 4 * codes.pairs,
    }
    report.rows([*sizes], [[megabytes(size) for size in sizes.values()]])
    report.wait(
        "memory of a process that scores 5,000 x 128,503 codes, all in all", megabytes(cached["peak"])
    )
    report.write("### First call in a fresh process, ImageNet100, 48 bits")
    report.rows(
        ["kernels", "imports (numba included)", "first score", "second score", "difference"],
        [
            (name, *map(duration, (seen["import"], *seen["calls"], probe.pause(seen))))
            for name, seen in (("cached (as after setup)", cached), ("empty cache: compiled", compiled))
        ],
    )
    pauses = [duration(probe.pause(seen)) for seen in (cached, compiled)]
    report.target("first score of a process, kernels cached: pause", "at most 1 s", pauses[0])
    report.wait("first score of a process, kernels loaded: pause", pauses[0])
    report.wait("the same, kernels compiled", pauses[1])
    size = f"{smaller.shape.queries:,} x {smaller.shape.items:,}, {smaller.bits} bits"
    report.wait(f"`score`, every metric, {size}, without Numba", duration(plain["calls"][1]))


def _arrays(codes):
    return {
        "query": codes.query,
        "database": codes.database,
        "query_labels": codes.query_labels,
        "database_labels": codes.database_labels,
    }


def _save(codes, file):
    np.savez(file, bits=codes.bits, **_arrays(codes))
    return file
