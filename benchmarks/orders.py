"""In which order programs list items at one Hamming distance, and what they then report.

Codes of CIFAR-10 setting 1 on features, as `differences` makes them, with the database as the file has it,
sorted by class, and shuffled. Scores are those of each program's own ranking of the same distances.
"""

import numpy as np

from benchmarks.class_items import FILE, find, read
from benchmarks.differences import TALR
from benchmarks.optional_peers import faiss_index, found, versions
from benchmarks.report import progress
from methods.base.catalogue import load_class
from tiebench.affinities import EqualLabels
from tiebench.codes.packing import as_words, pack
from tiebench.scoring import score_codes

METHODS = {"itq": {}, "talr_ap": TALR}
BITS = (12, 48)
QUERIES = 200
CUTS = (100, 1000)
COLUMNS = ("ap", "ap@100", "ap@1000", "precision@100")


def run(report, quick):
    """Print the tables: nothing here is a time."""
    report.write("## Orders of tied items")
    path = find()
    if path is None:
        report.write(f"Skipped: no {FILE} in the folders of TIEBENCH_RESOURCES.")
        return
    items, rows = read(path)
    classes = items.classes
    query = rows.query[:: max(1, len(rows.query) // QUERIES)]
    given = {"the file": rows.database}
    given["by class"] = rows.database[np.argsort(classes[rows.database], kind="stable")]
    given["shuffled"] = np.random.default_rng(0).permutation(rows.database)
    torch, faiss = found({"torch": ()})["torch"], found({"faiss": ()}).get("faiss")
    absent = "" if faiss else " FAISS is not installed: its rows are left out."
    known = [f"NumPy {np.__version__}", f"torch {torch.__version__}", *versions({"faiss": "faiss-cpu"})[0]]
    report.write(
        f"{FILE}, {len(query)} queries of CIFAR-10 setting 1 and {len(rows.database):,} items, one seed. "
        f"{', '.join(known)}, one thread.{absent}"
    )
    for name in METHODS if not quick else ("itq",):
        for bits in BITS:
            progress(f"orders: {name}, {bits} bits")
            method = load_class(name)(bits=bits, seed=0, **METHODS[name])
            codes = pack(method.fit(items.training_set(rows.training)).encode(items.vectors))
            table = []
            for words, places in given.items():
                scored = _scored(codes, query, places, classes, bits, torch, faiss)
                if not table:
                    table += [[label, "any", *cells] for label, cells in scored.items() if label in _EXACT]
                table += [[label, words, *cells] for label, cells in scored.items() if label not in _EXACT]
            report.write(f"### {name}, {bits} bits")
            report.rows(["ties broken by", "database", *COLUMNS], table)


_EXACT = {"exact mean": "", "worst order": "_min", "best order": "_max"}


def _scored(codes, query, places, classes, bits, torch, faiss):
    """Who breaks ties -> cells of COLUMNS, of one order of the database."""
    affinity = EqualLabels(classes[query], classes[places])
    one, two = codes[query], codes[places]
    exact = score_codes(one, two, bits, affinity, CUTS, order="file").means
    cells = {
        label: [f"{exact[column + ending]:.3f}" for column in COLUMNS] for label, ending in _EXACT.items()
    }
    cells["position (a stable sort)"] = [f"{exact[f'{column}_in_file_order']:.3f}" for column in COLUMNS]
    relevant = affinity.block(0, len(query)) > 0
    distances = np.bitwise_count(as_words(one)[:, None] ^ as_words(two)[None]).sum(axis=2, dtype=np.uint8)
    tensor = torch.from_numpy(distances)
    most = CUTS[-1]
    rankings = {
        "numpy.argsort": np.argsort(distances, axis=1),
        "numpy.argsort of int64": np.argsort(distances.astype(np.int64), axis=1),
        "torch.argsort": torch.argsort(tensor, dim=1).numpy(),
        f"torch.topk, {most}": torch.topk(tensor, most, largest=False).indices.numpy(),
    }
    if faiss:
        words = as_words(two)
        for label, heap in (("heap", True), ("counting", False)):
            index = faiss_index(faiss, words, heap)
            queries = np.ascontiguousarray(as_words(one)).view(np.uint8)
            rankings[f"IndexBinaryFlat, {label}, {most}"] = index.search(queries, most)[1]
    for label, ranking in rankings.items():
        hits = np.take_along_axis(relevant, ranking, axis=1)
        whole = hits.shape[1] == len(places)
        values = [_ap(hits) if whole else None, *(_ap(hits[:, :cut]) for cut in CUTS), hits[:, :100].mean()]
        cells[label] = ["" if value is None else f"{value:.3f}" for value in values]
    return cells


def _ap(hits):
    """Mean AP of rankings, divided by the hits among the items listed; hits: bool (Q, K)."""
    precisions = np.cumsum(hits, axis=1) / np.arange(1, hits.shape[1] + 1)
    sums, found = (precisions * hits).sum(axis=1), hits.sum(axis=1)
    return float(np.mean(np.divide(sums, found, out=np.zeros(len(hits)), where=found > 0)))
