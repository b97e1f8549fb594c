"""Codes to scores: tie-aware ranking metrics of binary codes, and their differentiable relaxations.

* `tiebench.hamming`: packed codes to joint histograms of Hamming distance and affinity;
* `tiebench.exact`: histograms to tie-aware AP, NDCG, their ranges over tie orders, AP@K, NDCG@K, precision;
* `tiebench.metrics`: the table of all metrics;
* `tiebench.scoring`: both in one call, what `python -m tiebench FILE.npz` runs;
* `tiebench.relaxed`: the objectives that training maximises (needs torch);
* `tiebench.on_device`: the histograms of codes that live on a GPU (needs torch; nothing else here does).
"""

from tiebench._version import __version__

__all__ = ["__version__"]
