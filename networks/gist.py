"""GIST: energies of oriented band-pass filters on a grid of blocks.

Oliva, Torralba: Modeling the Shape of the Scene (IJCV 42(3), 2001), as the LabelMe toolbox computes it
(LMgist.m, createGabor.m) for gray images. The colour program of INRIA (lear_gist) is another one.
"""

import functools
import math
from itertools import pairwise

import numpy as np
import torch

from networks.base.image_network import ImageNetwork

CENTRE_FREQUENCY = 0.3  # of the first scale, cycles per pixel
SCALE_STEP = 1.85  # from one scale's centre frequency to the next one's
RADIAL = 0.35
# Width of the prefilter's border, and the constant that keeps it from amplifying flat regions.
BORDER = 5
DEVIATION_FLOOR = 0.2
# Grays of 0-255 that differ by less are the same.
SAME_GRAY = 1e-3
# Values of a filter below this are indistinguishable from rounding in single precision.
NEGLIGIBLE = 1e-10
# Spectra of the images worked on together: what a cache holds, and what keeps a GPU busy.
BYTES_A_CHUNK = {"cpu": 1 << 21, "cuda": 1 << 28}


class Gist(ImageNetwork):
    """uint8 (n, 3, h, w) of any size to float32 (n, sum(orientations) * blocks**2); it has no weights.

    Values are ordered by scale, then orientation, then blocks with the row running fastest.
    """

    options = {
        "size": "side of the square that images are resized and cropped to, even, default 256",
        "orientations": "filters of each scale, highest frequency first, default [8, 8, 8, 8]",
        "blocks": "blocks along each side, default 4",
        "prefilter": "cycles per image where whitening and normalisation of contrast set in, default 4",
        "extension": "pixels that images are mirrored by before filtering, default 32",
    }
    trainable = False

    def __init__(self, size=256, orientations=(8, 8, 8, 8), blocks=4, prefilter=4.0, extension=32):
        """Raises ValueError for parameters that make no grid."""
        if size < 2 or size % 2 or size < max(blocks, extension, BORDER):
            raise ValueError(
                f"size must be even and at least blocks, extension and {BORDER}, not {size} with {blocks} "
                f"blocks and extension {extension}"
            )
        if blocks < 1 or extension < 0 or not prefilter > 0 or not orientations or min(orientations) < 1:
            raise ValueError(
                "blocks, prefilter and orientations must be positive and extension at least 0, not "
                f"{blocks}, {prefilter}, {tuple(orientations)} and {extension}"
            )
        self.parameters_of_gist = {
            "size": size,
            "orientations": tuple(orientations),
            "blocks": blocks,
            "prefilter": prefilter,
            "extension": extension,
        }
        super().__init__(size, sum(orientations) * blocks**2, (0.0,) * 3)

    def settings(self):
        return [*super().settings(), sorted(self.parameters_of_gist.items())]

    def preprocess(self, images):
        """Nothing: images are resized by `forward`, which keeps their aspect."""
        return images

    def forward(self, images):
        return _gist_of(images.permute(0, 2, 3, 1), **self.parameters_of_gist)


def _gist_of(images, size, orientations, blocks, prefilter, extension):
    """GIST of images (n, h, w, 3), on their device: float32 (n, width)."""
    device = images.device
    filters = _filters(size, orientations, extension, device)
    whitening = _whitening(size, prefilter, device)
    pooling = _pooling(size, blocks, device)
    resizing = [matrix.to(device) for matrix in _resizing(*images.shape[1:3], size)]
    chunk = max(1, BYTES_A_CHUNK.get(device.type, 1 << 21) // (8 * (size + 2 * extension) ** 2))
    found = []
    for block in images.split(chunk):
        squares = _squares(block, *resizing)
        found.append(_energies(_whitened(squares, whitening), filters, pooling, extension).flatten(1))
    return torch.cat(found)


def _squares(images, rows, columns):
    """Gray images of the range 0-255, float32 (n, size, size)."""
    # The plain mean of the colours, not luma.
    square = rows @ images.float().mean(dim=3) @ columns.T
    square = square - square.amin(dim=(1, 2), keepdim=True)
    # An image of one colour becomes 0: what differs there is rounding.
    highest = square.amax(dim=(1, 2), keepdim=True)
    return torch.where(highest > SAME_GRAY, square * (255 / highest), torch.zeros_like(square))


def _whitened(squares, low_pass):
    """Images with local mean and contrast taken out, same shape."""
    logarithm = _mirrored(torch.log1p(squares), BORDER)
    sides = logarithm.shape[1:]
    detail = logarithm - torch.fft.irfft2(torch.fft.rfft2(logarithm) * low_pass, sides)
    variance = torch.fft.irfft2(torch.fft.rfft2(detail.square()) * low_pass, sides)
    whitened = detail / (DEVIATION_FLOOR + variance.abs().sqrt())
    return whitened[:, BORDER:-BORDER, BORDER:-BORDER]


def _energies(images, filters, pooling, extension):
    """float32 (n, filters, columns of blocks, rows of blocks): mean magnitudes of the filtered images."""
    size = images.shape[1]
    inside = slice(extension, extension + size)
    spectra = torch.fft.fft2(_mirrored(images, extension))
    out = []
    for values, columns in filters:
        # By axis, so that columns where the filter is 0 and rows that are cut off cost nothing.
        filtered = torch.fft.ifft(spectra[:, :, columns] * values, dim=1)[:, inside]
        if len(columns) < spectra.shape[2]:
            whole = filtered.new_zeros(*filtered.shape[:2], spectra.shape[2])
            whole[:, :, columns] = filtered
            filtered = whole
        magnitude = torch.fft.ifft(filtered, dim=2)[:, :, inside].abs()
        out.append((pooling @ magnitude @ pooling.T).transpose(1, 2))
    return torch.stack(out, dim=1)


def _mirrored(images, width):
    """(n, h, w) extended by `width` pixels on each side, edge pixels repeated first."""
    if not width:
        return images
    for axis in (1, 2):
        length = images.shape[axis]
        before, after = images.narrow(axis, 0, width), images.narrow(axis, length - width, width)
        images = torch.cat([before.flip(axis), images, after.flip(axis)], dim=axis)
    return images


@functools.lru_cache(maxsize=4)
def _filters(size, orientations, extension, device):
    """[(float32 (n, k) values of a filter in the Fourier plane, the k columns where it is not 0)]."""
    n = size + 2 * extension
    frequency = np.fft.fftfreq(n) * n
    radius = np.hypot(*np.meshgrid(frequency, frequency))
    # x runs along columns and y along rows, downwards.
    angle = np.arctan2(frequency[:, None], frequency[None, :])
    filters = []
    for scale, count in enumerate(orientations):
        centre = n * CENTRE_FREQUENCY / SCALE_STEP**scale
        angular = 16 * count**2 / 32**2
        for orientation in range(count):
            turned = angle + np.pi * orientation / count
            turned = turned + 2 * np.pi * (turned < -np.pi) - 2 * np.pi * (turned > np.pi)
            values = np.exp(-10 * RADIAL * (radius / centre - 1) ** 2 - 2 * angular * np.pi * turned**2)
            columns = np.flatnonzero(values.max(axis=0) > NEGLIGIBLE)
            filters.append(
                (
                    torch.from_numpy(values[:, columns].astype(np.float32)).to(device),
                    torch.from_numpy(columns).to(device),
                )
            )
    return filters


@functools.lru_cache(maxsize=4)
def _whitening(size, prefilter, device):
    """Transfer function of the prefilter's low pass, for a real transform: float32 (n, n // 2 + 1)."""
    n = size + 2 * BORDER
    across, along = np.fft.fftfreq(n) * n, np.fft.rfftfreq(n) * n
    deviation = prefilter / math.sqrt(math.log(2))
    values = np.exp(-(across[:, None] ** 2 + along[None, :] ** 2) / deviation**2)
    return torch.from_numpy(values.astype(np.float32)).to(device)


@functools.lru_cache(maxsize=4)
def _pooling(size, blocks, device):
    """float32 (blocks, size): a row averages the pixels of its block."""
    limits = np.floor(np.linspace(0, size, blocks + 1)).astype(int)
    matrix = np.zeros((blocks, size), np.float32)
    for row, (begin, end) in enumerate(pairwise(limits)):
        matrix[row, begin:end] = 1 / (end - begin)
    return torch.from_numpy(matrix).to(device)


@functools.lru_cache(maxsize=64)
def _resizing(height, width, size):
    """Matrices float32 (size, height) and (size, width) that resize an image until it covers the square of
    `size`, and cut out its centre."""
    scale = max(size / height, size / width)
    matrices = []
    for length in (height, width):
        resized = math.floor(length * scale + 0.5)
        begin = (resized - size) // 2
        matrices.append(_bilinear(length, resized)[begin : begin + size])
    return tuple(torch.from_numpy(matrix.astype(np.float32)) for matrix in matrices)


def _bilinear(length, resized):
    """float64 (resized, length): MATLAB's imresize along one axis, bilinear, antialiased where it shrinks,
    beyond the edges mirrored."""
    scale = resized / length
    stretch = min(scale, 1.0)  # of the kernel's argument: a kernel that shrinks spans more pixels
    places = (np.arange(resized) + 0.5) / scale - 0.5
    pixels = np.floor(places - 1 / stretch).astype(int)[:, None] + np.arange(math.ceil(2 / stretch) + 2)
    weights = stretch * np.maximum(1 - np.abs(stretch * (places[:, None] - pixels)), 0)
    weights /= weights.sum(axis=1, keepdims=True)
    mirror = np.concatenate([np.arange(length), np.arange(length)[::-1]])
    matrix = np.zeros((resized, length))
    np.add.at(matrix, (np.arange(resized)[:, None], mirror[pixels % (2 * length)]), weights)
    return matrix
