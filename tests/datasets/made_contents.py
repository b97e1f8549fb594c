"""Contents of files for several tests: photographs of random pixels, what Pillow makes of them, zips."""

import io
import zipfile

import numpy as np
from PIL import Image


def contents_of(save, *given, **named) -> bytes:
    """What a function writes that takes a file, and then these arguments."""
    buffer = io.BytesIO()
    save(buffer, *given, **named)
    return buffer.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    def save(buffer):
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, contents in files.items():
                archive.writestr(name, contents)

    return contents_of(save)


def encoded(seed: int, height: int, width: int, mode: str = "RGB", kind: str = "jpeg") -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return contents_of(Image.fromarray(pixels).convert(mode).save, kind)


def resized(contents: bytes, size) -> np.ndarray:
    image = Image.open(io.BytesIO(contents)).convert("RGB")
    return np.asarray(image.resize((size[1], size[0]), Image.Resampling.BICUBIC))
