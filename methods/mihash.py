"""MIHash: maximise the mutual information between distance and relevance over mini-batches.

Cakir, He, Bargal, Sclaroff. MIHash: Online Hashing with Mutual Information. ICCV 2017; the batch version of
Hashing with Mutual Information, TPAMI 2019. Authors' code: fcakir/mihash, fcakir/deep-mihash.
"""

from dataclasses import dataclass

from methods.base.deep import ListwiseHashing
from tiebench import relaxed


@dataclass(kw_only=True)
class MIHash(ListwiseHashing):
    supervision = "binary"

    def objective(self, codes, affinity):
        return relaxed.mutual_information(codes, affinity, self.bins or self.bits, self.delta)
