"""Relevance judgements that come with the dataset: a score for some pairs of a query and a document, else 0.

Scores are graded levels as they are. The loader writes them to judgements.npy, int64 (m, 3): the item of the
query, the item of the document, the score.
"""

from collections.abc import Mapping

import numpy as np

from datasets.affinity import Inputs
from datasets.affinity._listed import ListedAffinity
from tiebench.files import read_result_array, reading_result


class Judgements(ListedAffinity):
    """See the module."""

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> "Judgements":
        folder = inputs.dataset
        if folder is None or not (path := folder / "judgements.npy").is_file():
            raise ValueError(
                "affinity: kind 'judgements' needs a dataset that comes with judgements of pairs, as loader "
                "retrieval_file reads them"
            )
        listed = read_result_array(path)
        items = len(read_result_array(folder / "items.npy", True))
        with reading_result(path):
            cls._check(listed, items)
        query, document, score = np.ascontiguousarray(listed.T, np.int64)
        return cls(query, document, score, items)

    @staticmethod
    def _check(listed, items):
        if listed.ndim != 2 or listed.shape[1:] != (3,) or listed.dtype.kind not in "iu":
            raise ValueError("not judgements that a loader wrote")
        pairs = listed[:, :2]
        if listed.min(initial=0) < 0 or pairs.max(initial=0) >= items:
            raise ValueError("names an item that is not there")
