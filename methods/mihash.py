"""MIHash: maximise the mutual information between distance and relevance over mini-batches.

Cakir, He, Bargal, Sclaroff. MIHash: Online Hashing with Mutual Information. ICCV 2017; the batch version of
Hashing with Mutual Information, TPAMI 2019. Authors' code: fcakir/mihash, fcakir/deep-mihash.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench.losses import relaxed


@dataclass(kw_only=True)
class MIHash(ListwiseHashing):
    r"""Maximises the mean over queries of a mini-batch of

    $$I(D; C) = H(D) - H(D \mid C)$$

    the mutual information of the distance D to a query and of being relevant to it, C, on soft histograms of
    the distances (`tiebench.losses.relaxed`).
    """

    title = "MIHash"
    paper = "https://arxiv.org/abs/1703.08919"
    colour = "#0072B2"
    marker = "^"
    supervision = "binary"
    space = {
        "learning_rate": {"log_uniform": [0.01, 10.0]},
        "tanh_scale": {"log_uniform": [0.5, 80.0]},
        "bins": [4, 8, 16, 32],
    }

    def objective(self, codes, affinity):
        return relaxed.mutual_information(codes, affinity, self.bins or self.bits, self.delta)
