"""Published libraries that score codes or runs, timed if they are installed.

Each is given what favours it: affinities, distances or an index that are there already.
"""

import importlib
import importlib.metadata
import importlib.util

import numpy as np

# Module -> the package to install for it; another may bring it, too.
PEERS = {
    "faiss": "faiss-cpu",
    "torchmetrics": "torchmetrics",
    "pytorch_metric_learning": "pytorch-metric-learning",
}
# The same for runs with scores; not part of the group `benchmarks`: pip install ranx pytrec_eval-terrier.
RUN_PEERS = {"pytrec_eval": "pytrec_eval-terrier", "ranx": "ranx"}


def found(names):
    """Module -> its module object for the peers that are installed here; it is imported."""
    return {name: importlib.import_module(name) for name in names if importlib.util.find_spec(name)}


def versions():
    """(texts "package version" of the peers that are installed, packages of those that are not)."""
    brought_by = importlib.metadata.packages_distributions()
    present, absent = [], []
    for name, package in (PEERS | RUN_PEERS).items():
        if name not in brought_by:
            absent.append(package)
        else:
            (package, *_) = brought_by[name]
            present.append(f"{package} {importlib.metadata.version(package)}")
    return present, absent


def faiss_histograms(faiss, query, database, bits, levels, depth):
    """Joint histograms int64 (Q, depth, b + 1): faiss.hammings, then a bincount a query.

    query, database: words uint64 (Q, W), (N, W); levels: uint8 (Q, N), the affinities.
    """
    query, items = np.ascontiguousarray(query).view(np.uint8), np.ascontiguousarray(database).view(np.uint8)
    distances = np.empty(len(items), np.int32)
    given = faiss.swig_ptr(items), 1, len(items), items.shape[1], faiss.swig_ptr(distances)
    counts = np.empty((len(query), depth, bits + 1), np.int64)
    for q in range(len(query)):
        slot = levels[q] * np.int64(bits + 1)
        faiss.hammings(faiss.swig_ptr(query[q]), *given)
        slot += distances
        counts[q] = np.bincount(slot, minlength=depth * (bits + 1)).reshape(depth, bits + 1)
    return counts


def faiss_index(faiss, database, heap):
    """IndexBinaryFlat of words uint64 (N, W). heap: its default; without, it counts distances first."""
    index = faiss.IndexBinaryFlat(database.shape[1] * 64)
    index.use_heap = heap
    index.add(np.ascontiguousarray(database).view(np.uint8))
    return index


def faiss_average_precision(index, query, relevant):
    """Mean average precision of faiss's ranking of everything, ties in its order; relevant (Q, N)."""
    _, order = index.search(np.ascontiguousarray(query).view(np.uint8), index.ntotal)
    total = 0.0
    for q, items in enumerate(order):
        places = np.flatnonzero(relevant[q, items])
        if len(places):
            total += np.mean(np.arange(1, len(places) + 1) / (places + 1.0))
    return total / len(query)


def torchmetrics_mean(function, distances, targets, most):
    """Mean over queries of a retrieval metric of torchmetrics; distances (Q, N) up to `most`, targets (Q, N):
    tensors. Scores must be positive, or its average precision counts their items as irrelevant."""
    values = [function(most + 1 - one, target) for one, target in zip(distances, targets)]
    return float(sum(values) / len(values))


def learning_calculator(library):
    """The AccuracyCalculator of pytorch-metric-learning for the mean average precision of a whole ranking."""
    import torch

    calculators = importlib.import_module(f"{library.__name__}.utils.accuracy_calculator")
    return calculators.AccuracyCalculator(
        include=("mean_average_precision",), k=None, device=torch.device("cpu")
    )


def learning_average_precision(calculator, query, database, query_labels, database_labels):
    """Its mean average precision; query, database: float32 +-1 (n, b), labels int64 (n,).

    It ranks by Euclidean distance, which has the order of the Hamming distance, ties as faiss leaves them.
    """
    found = calculator.get_accuracy(query, query_labels, database, database_labels)
    return float(found["mean_average_precision"])
