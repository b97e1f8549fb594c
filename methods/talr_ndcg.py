"""TALR-NDCG: maximise a differentiable relaxation of tie-aware NDCG over mini-batches, for graded affinities.

He, Cakir, Bargal, Sclaroff. Hashing as Tie-Aware Learning to Rank. CVPR 2018. Authors' code: kunhe/TALR.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench.losses import relaxed


@dataclass(kw_only=True)
class TalrNDCG(ListwiseHashing):
    r"""Maximises the mean over queries of a mini-batch of

    $$
    \frac{\mathrm{DCG}_s}{\mathrm{DCG}^*}, \qquad
    \mathrm{DCG}_s = \sum_d
    \frac{\sum_v (2^v - 1) \, c_{d,v}}{\log_2(C_{d-1} + \frac{1}{2} c_d + \frac{3}{2})}
    $$

    with $c_{d,v}$ the items of affinity v in bin d of a soft histogram of the distances, $c_d$ all items of
    the bin, $C_d$ their cumulative sum, and DCG* the value of the best ranking.

    simplified: DCG_s, a lower bound, what the authors' code trains; otherwise DCG_r (Proposition 2)."""

    title = "TALR-NDCG"
    paper = "https://arxiv.org/abs/1705.08562"
    colour = "#E69F00"
    marker = "s"
    supervision = "graded"
    space = {
        "learning_rate": {"log_uniform": [0.01, 10.0]},
        "tanh_scale": {"log_uniform": [0.5, 80.0]},
        "bins": [4, 8, 16, 32],
    }

    simplified: bool = True

    def objective(self, codes, affinity):
        return relaxed.ndcg(codes, affinity, self.bins or self.bits, self.delta, simplified=self.simplified)
