"""Tie-aware ranking metrics of binary codes, and losses that relax them.

* `tiebench.score`: codes and labels, arrays or tensors, to every metric;
* `tiebench.training`: the same inside a training loop, batch by batch, on any device (needs torch);
* `tiebench.losses.relaxed`: differentiable AP, NDCG and mutual information as losses (needs torch);
* `tiebench.score_run`, `tiebench.score_array`: runs and matrices of scores of any program;
* `tiebench.health`: codes to what they make of their bits: constant bits, distinct codes, ties;
* `tiebench.metrics`: the table of all metrics: names, bounds, labels, sources;
* `tiebench.scoring`: scores of packed codes with any affinity, and of joint histograms;
* `tiebench.counting.histograms`: packed codes to joint histograms of Hamming distance and affinity;
* `tiebench.rankings.exact`: histograms to metrics, with their ranges over tie orders;
* `tiebench.rankings.ties`: the same metrics of any ranking, from the counts of its blocks of tied items;
* `tiebench.prefixes`: several prefixes of one code, in one pass;
* `tiebench.search.rescoring`: asymmetric rankings, and rescoring of the nearest codes, exact under ties;
* `tiebench.splits.check`: queries that are met again, and other faults of a split;
* `tiebench.rankings.radius`: metrics of everything within a Hamming radius;
* `tiebench.lookup_cost`: buckets and candidates of a lookup in hash tables;
* `tiebench.diagnostics`: the health of packed codes;
* `tiebench.codes.collapse`: when codes count as collapsed;
* `tiebench.leaderboards`, `tiebench.comparison`: codes beside the methods of a leaderboard;
* `tiebench.search.neighbours`: the nearest codes of a query, with the ties that a list cuts;
* `tiebench.search.export`: codes as a FAISS index, SQL, and runs of TREC and ranx;
* `tiebench.counting.parts`: databases too large for one process;
* `tiebench.counting.distributed`: databases in many files, on a Dask cluster;
* `tiebench.counting.on_device`: histograms of codes on a GPU (needs torch).

`import tiebench` loads none of them: each is loaded at its first use.
"""

import importlib
from typing import Any

from tiebench._version import __version__

_MODULES = (
    *("collapse", "comparison", "diagnostics", "distributed", "exact", "export", "hamming", "inputs"),
    *(
        "leaderboards",
        "lookup",
        "metrics",
        "neighbours",
        "on_device",
        "parts",
        "prefixes",
        "radius",
        "relaxed",
        "rescoring",
    ),
    *("runs", "scoring", "split_check", "ties", "training"),
)
_FUNCTIONS = {"Scores": "scoring", "lookup_cost": "lookup", "score": "scoring"}
_FUNCTIONS |= dict.fromkeys(("Health", "health"), "diagnostics")
_FUNCTIONS |= dict.fromkeys(("RunScores", "score_array", "score_run"), "runs")

__all__ = ["Health", "RunScores", "Scores", "__version__", "collapse", "comparison", "diagnostics",
           "distributed", "exact", "export", "hamming", "health", "leaderboards", "lookup",
           "lookup_cost", "metrics", "neighbours", "on_device", "parts", "prefixes", "radius",
           "relaxed", "rescoring", "runs", "score", "score_array", "score_run", "scoring",
           "split_check", "ties", "training"]  # fmt: skip


def __getattr__(name: str) -> Any:
    # By name and not by an import statement: what a module imports is taken for what its numbers depend on.
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
