"""Scores, labels and class codes for tests of the losses of deep methods, and how a loss is checked."""

import numpy as np
import pytest
import torch
from slopes import central_differences

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
    assert gradient.numpy() == pytest.approx(
        central_differences(formula, outputs.numpy()), rel=1e-4, abs=1e-7
    )
