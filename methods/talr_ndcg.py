"""TALR-NDCG: maximise a differentiable relaxation of tie-aware NDCG over mini-batches, for graded affinities.

He, Cakir, Bargal, Sclaroff. Hashing as Tie-Aware Learning to Rank. CVPR 2018. Authors' code: kunhe/TALR.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench import relaxed


@dataclass(kw_only=True)
class TalrNDCG(ListwiseHashing):
    """simplified: DCG_s, a lower bound, what the authors' code trains; otherwise DCG_r (Proposition 2)."""

    supervision = "graded"

    simplified: bool = True

    def objective(self, codes, affinity):
        return relaxed.ndcg(codes, affinity, self.bins or self.bits, self.delta, simplified=self.simplified)
