"""Codes of classes as targets of deep losses: one code per class, a majority code for several labels."""

import copy
from dataclasses import dataclass

import numpy as np
import torch

from methods.base import Refusal
from methods.base.deep import DeepHashing
from methods.base.labels import label_matrix
from methods.class_codes.centres import constant_bits, make_centres


class ClassCodes(torch.nn.Module):
    """Fixed codes of classes: `codes`, float (classes, bits) of -1 and +1, and `filler`, float (bits,), one
    random code that decides where the labels of an item disagree evenly."""

    codes: torch.Tensor
    filler: torch.Tensor

    def __init__(self, codes, generator):
        super().__init__()
        bits = codes.shape[1]
        self.register_buffer("codes", torch.from_numpy(np.asarray(codes, np.float32)))
        filler = np.where(generator.random(bits) < 0.5, 1, -1).astype(np.float32)
        self.register_buffer("filler", torch.from_numpy(filler))

    def first(self, bits):
        """The first bits of all codes, as `ClassCodes`. Raises `Refusal` where two classes share them."""
        found = copy.copy(self)
        found._buffers = {"codes": self.codes[:, :bits], "filler": self.filler[:bits]}
        found._modules = {}
        if len(found.codes.unique(dim=0)) < len(found.codes):
            raise Refusal(f"nested: two classes have the same code in their first {bits} bits")
        return found

    def majority(self, labels):
        """Codes of items, float (M, bits): the sign of the mean over their labels (M, classes), `filler`
        where that is zero, as for items without labels."""
        means = torch.sign(labels @ self.codes)
        return torch.where(means == 0, self.filler, means)


@dataclass(kw_only=True)
class ClassCodeHashing(DeepHashing):
    """Base of deep methods whose criterion is `ClassCodes`."""

    def prefix_criterion(self, training_set, whole):
        """The first bits of the class codes: of others, the same bit would be drawn to two values."""
        return whole.first(self.bits)

    def unused_bits(self):
        """Bits that are the same in the codes of all classes: items are drawn to one value there."""
        return constant_bits(self.criterion_state["codes"])


def class_codes(method, training_set, kind, name):
    """`ClassCodes` of a kind of `methods.class_codes.centres.KINDS` for the classes or labels of a training
    set.

    Raises `Refusal`, naming the method, where there are no labels to learn from, or no such codes.
    """
    label_matrix(training_set, name)  # refuses labels that do not separate any items
    generator = np.random.default_rng((method.seed, 11))
    codes = make_centres(kind, training_set.classes, method.bits, generator)
    return ClassCodes(codes, generator)
