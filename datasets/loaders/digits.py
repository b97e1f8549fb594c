"""The 1,797 images of handwritten digits that ship inside scikit-learn: no download.

Source: the test part of "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998, UCI).
"""

from importlib import metadata
from pathlib import Path

import numpy as np

from datasets.description import Description
from datasets.files import save_array
from datasets.specification import refuse_unknown_options

OPTIONS: dict[str, str] = {}


def describe(sources: list[Path], **options) -> Description:
    """Labels int64 (1797,), classes 0 to 9, 64 pixels an item. Raises ValueError for any source or option."""
    return _digits(sources, options)[1]


def load(sources: list[Path], folder: Path, **options) -> Description:
    """Write items.npy float32 (1797, 64), pixel values 0 to 16 by row of the 8 x 8 image; and the labels.

    Raises ValueError for any source or option.
    """
    pixels, description = _digits(sources, options)
    save_array(Path(folder) / "items.npy", pixels.astype(np.float32))
    description.write(Path(folder))
    return description


def _digits(sources: list[Path], options: dict) -> tuple[np.ndarray, Description]:
    refuse_unknown_options(options, OPTIONS, "digits")
    if sources:
        raise ValueError(
            f"loader digits: takes no source, its images are part of scikit-learn; got '{sources[0]}'"
        )
    table = _table()
    pixels, labels = table[:, :-1], table[:, -1].astype(np.int64)
    names = [str(digit) for digit in range(10)]
    return pixels, Description(len(labels), labels, None, names, (pixels.shape[1],), "vectors")


def _table() -> np.ndarray:
    """float64 (1797, 65): pixels, then the digit."""
    # Read where it lies: importing scikit-learn takes a second, which every dry run would pay.
    installed = metadata.distribution("scikit-learn")
    file = Path(str(installed.locate_file("sklearn/datasets/data/digits.csv.gz")))
    if file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return np.column_stack([bunch.data, bunch.target])
