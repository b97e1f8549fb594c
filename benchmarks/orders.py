"""In which order programs list items at one Hamming distance, and what they then report.

Codes of CIFAR-10 setting 1 on features, as `differences` makes them, with the database as the file has it,
sorted by class, and shuffled. Scores are those of each program's own ranking of the same distances.
"""

import numpy as np
import torch

from benchmarks.class_items import FILE, find, read
from benchmarks.differences import TALR
from benchmarks.optional_peers import faiss_index, found
from benchmarks.report import progress
from methods.base.catalogue import load_class
from tiebench.affinities import EqualLabels
from tiebench.codes.packing import as_words, pack
from tiebench.runs.scores import score_array
from tiebench.scoring import score_codes

METHODS = {"itq": {}, "talr_ap": TALR}
BITS = (12, 48)
QUERIES = 200
CUT = 100
EXACT = {"the mean over all orders": "", "the worst order": "_min", "the best order": "_max"}


def run(report, quick):
    """Print the tables: nothing here is a time."""
    items, rows = read(find())
    classes = items.classes
    query = rows.query[:: max(1, len(rows.query) // QUERIES)]
    given = {"the file": rows.database}
    given["sorted by class"] = rows.database[np.argsort(classes[rows.database], kind="stable")]
    given["shuffled"] = np.random.default_rng(0).permutation(rows.database)
    faiss = found(["faiss"]).get("faiss")
    report.write(
        "## Orders of tied items",
        f"{FILE}, {len(query)} queries of CIFAR-10 setting 1 and {len(rows.database):,} items, one seed: "
        f"AP@{CUT} by the order of the database." + (" FAISS is not installed." if faiss is None else ""),
    )
    for name in METHODS if not quick else ("itq",):
        for bits in BITS:
            progress(f"orders: {name}, {bits} bits")
            method = load_class(name)(bits=bits, seed=0, **METHODS[name])
            codes = pack(method.fit(items.training_set(rows.training)).encode(items.vectors))
            scored = [scores(codes, query, places, classes, bits, faiss) for places in given.values()]
            report.write(f"### {name}, {bits} bits")
            table = [[label, *(f"{one[label]:.3f}" for one in scored)] for label in scored[0]]
            report.rows(["ties broken by", *given], table, keep=f"{name}_{bits}")


def scores(codes, query, places, classes, bits, faiss):
    """Who breaks ties -> AP@CUT, of one order of the database."""
    affinity = EqualLabels(classes[query], classes[places])
    one, two = codes[query], codes[places]
    exact = score_codes(one, two, bits, affinity, (CUT,), order="file").means
    means = {label: exact[f"ap@{CUT}{ending}"] for label, ending in EXACT.items()}
    means["a stable sort"] = exact[f"ap@{CUT}_in_file_order"]
    relevant = affinity.block(0, len(query)) > 0
    distances = np.bitwise_count(as_words(one)[:, None] ^ as_words(two)[None]).sum(axis=2, dtype=np.uint8)
    tensor = torch.from_numpy(distances)
    rankings = {
        "`numpy.argsort`, uint8 distances": np.argsort(distances, axis=1),
        "`numpy.argsort`, int64 distances": np.argsort(distances.astype(np.int64), axis=1),
        "`torch.argsort`": torch.argsort(tensor, dim=1).numpy(),
        "`torch.topk`": torch.topk(tensor, CUT, largest=False).indices.numpy(),
    }
    if faiss:
        queries = np.ascontiguousarray(as_words(one)).view(np.uint8)
        for label, heap in (("heap", True), ("counting", False)):
            index = faiss_index(faiss, as_words(two), heap)
            rankings[f"FAISS, `IndexBinaryFlat`, {label}"] = index.search(queries, CUT)[1]
    hits = {
        label: np.take_along_axis(relevant, ranking[:, :CUT], axis=1) for label, ranking in rankings.items()
    }
    listed = np.broadcast_to(-np.arange(CUT), (len(query), CUT))
    return means | {label: score_array(listed, one, ["ap"]).means["ap"] for label, one in hits.items()}
