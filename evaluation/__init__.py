"""Codes to scores: tie-aware ranking metrics of binary codes, and their differentiable relaxations.

* `evaluation.hamming`: packed codes to joint histograms of Hamming distance and affinity;
* `evaluation.exact`: histograms to tie-aware AP, NDCG, their ranges over tie orders, AP@K, NDCG@K, precision;
* `evaluation.scoring`: both in one call, what `python -m evaluation FILE.npz` runs;
* `evaluation.relaxed`: the objectives that training maximises (needs torch);
* `evaluation.on_device`: the histograms of codes that live on a GPU (needs torch; nothing else here does).
"""
