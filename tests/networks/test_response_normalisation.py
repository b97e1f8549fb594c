"""Local response normalisation and its gradient against the formula in NumPy and PyTorch's own in 64 bits."""

import numpy as np
import pytest
import torch
from torch.nn.functional import local_response_norm

from networks.layers.response_normalisation import response_normalisation

PUBLISHED = {"vgg_f": (5, 2.0, 1e-4, 0.75), "caffe_alexnet": (5, 1.0, 2e-5, 0.75)}
FORMATS = {"channels first": torch.contiguous_format, "channels last": torch.channels_last}


def responses(shape, seed=0, deviation=60.0):
    """Of a size at which the sums of squares weigh as much as the constant."""
    generator = np.random.default_rng(seed)
    return torch.from_numpy(generator.normal(scale=deviation, size=shape).astype(np.float32))


def written_out(maps, size, kappa, alpha, beta):
    found = np.empty(maps.shape)
    for c in range(maps.shape[1]):
        near = maps[:, max(0, c - size // 2) : c + size // 2 + 1]
        found[:, c] = maps[:, c] / (kappa + alpha * (near**2).sum(axis=1)) ** beta
    return found


@pytest.mark.parametrize(("images", "channels"), [(3, 1), (3, 2), (3, 4), (3, 5), (3, 97), (0, 8)])
@pytest.mark.parametrize("memory", FORMATS.values(), ids=FORMATS.keys())
@pytest.mark.parametrize("constants", PUBLISHED.values(), ids=PUBLISHED.keys())
def test_values_and_gradients(constants, memory, images, channels):
    size, kappa, alpha, beta = constants
    maps = responses((images, channels, 4, 5)).contiguous(memory_format=memory).requires_grad_()
    exact = maps.detach().double().requires_grad_()
    gradient = responses(maps.shape, seed=1, deviation=1.0)
    found = response_normalisation(maps, *constants)
    expected = local_response_norm(exact, size, size * alpha, beta, kappa)
    assert found.dtype == torch.float32
    np.testing.assert_allclose(expected.detach(), written_out(exact.detach().numpy(), *constants), rtol=1e-12)
    np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-5, atol=1e-5)
    found.backward(gradient)
    expected.backward(gradient.double())
    np.testing.assert_allclose(maps.grad, exact.grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("constants", [(3, 2.0, 1e-4, 0.75), (5, 2.0, 1e-4, 0.5), (7, 1.0, 1e-3, 1.0)])
def test_other_constants_than_the_kernels_have(constants):
    maps = responses((2, 6, 3, 3))
    expected = written_out(maps.double().numpy(), *constants)
    np.testing.assert_allclose(response_normalisation(maps, *constants), expected, rtol=1e-5)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_of_16_bits_the_sums_are_of_32(half):
    """The square of 400 exceeds float16."""
    maps = torch.full((1, 7, 2, 2), 400.0, dtype=half, requires_grad=True)
    found = response_normalisation(maps, *PUBLISHED["vgg_f"])
    assert found.dtype == torch.float32
    expected = written_out(np.full((1, 7, 2, 2), 400.0), *PUBLISHED["vgg_f"])
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-5)
    found.sum().backward()
    assert maps.grad.dtype == half and bool(torch.isfinite(maps.grad).all())
