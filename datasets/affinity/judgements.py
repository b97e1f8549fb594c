"""Relevance judgements that come with the dataset: a score for some pairs of a query and a document, else 0.

Scores are graded levels as they are. The loader writes them to judgements.npy, int64 (m, 3): the item of the
query, the item of the document, the score.
"""

from collections.abc import Mapping

import numpy as np

from datasets.affinity import Inputs
from datasets.affinity._listed import ListedAffinity
from tiebench.files import read_array


class Judgements(ListedAffinity):
    """See the module."""

    @classmethod
    def make(cls, spec: Mapping, inputs: Inputs) -> "Judgements":
        path = None if inputs.dataset is None else inputs.dataset / "judgements.npy"
        if path is None or not path.is_file():
            raise ValueError(
                "affinity: kind 'judgements' needs a dataset that comes with judgements of pairs, as loader "
                "retrieval_file reads them"
            )
        listed = read_array(path)
        items = len(read_array(inputs.dataset / "items.npy", True))
        if listed.ndim != 2 or listed.shape[1:] != (3,) or listed.dtype.kind not in "iu":
            raise ValueError(f"{path}: not judgements that a loader wrote; delete it to regenerate it")
        pairs = listed[:, :2]
        if listed.min(initial=0) < 0 or pairs.max(initial=0) >= items:
            raise ValueError(f"{path}: names an item that is not there; delete it to regenerate it")
        return cls(*np.ascontiguousarray(listed.T, np.int64), items)
