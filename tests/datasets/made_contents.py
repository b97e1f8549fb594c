"""Contents of files for several tests: photographs of random pixels, what Pillow makes of them."""

import io

import numpy as np
from PIL import Image


def contents_of(save, *given, **named) -> bytes:
    """What a function writes that takes a file, and then these arguments."""
    buffer = io.BytesIO()
    save(buffer, *given, **named)
    return buffer.getvalue()


def encoded(seed: int, height: int, width: int, mode: str = "RGB", kind: str = "jpeg") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return contents_of(Image.fromarray(pixels).convert(mode).save, kind)


def resized(contents: bytes, size) -> np.ndarray:
    image = Image.open(io.BytesIO(contents)).convert("RGB")
    return np.asarray(image.resize((size[1], size[0]), Image.Resampling.BICUBIC))
