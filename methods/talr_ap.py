"""TALR-AP: maximise a differentiable relaxation of tie-aware average precision over mini-batches.

He, Cakir, Bargal, Sclaroff. Hashing as Tie-Aware Learning to Rank. CVPR 2018. Authors' code: kunhe/TALR.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench.losses import relaxed


@dataclass(kw_only=True)
class TalrAP(ListwiseHashing):
    r"""Maximises the mean over queries of a mini-batch of

    $$\mathrm{AP}_s = \frac{1}{N^+} \sum_d c_d^+ \, \frac{C_{d-1}^+ + C_d^+ + 1}{C_{d-1} + C_d + 1}$$

    with $c_d$ the items and $c_d^+$ the relevant ones in bin d of a soft histogram of the distances, $C_d$
    and $C_d^+$ their cumulative sums, $N^+$ the number of relevant items.

    simplified: AP_s, what the authors' code trains; otherwise AP_r (Proposition 2).
    """

    title = "TALR-AP"
    paper = "https://arxiv.org/abs/1705.08562"
    colour = "#D55E00"
    marker = "o"
    supervision = "binary"
    space = {
        "learning_rate": {"log_uniform": [0.01, 10.0]},
        "tanh_scale": {"log_uniform": [0.5, 80.0]},
        "bins": [4, 8, 16, 32],
    }

    simplified: bool = True

    def objective(self, codes, affinity):
        return relaxed.average_precision(
            codes, affinity, self.bins or self.bits, self.delta, simplified=self.simplified
        )
