"""Codes in the course of a training: collapsed ones are noticed in the epoch in which it happens."""

import numpy as np
import torch

from tiebench.codes.collapse import code_counts, collapse_reason, entropy, varying_bits

MOST_ITEMS = 1 << 16  # whose outputs of an epoch are kept
_FEWEST_ITEMS = 64  # by chance, few items share many bits
_QUERIES = 500  # most of `average_precision`


class CodeWatch:
    """The signs of what a network puts out in the second half of an epoch, where what happened in it shows.

    They are those of the last `MOST_ITEMS` items at most.
    """

    def __init__(self, bits, labels):
        """bits: of a code; labels: of the training set, (n,) or 0/1 (n, L), or None."""
        self.bits, self.class_counts = bits, None
        if labels is not None:
            several = labels.ndim == 2
            self.class_counts = labels.sum(axis=0) if several else np.unique(labels, return_counts=True)[1]
        self.first, self.signs, self.seen = 0, [], []

    def start(self, sizes):
        """An epoch begins, of batches of these sizes."""
        left = np.cumsum(sizes[::-1])[::-1]
        self.first = max(len(sizes) // 2, int(np.count_nonzero(left > MOST_ITEMS)))
        self.signs, self.seen = [], []

    def see(self, step, outputs, indices):
        """Raw scores (M, bits) of batch number `step` of the epoch; indices: int64 (M,), its items' places in
        the training set. Draws nothing, waits for no device."""
        if step >= self.first:
            self.signs.append(outputs.detach() > 0)
            self.seen.append(indices)

    def finish(self, unused_bits=0):
        """What the epoch's record says: constant_bits, distinct_codes, and, of collapsed codes only,
        collapsed, why they are. unused_bits: as of `collapse_reason`."""
        if not self.signs:
            return {}
        codes = self._codes()
        constant, counts = self.bits - varying_bits(codes), code_counts(codes)
        record = {"constant_bits": constant, "distinct_codes": len(counts)}
        classes = 0 if self.class_counts is None else len(self.class_counts)
        if len(codes) >= max(_FEWEST_ITEMS, 10 * classes):
            measured = self.bits, constant, len(counts), entropy(counts)
            if reason := collapse_reason(*measured, self.class_counts, unused_bits):
                record["collapsed"] = reason
        return record

    def average_precision(self, training_set):
        """AP_T of the codes, the first of which query the others, as the training set measures it; None of
        too few, or if it does not. The codes are as they were seen, at different steps."""
        measured = training_set.average_precision
        if measured is None or sum(map(len, self.signs)) < _FEWEST_ITEMS:
            return None
        codes = self._codes()
        cut = [min(_QUERIES, len(codes) // 4)]
        return measured(np.split(codes, cut), np.split(np.concatenate(self.seen), cut), self.bits)

    def _codes(self):
        return np.packbits(torch.cat(self.signs).cpu().numpy(), axis=1)
