"""Scores, labels and class codes for tests of the losses of deep methods, and how a loss is checked."""

import itertools

import numpy as np
import pytest
import torch

from methods.class_codes.class_codes import ClassCodes

GENERATOR = np.random.default_rng(0)
BITS, CLASSES, ITEMS = 6, 4, 9
SCORES = torch.from_numpy(GENERATOR.normal(size=(ITEMS, BITS)))
SINGLE = torch.from_numpy(np.eye(CLASSES)[GENERATOR.integers(0, CLASSES, ITEMS)])
SEVERAL = torch.from_numpy((GENERATOR.random((ITEMS, CLASSES)) < 0.5).astype(float))
CODES = GENERATOR.choice([-1.0, 1.0], (CLASSES, BITS))
PROXIES = GENERATOR.normal(size=(CLASSES, BITS))
both_labels = pytest.mark.parametrize("labels", [SINGLE, SEVERAL], ids=["single", "several"])


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


def codes():
    return ClassCodes(CODES, np.random.default_rng(1)).double()


def proxies():
    return torch.nn.ParameterDict({"proxies": torch.nn.Parameter(torch.from_numpy(PROXIES))})


def check(loss, formula, outputs=SCORES, rel=1e-9):
    """loss(u) is formula(u), and its gradient that of central differences of the formula."""
    u = outputs.clone().requires_grad_()
    value = loss(u)
    assert value.item() == pytest.approx(formula(outputs.numpy()), rel=rel)
    gradient = torch.autograd.grad(value, u)[0]
    for item, bit in itertools.product(range(len(outputs)), range(outputs.shape[1])):
        moved = [outputs.numpy().copy() for _ in range(2)]
        moved[0][item, bit] += 1e-6
        moved[1][item, bit] -= 1e-6
        difference = (formula(moved[0]) - formula(moved[1])) / 2e-6
        assert gradient[item, bit].item() == pytest.approx(difference, rel=1e-4, abs=1e-7)
