"""TALR-AP: maximise a differentiable relaxation of tie-aware average precision over mini-batches.

He, Cakir, Bargal, Sclaroff. Hashing as Tie-Aware Learning to Rank. CVPR 2018. Authors' code: kunhe/TALR.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench import relaxed


@dataclass(kw_only=True)
class TalrAP(ListwiseHashing):
    """simplified: AP_s, what the authors' code trains; otherwise AP_r (Proposition 2)."""

    supervision = "binary"

    simplified: bool = True

    def objective(self, codes, affinity):
        return relaxed.average_precision(
            codes, affinity, self.bins or self.bits, self.delta, simplified=self.simplified
        )
