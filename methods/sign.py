"""Sign: one bit per dimension, whether the value exceeds a threshold; learns nothing but the threshold.

Yamada, Asai, Hajishirzi. Efficient Passage Retrieval with Hashing for Open-Domain Question Answering. ACL
2021. Vector databases call it binary quantisation. With b bits the first b dimensions are used, so that the
codes of b bits are a prefix of longer ones (the convention of embeddings trained with nested prefixes).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from methods.base import HashingMethod, Refusal, check_settings


@dataclass(kw_only=True)
class Sign(HashingMethod):
    r"""Bit k of x is

    $$[x_k > t_k]$$

    threshold: $t_k$, "zero", or each dimension's "mean" or "median" over the training items.

    A protocol whose input is centred subtracts the mean before any method sees the items: "zero" and "mean"
    are then the same, unless items are scaled to unit length afterwards.
    """

    title = "Sign"
    paper = "https://doi.org/10.18653/v1/2021.acl-short.123"
    colour = "#8C8C8C"
    marker = "s"
    supervision = "none"
    family = "unsupervised"
    learned = ("thresholds",)
    space = {"threshold": ["zero", "mean", "median"]}

    threshold: Literal["zero", "mean", "median"] = "zero"

    def fit(self, training_set):
        check_settings(self)
        items = training_set.items.reshape(len(training_set), -1)
        if self.bits > items.shape[1]:
            raise Refusal(
                f"sign makes one bit per dimension: {items.shape[1]} from these items, not {self.bits}"
            )
        leading = np.asarray(items[:, : self.bits], np.float64)
        if self.threshold == "zero":
            self.thresholds = np.zeros(self.bits)
        elif self.threshold == "mean":
            self.thresholds = leading.mean(axis=0)
        else:
            self.thresholds = np.median(leading, axis=0)
        training_set.log({"objective": None, "seconds": 0.0})
        return self

    def encode_block(self, items):
        return self.raw_scores(items) > 0

    def raw_scores(self, items):
        return np.reshape(items[:], (len(items), -1))[:, : self.bits] - self.thresholds
