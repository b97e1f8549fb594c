"""Whether a .mat file (MATLAB 5 to 7) is built as it must be: asked before SciPy reads it.

SciPy's reader is compiled code that trusts the file: a wrong byte in a tag can end the whole process. What
passes here has known types, lengths that lie inside of one another, and as many values, cells and fields as
its dimensions promise.

Source: "MAT-File Format", The MathWorks.
"""

import math
import struct
import zlib

HEADER = 128  # bytes
MATRIX, COMPRESSED = 14, 15
# Bytes of a value of each type of numbers; text is of the types 16 to 18, or of bytes or 16-bit integers.
SIZES = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
TEXTS = {1, 2, 3, 4, 16, 17, 18}
COMPLEX = 1 << 11  # of the flags of an array
INT8, INT32, UINT32 = 1, 5, 6
CELL, STRUCT, OBJECT, TEXT, FUNCTION = 1, 2, 3, 4, 16
NUMBERS = range(6, 16)
DEEPEST = 40


def check_matlab(file, names=None):
    """Raise ValueError that says where a file is not as it must be; of a file of version 7.3 nothing is said.

    file: opened for reading bytes; names: the variables that will be read, None for all.
    """
    file.seek(0, 2)
    length = file.tell()
    file.seek(0)
    header = file.read(HEADER)
    if len(header) < HEADER or 0 in header[:4] or header[126:] not in (b"IM", b"MI"):
        raise ValueError("no header of MATLAB 5 to 7")
    order = "<" if header[126:] == b"IM" else ">"
    (version,) = struct.unpack(f"{order}H", header[124:126])
    if version == 0x0200:
        return
    if version != 0x0100:
        raise ValueError(f"version {version >> 8} of the format")
    place = HEADER
    while place < length:
        file.seek(place)
        kind, size = _tag(file.read(8), order, place)
        if kind not in (MATRIX, COMPRESSED) or not 0 < size <= length - place - 8:
            raise ValueError(f"no variable after {place} bytes, or a part of one only")
        if kind == COMPRESSED:
            _check_compressed(file.read(size), order, names)
        elif names is None or _name(file.read(min(size, 4096)), order) in names:
            file.seek(place + 8)
            _check_matrix(file.read(size), 0, size, order, 0)
        place += 8 + size


def _tag(data, order, place):
    if len(data) < 8:
        raise ValueError(f"ends after {place + len(data)} bytes, inside of a tag")
    return struct.unpack(f"{order}II", data)


def _check_compressed(data, order, names):
    stream = zlib.decompressobj()
    start = stream.decompress(data, 4096)
    kind, size = _tag(start[:8], order, 0)
    if kind != MATRIX:
        raise ValueError(f"a compressed variable of type {kind}")
    if names is not None and _name(start[8:], order) not in names:
        return
    data = start + stream.decompress(stream.unconsumed_tail, max(1, size + 9 - len(start)))
    if len(data) != size + 8:
        raise ValueError(f"a compressed variable of {len(data) - 8} bytes or more, not {size}")
    _check_matrix(data, 8, size + 8, order, 0)


def _name(data, order):
    """The name of the variable that begins so."""
    found = _elements(data, 0, len(data), order, whole=False)
    for place, (_, begin, size) in enumerate(found):
        if place == 2:
            return data[begin : begin + size].decode("latin-1")
    raise ValueError("a variable without a name")


def _elements(data, begin, end, order, whole=True):
    """(type, begin, size) of each element between two places; not `whole`: the last may be cut short."""
    while begin < end:
        if end - begin < 8:
            raise ValueError("a tag is cut short")
        kind, size = struct.unpack_from(f"{order}II", data, begin)
        first, after = begin + 8, begin + 8 + size + -size % 8
        if kind >> 16:  # up to four bytes lie in the tag itself
            kind, size, first, after = kind & 0xFFFF, kind >> 16, begin + 4, begin + 8
            if size > 4:
                raise ValueError(f"{size} bytes in a tag that can hold 4")
        if kind != MATRIX and kind not in SIZES.keys() | TEXTS:
            raise ValueError(f"data of the unknown type {kind}")
        if whole and first + size > end:
            raise ValueError("an element is longer than what holds it")
        yield kind, first, size
        begin = after


def _check_matrix(data, begin, end, order, depth):
    if begin == end and depth:  # an empty cell
        return
    if depth > DEEPEST:
        raise ValueError(f"goes deeper than {DEEPEST} levels")
    elements = list(_elements(data, begin, end, order))
    kinds = [kind for kind, _, _ in elements]
    if kinds[:3] != [UINT32, INT32, INT8] or elements[0][2] != 8:
        raise ValueError("an array without its class, dimensions and name")
    (flags,) = struct.unpack_from(f"{order}I", data, elements[0][1])
    kind = flags & 0xFF
    dimensions = _integers(data, elements[1], order)
    if not 2 <= len(dimensions) <= 32 or min(dimensions) < 0:
        raise ValueError("an array of impossible dimensions")
    rest, count = elements[3:], math.prod(dimensions)
    if kind == OBJECT:
        rest = rest[1:]
    if kind in (STRUCT, OBJECT):
        count *= _fields(data, rest[:2], order)
        rest = rest[2:]
    if kind in (CELL, STRUCT, OBJECT, FUNCTION):
        if len(rest) != (1 if kind == FUNCTION else count) or {inner for inner, _, _ in rest} - {MATRIX}:
            raise ValueError(f"{len(rest)} arrays where there must be {count}")
        for _, first, size in rest:
            _check_matrix(data, first, first + size, order, depth + 1)
    elif kind == TEXT:
        if len(rest) != 1 or rest[0][0] not in TEXTS:
            raise ValueError("text without its characters")
    elif kind in NUMBERS:
        if len(rest) != (2 if flags & COMPLEX else 1) or any(inner not in SIZES for inner, _, _ in rest):
            raise ValueError("an array without its values")
        if any(size != count * SIZES[inner] for inner, _, size in rest):
            raise ValueError(f"{rest[0][2]} bytes of values where there must be {count} values")
    else:
        raise ValueError(f"an array of class {kind}, which is not read here")


def _integers(data, element, order):
    _, first, size = element
    return struct.unpack_from(f"{order}{size // 4}i", data, first)


def _fields(data, elements, order):
    """How many fields a struct has."""
    if [kind for kind, _, _ in elements] != [INT32, INT8] or elements[0][2] != 4:
        raise ValueError("a struct without the names of its fields")
    (length,) = _integers(data, elements[0], order)
    if length < 1 or elements[1][2] % length:
        raise ValueError("names of fields of an impossible length")
    return elements[1][2] // length
