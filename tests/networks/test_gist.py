"""GIST against its definition written out with loops and Fourier matrices, and its invariances."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from networks.gist import Gist, _bilinear


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def gist(images, **options):
    """float32 (n, width) of images uint8 (n, h, w, 3) or, of three equal colours, (n, h, w)."""
    colours = images if images.ndim == 4 else np.repeat(images[..., None], 3, axis=3)
    network = Gist(**options)
    found = network(network.preprocess(torch.from_numpy(colours).permute(0, 3, 1, 2))).numpy()
    assert found.shape == (len(images), network.width)
    return found


def mirrored(image, width):
    return np.pad(image, width, mode="symmetric")


def transform(image, sign):
    """Two-dimensional Fourier transform by matrices, not normalised."""
    n = len(image)
    matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return matrix @ image @ matrix


def frequencies(n):
    """[(row, column, fy, fx)] of an n x n spectrum whose frequency 0 is in the corner."""
    signed = [k if k < n // 2 else k - n for k in range(n)]
    return [(row, column, signed[row], signed[column]) for row in range(n) for column in range(n)]


def definition(gray, orientations, blocks, prefilter, extension):
    """GIST of a square gray image (float64), step by step."""
    size = len(gray)
    image = gray - gray.min()
    image = 255 * image / image.max()
    padded = mirrored(np.log(1 + image), 5)
    n = len(padded)
    low_pass = np.zeros((n, n))
    for row, column, fy, fx in frequencies(n):
        low_pass[row, column] = math.exp(-(fx**2 + fy**2) / (prefilter**2 / math.log(2)))
    smooth = transform(transform(padded, -1) * low_pass, 1) / n**2
    detail = padded - smooth.real
    variance = np.abs(transform(transform(detail**2, -1) * low_pass, 1) / n**2)
    white = (detail / (0.2 + np.sqrt(variance)))[5:-5, 5:-5]
    spectrum = transform(mirrored(white, extension), -1)
    n = size + 2 * extension
    out = []
    limits = [math.floor(size * k / blocks) for k in range(blocks + 1)]
    for scale, count in enumerate(orientations):
        centre = 0.3 / 1.85**scale * n
        for orientation in range(count):
            values = np.zeros((n, n))
            for row, column, fy, fx in frequencies(n):
                turned = math.atan2(fy, fx) + math.pi * orientation / count
                turned -= 2 * math.pi * (turned > math.pi)
                radial = -10 * 0.35 * (math.hypot(fx, fy) / centre - 1) ** 2
                angular = -2 * (16 * count**2 / 32**2) * math.pi * turned**2
                values[row, column] = math.exp(radial + angular)
            energy = np.abs(transform(spectrum * values, 1) / n**2)
            energy = energy[extension:, extension:][:size, :size]
            for column in range(blocks):
                for row in range(blocks):
                    rows = slice(limits[row], limits[row + 1])
                    out.append(energy[rows, limits[column] : limits[column + 1]].mean())
    return np.array(out)


@pytest.mark.parametrize(
    ("size", "orientations", "blocks", "prefilter", "extension"),
    [(32, (8, 8, 8, 8), 4, 4.0, 8), (34, (4, 6), 3, 3.0, 5), (24, (8,), 2, 4.0, 0)],
)
def test_values_and_their_order_follow_the_definition(size, orientations, blocks, prefilter, extension):
    images = noise(2, size, size, 3)
    grid = {"orientations": orientations, "blocks": blocks}
    found = gist(images, size=size, **grid, prefilter=prefilter, extension=extension)
    assert found.dtype == np.float32 and found.shape == (2, sum(orientations) * blocks**2)
    for image, values in zip(images, found):
        gray = image.astype(float).mean(axis=2)  # not luma
        expected = definition(gray, orientations, blocks, prefilter, extension)
        np.testing.assert_allclose(values, expected, rtol=2e-5, atol=2e-6 * expected.max())


# As defined: 256 x 256, 8 orientations at each of 4 scales, 4 x 4 blocks. Smooth noise, whose blocks differ.
SQUARES = np.stack([np.asarray(Image.fromarray(coarse).resize((256, 256))) for coarse in noise(2, 64, 64)])
OF_SQUARES = gist(SQUARES)


def test_defaults_give_512_values():
    assert OF_SQUARES.shape == (2, 512) and (OF_SQUARES > 0).all()


def test_an_image_of_one_colour_has_no_energy():
    assert (gist(np.full((1, 40, 40, 3), 200, np.uint8), size=32, extension=8) == 0).all()


@pytest.mark.parametrize(("length", "resized"), [(32, 256), (300, 256), (500, 64), (7, 7), (256, 333)])
def test_resizing_is_bilinear_and_antialiased_as_in_pillow(length, resized):
    matrix = _bilinear(length, resized)
    line = noise(1, length).astype(np.float32)
    pillow = np.asarray(Image.fromarray(line).resize((resized, 1), Image.Resampling.BILINEAR))[0]
    # Where it shrinks, MATLAB mirrors what lies beyond the edges and Pillow leaves it out.
    inside = slice(2, -2) if resized < length else slice(None)
    np.testing.assert_allclose((matrix @ line[0])[inside], pillow[inside], atol=1e-3)
    np.testing.assert_allclose(matrix.sum(axis=1), 1)
    if resized < length:  # symmetric, as the mirrored edges make every pixel count alike
        np.testing.assert_allclose(matrix, matrix[::-1, ::-1], atol=1e-12)


def test_the_centre_of_a_longer_image_is_taken():
    image = noise(1, 64, 101)
    # 101 columns: 37 too many, of which floor(37 / 2) on the left.
    np.testing.assert_allclose(gist(image, size=64), gist(image[:, :, 18:82], size=64), rtol=1e-4)
    np.testing.assert_allclose(
        gist(image.swapaxes(1, 2), size=64), gist(image[:, :, 18:82].swapaxes(1, 2), size=64), rtol=1e-4
    )


def test_many_images_give_what_each_gives_alone():
    images = noise(9, 20, 30, 3)
    alone = np.concatenate([gist(images[i : i + 1], size=64) for i in range(9)])
    np.testing.assert_allclose(gist(images, size=64), alone, rtol=1e-5)
