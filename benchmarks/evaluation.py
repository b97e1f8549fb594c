"""Codes to scores: seconds, memory, first call, growth; against peers and limits."""

import tempfile
from pathlib import Path

import numpy as np

from benchmarks import evaluation_peers as peers
from benchmarks import optional_peers, probe, synthetic
from benchmarks.report import duration, figure, megabytes, progress
from benchmarks.timing import Competitor, Disagreement, interleave
from tiebench.counting import popcount as _popcount
from tiebench.counting.histograms import SLICED_BITS, joint_histograms
from tiebench.rankings import exact
from tiebench.scoring import score_codes

JOINT = "joint_histograms"
KERNEL = "its kernel alone (codes sliced already)"
WHOLE = "score, everything included"
ARGSORT = "argsort loop of the field (CalcTopMap)"
RATE = "G pairs/s a thread"
SCALAR = "scalar popcount + increment, compiled, affinities given"
ON_DEVICE = "tiebench.counting.on_device on CUDA, codes there already"


def run(report, quick):
    """Print all tables. Returns the summary: rows (figure, reach, seen)."""
    rounds = 3 if quick else 7
    report.write("## Evaluation: codes to scores")
    libraries = optional_peers.found()
    for name in optional_peers.PEERS:
        if name not in libraries:
            report.write(f"{name}: skipped (not installed).")
    if "pytorch_metric_learning" in libraries and "faiss" not in libraries:
        report.write("pytorch_metric_learning: skipped (it searches with faiss, which is not installed).")
        del libraries["pytorch_metric_learning"]
    cuda = _cuda()
    if cuda is None:
        report.write("tiebench.counting.on_device: not timed (no CUDA device).")
    summary = []
    cells = [(synthetic.IMAGENET100, 48), (synthetic.CIFAR10_S1, 48), (synthetic.NUS21, 48)]
    cells.append((synthetic.CIFAR10_S1, 128))
    if not quick:
        cells[1:1] = [(synthetic.IMAGENET100, bits) for bits in (16, 64, 128)]
        cells[-1:] = [(synthetic.NUS81, 48), (synthetic.CIFAR10_S1, 128), (synthetic.NUS21, 128)]
    for shape, bits in cells:
        progress(f"evaluation: {shape.name}, {bits} bits")
        codes = synthetic.codes(shape, bits)
        summary += _compare(report, codes, libraries, cuda, rounds, quick)
    _bandwidth(report, rounds)
    progress("evaluation: growth")
    summary += _growth(report, quick)
    progress("evaluation: memory and first calls, in fresh processes")
    summary += _fresh(report, quick)
    return summary


def _cuda():
    """torch, where it finds a CUDA device, else None."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def _compare(report, codes, libraries, cuda, rounds, quick):
    """One shape and length: all competitors in one interleaved run, shown in two tables."""
    shape, bits, affinity = codes.shape, codes.bits, codes.affinity
    some = 20 if quick else 40  # the peers run on the first few queries
    fewer, many = some // 4, min(8 * some, shape.queries)
    found = joint_histograms(codes.query, codes.database, bits, affinity)

    query_words, database_words = peers.words(codes.query), peers.words(codes.database)
    query_columns, database_columns = peers.columns(query_words), peers.columns(database_words)
    database_planes = np.ascontiguousarray(database_words.T)
    levels = affinity.block(0, many)
    scalar_counts = np.zeros((many, *found.counts.shape[1:]), np.int64)
    distances = peers.distances(query_words[:fewer], database_words)
    affinities = found.levels[levels[:fewer]]
    query_signs, database_signs = peers.signs(codes.query[:some], bits), peers.signs(codes.database, bits)
    labels = [
        peers.one_hot(part, shape.labels) for part in (codes.query_labels[:some], codes.database_labels)
    ]
    fast_labels = [part.astype(np.float32) for part in labels]
    product = np.empty((some, shape.items), np.float32)

    def scalar():
        scalar_counts[:] = 0
        if len(query_columns) == 1:
            peers.scalar_histograms(
                query_columns[0][:many], database_columns[0], bits, levels, scalar_counts
            )  # fmt: skip
        else:
            peers.scalar_histograms_of_words(query_words[:many], database_words, bits, levels, scalar_counts)
        return scalar_counts

    def popcount():
        scalar_counts[:] = 0
        _popcount.count_levels(query_words[:many], database_planes, levels, bits, scalar_counts)
        return scalar_counts

    def numpy_alone():
        return peers.numpy_histograms(
            query_columns, database_columns, bits, levels[:some], len(found.levels)
        )  # fmt: skip

    def argsort(labels):
        return peers.argsort_average_precision(query_signs, database_signs, *labels)

    def scikit():
        return peers.sklearn_ndcg(distances, affinities)

    whole = {WHOLE: lambda: score_codes(codes.query, codes.database, bits, affinity)}
    counting = {JOINT: lambda: joint_histograms(codes.query, codes.database, bits, affinity)}

    def add(table, name, number, call):
        table[f"{name} ({number} queries)"] = Competitor(call, scale=shape.queries / number)

    add(whole, ARGSORT, some, lambda: argsort(labels))
    add(whole, f"{ARGSORT}, float32 labels", some, lambda: argsort(fast_labels))
    add(whole, "scikit-learn ndcg_score, distances and affinities given", fewer, scikit)
    published = _published(libraries, codes, query_words, database_words, levels, found, fewer)
    for table, name, call, _ in published:
        add(counting if table == JOINT else whole, name, fewer, call)
    if cuda is not None:
        counting[ON_DEVICE] = on_device = _on_device(cuda, codes)
    if not shape.multi_hot and bits <= SLICED_BITS:
        counting[KERNEL] = peers.sliced_kernel(codes)
    add(counting, SCALAR, many, scalar)
    add(
        counting, "tiebench.counting.popcount (over 128 bits, any affinity), affinities given", many, popcount
    )
    add(counting, "numpy bitwise_count + bincount, affinities given", some, numpy_alone)
    add(
        counting,
        "limit: XOR + popcount alone, compiled",
        many,
        lambda: [
            peers.sum_of_distances(one[:many], other) for one, other in zip(query_columns, database_columns)
        ],
    )
    add(
        counting,
        "limit: XOR + bitwise_count alone, numpy",
        some,
        lambda: [
            np.bitwise_count(other ^ word)
            for one, other in zip(query_columns, database_columns)
            for word in one[:some]
        ],
    )
    add(
        counting,
        "limit: one float32 matrix product of the same pairs",
        some,
        lambda: np.matmul(query_signs, database_signs.T, out=product),
    )

    # Timed only if they compute the same.
    ranges = exact.average_precision(found)
    agree = {
        "scalar": np.array_equal(scalar(), found.counts[:many]),
        "_popcount": np.array_equal(popcount(), found.counts[:many]),
        "numpy": np.array_equal(numpy_alone(), found.counts[:some]),
        "scikit-learn": np.isclose(scikit(), exact.ndcg(found).expected[:fewer].mean(), rtol=0, atol=1e-9),
        "argsort": _within(argsort(labels), ranges, some),
        "argsort, float32 labels": _within(argsort(fast_labels), ranges, some),
    }
    agree |= {name: check() for _, name, _, check in published}
    if cuda is not None:
        agree[ON_DEVICE] = np.array_equal(on_device(), found.counts)
    if KERNEL in counting:
        agree[KERNEL] = np.array_equal(counting[KERNEL](), found.counts)
    if not all(agree.values()):
        raise Disagreement(f"{shape.name}, {bits} bits: {[name for name, same in agree.items() if not same]}")

    seen = interleave(whole | counting, rounds)

    def rate(name):
        return figure(codes.pairs / seen[name].median / 1e9)

    kind = "labels (multi-hot)" if shape.multi_hot else "classes"
    where = f"{shape.name}, {bits} bits"
    report.write(
        f"### {where}: {shape.queries:,} x {shape.items:,}, {shape.labels} {kind}",
        "Rows that state a number of queries were measured on that many and extrapolated linearly to "
        "all of them. All histograms and metrics were first checked to agree.",
    )
    report.times(seen, JOINT, list(counting), {RATE: rate})
    report.times(seen, WHOLE, list(whole), {RATE: rate})

    summary = []
    if shape is synthetic.IMAGENET100 and bits == 48:
        for table, name, _, _ in published:
            ratio = seen[f"{name} ({fewer} queries)"].ratio_to(seen[table])
            summary.append((f"{name}, over {table}, {where}", "above 1", figure(ratio)))
    if bits > 64:
        scalar_peer = seen[f"{SCALAR} ({many} queries)"].ratio_to(seen[JOINT])
        summary.append((f"scalar peer over joint histograms, {where}", "at least 1", figure(scalar_peer)))
    peer, quick_peer = (
        figure(seen[f"{name} ({some} queries)"].ratio_to(seen[WHOLE]))
        for name in (ARGSORT, f"{ARGSORT}, float32 labels")
    )
    peer = f"{peer} (float32 labels {quick_peer})"
    if shape is synthetic.IMAGENET100 and bits == 48:
        summary += [
            (f"joint histograms, {where}", "at least 5 G pairs/s", f"{rate(JOINT)} G pairs/s"),
            (f"{WHOLE}, {where}", "under 0.5 s", duration(seen[WHOLE].median)),
            (f"argsort loop over score, {where}", "at least 500", peer),
        ]
    if shape is synthetic.CIFAR10_S1 and bits == 48:
        summary.append((f"argsort loop over score, {where}", "at least 150", peer))
    return summary


def _published(libraries, codes, query_words, database_words, levels, found, queries):
    """Published libraries on the first queries: rows (table, name, call, check of its result)."""
    bits, depth = codes.bits, len(found.levels)
    query, relevant = query_words[:queries], levels[:queries] > 0
    ranges, gains = exact.average_precision(found), exact.ndcg(found)
    rows = []

    def add(table, name, call, check):
        rows.append((table, name, call, lambda: check(call())))

    def tied(value):
        # Single precision, and a mean of the queries.
        return _within(value, ranges, queries, 1e-5)

    if "faiss" in libraries:
        faiss = libraries["faiss"]
        faiss.omp_set_num_threads(1)
        add(
            JOINT,
            "faiss.hammings + numpy bincount, affinities given",
            lambda: optional_peers.faiss_histograms(faiss, query, database_words, bits, levels, depth),
            lambda counts: np.array_equal(counts, found.counts[:queries]),
        )
        for heap in (False, True):
            index = optional_peers.faiss_index(faiss, database_words, heap)
            kind = "a heap, its default" if heap else "without a heap"
            add(
                WHOLE,
                f"faiss IndexBinaryFlat, k = N, {kind}; AP, index and affinities given",
                lambda index=index: optional_peers.faiss_average_precision(index, query, relevant),
                tied,
            )
    if "torchmetrics" in libraries:
        import torch
        from torchmetrics.functional.retrieval import retrieval_average_precision, retrieval_normalized_dcg

        torch.set_num_threads(1)
        distances = torch.from_numpy(peers.distances(query, database_words).astype(np.float32))
        hits = torch.from_numpy(relevant.astype(np.int64))
        # It takes integers.
        gained = torch.from_numpy((2**found.levels - 1)[levels[:queries]])
        add(
            WHOLE,
            "torchmetrics retrieval_average_precision, distances and affinities given",
            lambda: optional_peers.torchmetrics_mean(retrieval_average_precision, distances, hits, bits),
            tied,
        )
        add(
            WHOLE,
            "torchmetrics retrieval_normalized_dcg, distances and affinities given",
            lambda: optional_peers.torchmetrics_mean(retrieval_normalized_dcg, distances, gained, bits),
            # Its running sum of discounts is of single precision.
            lambda value: np.isclose(value, gains.expected[:queries].mean(), rtol=0, atol=2e-3),
        )
    if "pytorch_metric_learning" in libraries and not codes.shape.multi_hot:
        calculator = optional_peers.learning_calculator(libraries["pytorch_metric_learning"])
        given = (peers.signs(codes.query[:queries], bits), peers.signs(codes.database, bits))
        given += (codes.query_labels[:queries], codes.database_labels)
        add(
            WHOLE,
            "pytorch-metric-learning, mean average precision of its AccuracyCalculator",
            lambda: optional_peers.learning_average_precision(calculator, *given),
            tied,
        )
    return rows


def _on_device(torch, codes):
    from tiebench.counting import on_device

    query, database = (torch.from_numpy(part).cuda() for part in (codes.query, codes.database))
    return lambda: on_device.joint_histograms(query, database, codes.bits, codes.affinity).counts


def _bandwidth(report, rounds):
    words = np.ones((64 if rounds < 5 else 256) * 2**20 // 8, np.uint64)
    seen = interleave({"read": lambda: peers.fold(words)}, rounds)["read"]
    rate = figure(words.nbytes / seen.median / 1e9)
    report.write(f"Memory read bandwidth: {rate} GB/s (one thread, {words.nbytes >> 20} MiB).")


def _within(value, tie_range, queries, tolerance=1e-9):
    """A sort leaves ties in one of the orders that the range covers. float32 distances are exact here."""
    low, high = tie_range.minimum[:queries].mean(), tie_range.maximum[:queries].mean()
    return low - tolerance <= value <= high + tolerance


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
        "The exponent is that of the step from the row above: log of the ratio of times divided by log "
        "of the ratio of sizes.",
    )
    summary = []
    for name, values, make in series:
        competitors = {}
        for value in values:
            codes = make(value)
            arguments = (codes.query, codes.database, codes.bits, codes.affinity)
            competitors[JOINT, value] = lambda given=arguments: joint_histograms(*given)
            competitors[WHOLE, value] = lambda given=arguments: score_codes(*given)
        seen = interleave(competitors, 3 if quick else 5)
        rows = []
        for k, value in enumerate(values):
            row = [f"{value:,}"]
            for what in (JOINT, WHOLE):
                row.append(duration(seen[what, value].median))
                row.append(_exponent(seen, what, values[k - 1], value) if k else "")
            rows.append(row)
        report.rows([name, JOINT, "exponent", "score", "exponent"], rows)
        if 128 in values:
            share = seen[JOINT, 64].ratio_to(seen[JOINT, 128])
            what = "joint histograms, 1,000 x 59,000: pairs a second at 128 bits over those at 64"
            summary.append((what, "at least 0.5", figure(share)))
    return summary


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
            empty, kernels, full = (probe.run(task, file)["peak"] for task in ("load", "kernels", "score"))
            size = codes.query.nbytes + codes.database.nbytes
            size += codes.query_labels.nbytes + codes.database_labels.nbytes
            histograms = shape.queries * 2 * (bits + 1) * 8
            rows.append(
                (
                    f"{shape.name}, {shape.queries:,} x {shape.items:,}, {bits} bits",
                    megabytes(full - empty),
                    megabytes(full - kernels),
                    megabytes(full),
                    megabytes(size),
                    megabytes(histograms),
                    megabytes(4 * codes.pairs),
                )
            )
            if bits == 48 and shape is synthetic.IMAGENET100:
                # Measured here, while the file holds this cell; one compilation serves every length.
                first = probe.run("first", file)
                with tempfile.TemporaryDirectory() as cache:
                    cold = probe.run("first", file, cache)
        report.write(
            "### Peak memory of score, in a fresh process",
            "Above loading: minus the peak of a process that only imports the same modules and loads "
            "the arrays. Above kernels: minus the peak of a process that also scores 8 queries against "
            "1,000 items, and therefore holds the compiled kernels and the code that loads them.",
        )
        report.rows(
            [
                "",
                "above loading",
                "above kernels",
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
                for name, seen in (("cached (as after setup)", first), ("empty cache: compiled", cold))
            ],
        )
        pause = first["calls"][0] - first["calls"][1]
        summary.append(
            ("first score of a process, kernels cached: pause", "at most 1 s", duration(max(pause, 0)))
        )
    return summary


def _pause(calls):
    return duration(max(calls[0] - calls[1], 0))
