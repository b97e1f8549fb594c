"""Tie-aware ranking metrics of binary codes, and losses that relax them.

* `tiebench.score`: codes and labels, arrays or tensors, to every metric;
* `tiebench.score_run`, `tiebench.score_array`: runs and matrices of scores of any program;
* `tiebench.health`: codes to what they make of their bits: constant bits, distinct codes, ties;
* `tiebench.lookup_cost`: buckets and candidates of a lookup in hash tables;
* `tiebench.scoring`: scores of packed codes with any affinity, and of joint histograms;
* `tiebench.metrics`: the table of all metrics: names, bounds, labels, sources;
* `tiebench.training`: scores inside a training loop, batch by batch, on any device (needs torch);
* `tiebench.in_order`: what programs report that break ties by position in the database;
* `tiebench.prefixes`: several prefixes of one code, in one pass;
* `tiebench.affinities`: what a pair of items is worth: classes, shared labels, blocks, judgements;
* `tiebench.diagnostics`: the health of packed codes;
* `tiebench.leaderboards`, `tiebench.comparison`: codes beside the methods of a leaderboard;
* `tiebench.codes`: packing, accepted inputs, when codes count as collapsed;
* `tiebench.counting`: packed codes to joint histograms of Hamming distance and affinity: on a CPU, on a GPU,
  in parts, on a Dask cluster;
* `tiebench.rankings`: histograms, and blocks of tied items, to metrics with their ranges over tie orders;
* `tiebench.losses`: differentiable AP, NDCG and mutual information as losses (needs torch);
* `tiebench.runs`: rankings of other programs;
* `tiebench.search`: nearest codes with the ties that a list cuts, hash tables, rescoring, exports;
* `tiebench.splits`: queries that are met again, and other faults of a split.

`import tiebench` loads none of them: each is loaded at its first use.
"""

import importlib
from typing import Any

from tiebench._version import __version__

# Name -> the module that has it.
_FUNCTIONS = {
    "Health": "diagnostics",
    "RunScores": "runs.scores",
    "Scores": "scoring",
    "health": "diagnostics",
    "lookup_cost": "search.lookup",
    "score": "scoring",
    "score_array": "runs.scores",
    "score_run": "runs.scores",
}
_MODULES = {
    "affinities": "affinities",
    "codes": "codes",
    "collapse": "codes.collapse",
    "comparison": "comparison",
    "counting": "counting",
    "diagnostics": "diagnostics",
    "distributed": "counting.distributed",
    "exact": "rankings.exact",
    "export": "search.export",
    "histograms": "counting.histograms",
    "in_order": "search.in_order",
    "inputs": "codes.inputs",
    "leaderboards": "leaderboards",
    "lookup": "search.lookup",
    "losses": "losses",
    "metrics": "metrics",
    "neighbours": "search.neighbours",
    "on_device": "counting.on_device",
    "packing": "codes.packing",
    "parts": "counting.parts",
    "prefixes": "prefixes",
    "radius": "rankings.radius",
    "rankings": "rankings",
    "relaxed": "losses.relaxed",
    "rescoring": "search.rescoring",
    "runs": "runs",
    "scoring": "scoring",
    "search": "search",
    "splits": "splits",
    "ties": "rankings.ties",
    "training": "training",
}

__all__ = ["__version__"] + list(_FUNCTIONS) + list(_MODULES)


def __getattr__(name: str) -> Any:
    # By name and not by an import statement: what a module imports is taken for what its numbers depend on.
    if name in _FUNCTIONS:
        return getattr(importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
