"""One reading of what comes from outside: arrays, integers, labels and ids.

The library, its commands and the loaders of data sets read values by these functions, so that one value is
taken everywhere, or refused everywhere. Every ValueError is one line that names the argument, what is wrong
with it, and what is right.

Where a torch tensor comes in, torch is loaded already: nothing here imports it.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tiebench import texts
from tiebench.messages import one_line, printable, shorten
from tiebench.texts import LARGEST

LARGEST_CUTOFF = 10**18 - 1  # the names of metrics have as many digits
_EXACT_IN_DOUBLE = 2**53


class NotANumber(ValueError):
    """Codes hold a NaN where none may be: where a network made them, its training has diverged."""


# -- arrays ----------------------------------------------------------------------------------------


def is_tensor(value: object) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any, name: str = "values") -> np.ndarray:
    """A NumPy array of an array, list or tensor of any dtype; memory is shared where it can be.

    Tensors may be on any device, need gradients, and be of types that NumPy lacks (bfloat16: float32). Raises
    ValueError for masked values, sparse tensors and matrices, and what is no array.
    """
    if type(value) is np.ndarray:
        return value
    if is_tensor(value):
        return _of_tensor(value, name)
    if np.ma.isMaskedArray(value):
        if hidden := int(np.ma.count_masked(value)):
            raise ValueError(f"{name}: {hidden} of its {value.size} values are masked; leave these items out")
        return np.asarray(value.data)
    if isinstance(value, (list, tuple)) and any(map(is_tensor, value)):
        value = [as_array(one, name) for one in value]
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array: {one_line(error)}") from error
    if array.dtype.kind == "O" and array.ndim == 0:  # NumPy holds any object so
        raise ValueError(f"{name} must be an array, a tensor or a list, not {type(value).__name__}")
    return array


def _plain_array(values, name):
    """`as_array`, in which objects that are numbers or text are these."""
    array = as_array(values, name)
    return _of_objects(array, name) if array.dtype.kind == "O" else array


def _of_tensor(value, name):
    value = value.detach().cpu()
    if value.is_floating_point() and value.element_size() < 4:  # NumPy has no bfloat16
        value = value.float()
    try:
        return value.resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError) as error:
        raise ValueError(f"{name} cannot be read as an array: {one_line(error)}") from error


def form(array: Any) -> str:
    """Type and shape of an array or tensor, as messages say it: "int8 (10, 4)"."""
    return f"{str(array.dtype).removeprefix('torch.')} {tuple(array.shape)}"


def hint_of_packed(codes: Any, bits: int) -> str:
    """The end of a message: how codes, an array or tensor, are packed as uint8; "" if they are not packed."""
    kind = str(codes.dtype).removeprefix("torch.")
    if codes.ndim != 2 or codes.shape[1] != -(-bits // 8) or kind == "uint8" or "int" not in kind:
        return ""
    # sentence-transformers and others: int8(packbits(...) - 128)
    if kind == "int8" or (kind.startswith("int") and bool((codes < 0).any())):
        return (
            "; packed codes of the precision 'binary', int8, are 128 less than uint8: give "
            "(codes.astype('int16') + 128).astype('uint8')"
        )
    return "; packed codes of another integer type: give codes.astype('uint8')"


def _at(name, wrong):
    """The first place where `wrong` is true, as "name[3, 0]", and its index."""
    place = tuple(int(part) for part in np.argwhere(wrong)[0])
    return f"{name}[{', '.join(map(str, place))}]", place


# -- numbers ---------------------------------------------------------------------------------------


def integer(value: Any, name: str, least: int | None = None, most: int = LARGEST, limit: str = "") -> int:
    """One integer: of any integer type, a whole float, or an array or tensor without dimensions.

    least, most: its range; limit: what `most` is, "the number of bits". Raises ValueError for a number
    outside the range, and for truth values, text, fractions, NaN and all else.
    """
    given = value
    if is_tensor(value) or isinstance(value, np.ndarray):
        array = as_array(value, name)
        given = value = array[()] if array.ndim == 0 else array
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    whole = whole or (isinstance(value, (float, np.floating)) and float(value).is_integer())
    if not whole or int(value) > most or (least is not None and int(value) < least):
        too_large = whole and int(value) > most
        wanted = _range(least, most, limit, too_large)
        if not whole and wanted.startswith("between"):
            wanted = f"an integer {wanted}"
        raise ValueError(f"{name} must be {wanted}, not {_shown(given)}")
    return int(value)


def _range(least, most, limit, too_large):
    if most < LARGEST_CUTOFF:  # a limit that was asked for, not that of the type
        return f"between {least} and {most}{', ' * bool(limit)}{limit}"
    found = {None: "an integer", 1: "a positive integer"}.get(least, f"an integer of at least {least}")
    return f"{found} of at most {most}" if too_large else found


def _shown(value):
    if isinstance(value, np.ndarray):
        return form(value)
    return shorten(repr(value.item() if isinstance(value, np.generic) else value), 60)


def cutoff(value: Any) -> int:
    """K, the number of items that a metric looks at: at least 1. Raises ValueError as `integer`."""
    return integer(value, "the cut K", 1, LARGEST_CUTOFF)


def cutoffs(at: Any) -> tuple[int, ...]:
    """One K, or a list, array or tensor of several, each once. Raises ValueError as `integer`."""
    if is_tensor(at) or isinstance(at, np.ndarray):
        at = as_array(at, "the cuts K")
        at = at.ravel() if at.ndim < 2 else [at]
    elif isinstance(at, (str, bytes)) or not isinstance(at, Iterable):
        at = [at]
    return tuple(dict.fromkeys(map(cutoff, at)))


def integers(values: Any, name: str, *, booleans: bool = False, written: bool = False) -> np.ndarray:
    """Integers of any shape: of their own integer type, or as int64 where it is another.

    values: integers of any type up to 2^63 - 1, whole floats, objects that are either; with `booleans` also
    truth values, with `written` also text, as `texts.integer` reads it. Raises ValueError that names the
    first value that is none.
    """
    array = _plain_array(values, name)
    kind = array.dtype.kind
    if written and kind in "UST":
        return _written(text(array, name), name)
    if kind == "i" or (kind == "u" and array.dtype.itemsize < 8):
        return array
    if kind == "b" and booleans:
        return array.astype(np.int64)
    if kind == "u":
        wrong = array > LARGEST
    elif kind == "f":
        # The absolute value, not the type's largest: 2^63 - 1 is no double.
        wrong = ~np.isfinite(array) | (array != np.floor(array)) | (np.abs(array) >= np.float64(2.0**63))
    else:
        raise ValueError(f"{name} must be integers, not {form(array)}")
    if wrong.any():
        where, place = _at(name, wrong)
        beyond = f" of 64 bits, at most {LARGEST}" * bool(abs(array[place]) > LARGEST)
        raise ValueError(f"{where} is {array[place]}; it must be an integer{beyond}")
    return array.astype(np.int64)


def _written(array, name):
    found = np.empty(array.shape, np.int64)
    for place in np.ndindex(array.shape):
        try:
            found[place] = texts.integer(str(array[place]))
        except ValueError as error:
            raise ValueError(f"{name}[{', '.join(map(str, place))}] {error}") from None
    return found


def rows(values: Any, name: str, items: int | None = None) -> NDArray[np.int64]:
    """Row numbers int64 (m,): integers from 0, below `items` if that is given. Raises ValueError."""
    found = integers(values, name)
    if found.ndim != 1:
        raise ValueError(f"{name} must be row numbers (m,), not {form(found)}")
    wrong = found < 0
    if items is not None:
        wrong |= found >= items
    if wrong.any():
        where, place = _at(name, wrong)
        end = "at least 0" if items is None else f"0 to {items - 1}"
        raise ValueError(f"{where} is {found[place]}; row numbers must be {end}")
    return found.astype(np.int64, copy=False)


def numbers(values: Any, name: str) -> NDArray[np.float64]:
    """Real numbers of any shape as float64, NaN and infinities among them; truth values count as 0 and 1.

    Raises ValueError for other types, and for integers that double precision does not hold, which would tie.
    """
    array = _plain_array(values, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, not {form(array)}")
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8:
        wrong = array > _EXACT_IN_DOUBLE
        if array.dtype.kind == "i":
            wrong |= array < -_EXACT_IN_DOUBLE
        if wrong.any():
            where, place = _at(name, wrong)
            raise ValueError(f"{where} is {array[place]}; integers beyond 2^53 are not exact as numbers")
    return array.astype(np.float64, copy=False)


# -- names and labels ------------------------------------------------------------------------------


def is_text(array: np.ndarray) -> bool:
    """Whether an array that `ids`, `classes` or `labels` returned holds text."""
    return array.dtype.kind == "U"


def text(values: np.ndarray, name: str) -> np.ndarray:
    """Text of any of NumPy's types as type U; bytes are UTF-8. Raises ValueError for other bytes."""
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind == "T":  # which NumPy casts to objects alone
        return values.astype(object).astype(str)
    if values.dtype.kind == "O" and not any(isinstance(one, bytes) for one in values.flat):
        return values.astype(str)
    found = np.empty(values.shape, object)
    for place in np.ndindex(values.shape):
        one = values[place]
        try:
            found[place] = one.decode("utf-8") if isinstance(one, bytes) else one
        except UnicodeDecodeError as error:
            where = f"{name}[{', '.join(map(str, place))}]"
            raise ValueError(f"{where} holds bytes that are not UTF-8 text ({error.reason})") from error
    return found.astype(str)


def _of_objects(array, name):
    """An object array, as of pandas, as integers, floats or text (U). Raises ValueError for mixtures."""
    texts = np.array([isinstance(one, (str, bytes)) for one in array.flat], bool)
    if len(texts) and texts.all():
        return text(array, name)
    if texts.any():
        one, two = (array.flat[int(np.argmax(part))] for part in (texts, ~texts))
        raise ValueError(f"{name} must be all integers or all text: it holds {_shown(one)} and {_shown(two)}")
    kinds = (int, float, np.integer, np.floating)
    whole = all(isinstance(one, (int, np.integer)) for one in array.flat)
    most = LARGEST if whole else _EXACT_IN_DOUBLE
    for place, one in enumerate(array.flat):
        if not isinstance(one, kinds) or isinstance(one, bool):
            where = ", ".join(map(str, np.unravel_index(place, array.shape)))
            raise ValueError(f"{name}[{where}] is {_shown(one)}; it must be a number or text")
        if isinstance(one, (int, np.integer)) and abs(int(one)) > most:
            where = ", ".join(map(str, np.unravel_index(place, array.shape)))
            limit = f"of 64 bits, at most {most}" if whole else f"of at most {most} beside floats"
            raise ValueError(f"{name}[{where}] is {one}; it must be an integer {limit}")
    return array.astype(np.int64 if whole else np.float64)


def ids(values: Any, name: str) -> np.ndarray:
    """Names of items (n,): integers, of any type, or text, of type U; bytes are UTF-8 text.

    Raises ValueError for other shapes and types, and for integers and text in one array.
    """
    array = _plain_array(values, name)
    if array.ndim != 1 or array.dtype.kind not in "iufUST":
        raise ValueError(f"{name} must be integers or strings (n,), not {form(array)}")
    if array.dtype.kind in "UST":
        return text(array, name)
    return integers(array, name) if array.dtype.kind == "f" else array


def classes(values: Any, name: str) -> np.ndarray:
    """One class for each item (n,): integers, of their own type or as int64, or text, of type U.

    Whole floats and truth values are integers, bytes are text. Raises ValueError for all else.
    """
    array = _plain_array(values, name)
    if array.ndim != 1 or array.dtype.kind not in "biufUST":
        raise ValueError(f"{name} must be integers or strings of shape (n,), not {form(array)}")
    return text(array, name) if array.dtype.kind in "UST" else integers(array, name, booleans=True)


def several_labels(values: Any, name: str) -> NDArray[np.uint8]:
    """Labels as 0/1, uint8 (n, L), of numbers of any type. Raises ValueError for other shapes and values."""
    array = _plain_array(values, name)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a 0/1 matrix (n, labels), not {form(array)}")
    if array.shape[1] == 0:
        raise ValueError(f"{name} have no columns: {array.shape}")
    wrong = array > 1 if array.dtype.kind in "bu" else (array != 0) & (array != 1)
    if wrong.any():
        where, place = _at(name, wrong)
        raise ValueError(
            f"{where} is {array[place]}; a matrix of labels (n, labels) is 0 or 1, classes are of shape (n,)"
        )
    return array.astype(np.uint8, order="C", copy=False)


def labels(values: Any, name: str, items: int | None = None) -> np.ndarray:
    """Labels of items: `classes` of an array (n,), `several_labels` of a matrix (n, L), L >= 2.

    items: how many items there are, if that is known. Raises ValueError for all else, and for a matrix of one
    column, or of one row for several items: MATLAB saves classes so, and a single label looks so, too.
    """
    array = as_array(values, name)
    check_form(array, name, items)
    return classes(array, name) if array.ndim == 1 else several_labels(array, name)


def check_form(labels: Any, name: str, items: int | None = None) -> None:
    """Raise ValueError unless an array or tensor is of a shape that `labels` takes; values are not read."""
    shape = tuple(labels.shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"{name} must be classes (n,) or 0/1 (n, labels), not {form(labels)}")
    if len(shape) == 2 and shape[1] == 1:
        raise ValueError(
            f"{name} of shape {shape} can be read in two ways: classes are (n,), give {name}[:, 0]; one "
            "label that items have or lack is 0/1 (n, labels), give it a second column of zeros"
        )
    if len(shape) == 2 and shape[0] == 1 and items not in (None, 1) and shape[1] == items:
        raise ValueError(f"{name} of shape {shape} is a row: classes are (n,), give {name}[0]")


def refuse_twice(names: np.ndarray, what: str) -> None:
    """Raise ValueError where a name of an array of `ids` is there twice."""
    found, counts = np.unique(names, return_counts=True)
    if len(found) < len(names):
        raise ValueError(f"{what} has {printable(str(found[counts > 1][0]), 60)!r} twice")
