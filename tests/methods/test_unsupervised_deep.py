"""GreedyHash without labels, BiHalf and CIBHash at their layers and losses: loops and plain formulas."""

import itertools
import math

import numpy as np
import pytest
import torch
from batches import batch
from losses import cosine
from sets import clusters

from methods.base import TrainingSet
from methods.bihalf import BiHalf, BiHalfLayer
from methods.cibhash import CIBHash
from methods.greedyhash_unsupervised import GreedyHashUnsupervised
from methods.sdc import SDC

GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize("items", [8, 9])
def test_greedyhash_without_labels_is_the_agreement_and_the_penalty_of_loops(items):
    u, features = GENERATOR.normal(size=(items, 5)), GENERATOR.normal(size=(items, 7))
    codes, errors = np.where(u > 0, 1.0, -1.0), []
    for i in range(4):
        errors.append(cosine(codes[i], codes[4 + i]) - cosine(features[i], features[4 + i]))
    expected = np.mean(np.square(errors)) + 0.3 * np.mean([abs(abs(score) - 1) ** 3 for score in u.ravel()])
    method = GreedyHashUnsupervised(bits=5, penalty=0.3)
    found = method.loss(torch.from_numpy(u), batch(features=torch.from_numpy(features)))
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("items", [6, 7])
def test_bihalf_gives_each_bit_to_the_larger_half(items):
    outputs = torch.from_numpy(GENERATOR.normal(size=(items, 4))).requires_grad_()
    codes = BiHalfLayer.apply(outputs, 6.0)
    for bit in range(4):
        ones = set(np.argsort(-outputs.detach().numpy()[:, bit])[: items // 2])
        assert {place for place in range(items) if codes[place, bit] == 1} == ones
    assert set(codes.unique().tolist()) == {-1.0, 1.0}
    weights = torch.from_numpy(GENERATOR.normal(size=(items, 4)))
    gradient = torch.autograd.grad((codes * weights).sum(), outputs)[0]
    assert gradient == pytest.approx(weights + 6.0 * (outputs.detach() - codes.detach()) / (items * 4))


def test_cibhash_is_the_contrastive_loss_of_loops():
    method = CIBHash(bits=5, temperature=0.3, bottleneck=0.2)
    first, second = (torch.from_numpy(GENERATOR.normal(size=(4, 5))) for _ in range(2))
    codes = np.where(torch.cat([first, second]).numpy() > 0, 1.0, -1.0)
    total = 0.0
    for i in range(8):
        partner = (i + 4) % 8
        others = sum(math.exp(cosine(codes[i], codes[j]) / 0.3) for j in range(8) if j != i)
        total -= math.log(math.exp(cosine(codes[i], codes[partner]) / 0.3) / others)
    p, q = (1 / (1 + np.exp(-part.numpy())) for part in (first, second))
    divergence = 0.0
    for i, bit in itertools.product(range(4), range(5)):
        for a, b in ((p[i, bit], q[i, bit]), (q[i, bit], p[i, bit])):
            divergence += (a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b))) / 2
    expected = total / 8 + 0.2 * divergence / 4
    assert method.loss(first, batch(second=second)).item() == pytest.approx(expected, rel=1e-6)


def test_cibhash_gradient_is_that_of_the_authors_layers():
    """qiuzx2/CIBHash: sign(p - 0.5) of probabilities p, whose backward pass hands the gradient on to p."""

    class HashLayer(torch.autograd.Function):
        @staticmethod
        def forward(context, values):
            return values.sign()

        @staticmethod
        def backward(context, gradient):
            return gradient

    first, second = (torch.from_numpy(3 * GENERATOR.normal(size=(6, 5))).requires_grad_() for _ in range(2))
    value = CIBHash(bits=5, temperature=0.3, bottleneck=0.0).loss(first, batch(second=second))
    z = torch.cat([HashLayer.apply(scores.sigmoid() - 0.5) for scores in (first, second)])
    z = z / z.norm(dim=1, keepdim=True)
    exponentials = (z @ z.T / 0.3).exp()
    own = torch.diag(z @ z.T.roll(6, 1)) / 0.3
    expected = -(own - (exponentials.sum(1) - torch.diag(exponentials)).log()).mean()
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    found, wanted = (torch.cat(torch.autograd.grad(one, (first, second))) for one in (value, expected))
    assert found == pytest.approx(wanted, rel=1e-9, abs=1e-15)


def test_cibhash_bottleneck_draws_each_view_to_the_other_held_fixed():
    """Of KL(p || q) by the score u of p alone: p (1 - p) (u - v), v the score of q."""
    views = [torch.from_numpy(GENERATOR.normal(size=(6, 5))).requires_grad_() for _ in range(2)]

    def gradients(bottleneck):
        value = CIBHash(bits=5, bottleneck=bottleneck).loss(views[0], batch(second=views[1]))
        return torch.stack(torch.autograd.grad(value, views)).numpy()

    u, v = (view.detach().numpy() for view in views)
    p, q = 1 / (1 + np.exp(-u)), 1 / (1 + np.exp(-v))
    expected = 0.2 / (2 * 6) * np.stack([p * (1 - p) * (u - v), q * (1 - q) * (v - u)])
    assert gradients(0.2) - gradients(0.0) == pytest.approx(expected, rel=1e-5, abs=1e-8)


def test_cibhash_views_of_vectors_drop_scale_and_add_noise():
    def on_vectors(**settings):
        method = CIBHash(**settings)
        method.backbone = None
        return method

    items = torch.ones(2000, 10)
    kept = on_vectors(view_dropout=0.25, view_noise=0.0).augment(items, np.random.default_rng(0))
    assert kept.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert (kept == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    noisy = on_vectors(view_dropout=0.0, view_noise=0.3).augment(items, np.random.default_rng(0))
    assert (noisy - 1).std().item() == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize("kind", [GreedyHashUnsupervised, BiHalf, CIBHash, SDC])
def test_objectives_fall_and_codes_keep_neighbours(kind):
    (items, labels), records = clusters(120, 16, 6, spread=0.4), []
    settings = {"head_width": 64} if kind is CIBHash else {}
    method = kind(bits=16, epochs=20, batch_size=30, **settings)
    method.fit(TrainingSet(items, affinity=None, log=records.append))
    assert records[-1]["objective"] < records[0]["objective"]
    codes = np.where(method.encode(items), 1, -1)
    same = labels[:, None] == labels
    products = codes @ codes.T
    assert products[same].mean() > products[~same].mean() + 4
