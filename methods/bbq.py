"""BBQ: signs of residuals of one centroid, without a rotation, and queries of four bits.

Trent. Better Binary Quantization (BBQ) in Lucene and Elasticsearch. Elastic Search Labs 2024: what
Elasticsearch 8.16 ships, after RaBitQ.
"""

from dataclasses import dataclass

import numpy as np

from methods.base import Refusal, check_settings
from methods.base.estimates import EstimatedHashing


@dataclass(kw_only=True)
class BBQ(EstimatedHashing):
    r"""Bit k of x is

    $$[x_k > c_k]$$

    with c the mean of the training items. With b bits items and queries are their first b dimensions, as of
    the method `sign`. Coordinates of queries are rounded to the nearest of 16 values.
    """

    title = "BBQ"
    paper = "https://www.elastic.co/search-labs/blog/better-binary-quantization-lucene-elasticsearch"
    colour = "#D9881C"
    marker = "p"
    supervision = "none"
    family = "unsupervised"
    learned = ("mean",)

    def fit(self, training_set):
        check_settings(self)
        items = training_set.items.reshape(len(training_set), -1)
        if self.bits > items.shape[1]:
            raise Refusal(
                f"bbq makes one bit per dimension: {items.shape[1]} from these items, not {self.bits}"
            )
        self.mean = items[:, : self.bits].mean(axis=0, dtype=np.float64)
        training_set.log({"objective": None, "seconds": 0.0})
        return self

    def encode_block(self, items):
        return self.raw_scores(items) > 0

    def raw_scores(self, items):
        return np.reshape(items[:], (len(items), -1))[:, : self.bits] - self.mean

    def squared_lengths(self, items):
        return np.square(self.raw_scores(items)).sum(axis=1)

    def roundings(self):
        return 0.5
