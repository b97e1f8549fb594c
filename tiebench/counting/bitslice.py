"""Joint histograms of Hamming distance and affinity by bit-slicing: the fast kernel, for 1 to 128 bits.

The database is stored as bit planes: word j of a group of 512 items holds bit j of those items, so one
512-bit vector operation works on 512 items at once. For one query,

1. XOR with the query's bits and full adders turn the b planes into the binary digits of the 512 distances
   (the *distance planes*: 1, 2, 4, ...). Two queries take turns, so that each plane is loaded once for both;
2. for every distance, AND-ing the right planes or their complements and counting bits gives its bin. Eight
   neighbouring distances share one pass: the counts of all products of the three lowest planes are taken
   and turned into the eight bins by inclusion and exclusion, which needs 7 ANDs instead of 14.

A second pass under a mask of the relevant items gives the relevant bins. Compared with one popcount and one
increment a pair, which is bound by the increments, this needs about 0.6 vector operations a pair at 48 bits.

The vector code is written as LLVM instructions on <8 x i64>: Numba's loop vectoriser gives up on loops over
this many arrays. LLVM splits the vectors where a processor's are shorter, so it runs everywhere. With AVX-512
a full adder is two instructions (vpternlogq), which LLVM does not find by itself.
"""

import numpy as np
from llvmlite import ir
from numba import literal_unroll, types
from numba.core import cgutils, config
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic

from tiebench._compiled import compiled

LANES = 8  # 64-bit words in a vector
VECTOR_ITEMS = 64 * LANES  # items in a vector
_OCTETS = tuple(range(1, 17))  # of bits of a code
BLOCK_VECTORS = 16  # vectors in a block: at 48 bits a block and its scratch stay in the level-2 cache

_WORD = ir.IntType(64)
_LANE = ir.IntType(32)
_VECTOR = ir.VectorType(_WORD, LANES)
_ZERO = ir.Constant(_VECTOR, [0] * LANES)
_SUM, _MAJORITY = 0x96, 0xE8  # truth tables of three inputs, as vpternlogq takes them


def _has_ternary_logic():
    """Whether Numba compiles for a processor with AVX-512: this one, unless its settings name another."""
    given = config.CPU_FEATURES
    return "+avx512f" in (get_host_cpu_features() if given is None else given).split(",")


def _pointer(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


def _load(builder, pointer, index):
    value = builder.load(builder.gep(pointer, [index]))
    value.align = 8  # NumPy aligns to 16 bytes at best: a stricter promise would fault
    return value


def _store(builder, pointer, index, value):
    builder.store(value, builder.gep(pointer, [index])).align = 8


def _shuffle(builder, x, y, order):
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_LANE, LANES), order))


def _broadcast(builder, word):
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), word, ir.Constant(_LANE, 0))
    return _shuffle(builder, vector, vector, [0] * LANES)


def _vector_function(builder, name, *argument_types):
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(_VECTOR, argument_types), name)


def _full_adder(builder, x, y, z):
    """Sum and carry of three planes of equal worth."""
    if _has_ternary_logic():
        name = "llvm.x86.avx512.pternlog.q.512"
        ternary = _vector_function(builder, name, _VECTOR, _VECTOR, _VECTOR, _LANE)
        return tuple(
            builder.call(ternary, [x, y, z, ir.Constant(_LANE, table)]) for table in (_SUM, _MAJORITY)
        )
    differ = builder.xor(x, y)
    return builder.xor(differ, z), builder.or_(builder.and_(differ, z), builder.and_(builder.not_(differ), x))


class _Digits:
    """Binary digits of the number of planes that are set at each position.

    Planes are added one by one, three of equal worth at once, so that few are held at a time: they stay in
    registers.
    """

    def __init__(self, builder):
        self.builder = builder
        self.waiting = []  # [k]: at most two planes worth 2^k

    def add(self, plane, digit=0):
        while True:
            if digit == len(self.waiting):
                self.waiting.append([])
            self.waiting[digit].append(plane)
            if len(self.waiting[digit]) < 3:
                return
            total, plane = _full_adder(self.builder, *self.waiting[digit])
            self.waiting[digit] = [total]
            digit += 1

    def finish(self, digits):
        """The lowest `digits` digits, lowest first; the others are 0."""
        for digit in range(digits - 1):
            if digit < len(self.waiting) and len(self.waiting[digit]) == 2:
                x, y = self.waiting[digit]
                self.waiting[digit] = [self.builder.xor(x, y)]
                self.add(self.builder.and_(x, y), digit + 1)
        return [planes[0] for planes in self.waiting] + [_ZERO] * (digits - len(self.waiting))


def _i64(value):
    return ir.Constant(_WORD, value)


@intrinsic
def popcount(typing_context, word):
    """Number of bits that are set in a word.

    Parameters
    ----------
    word : uint64

    Returns
    -------
    uint64
    """

    def generate(context, builder, signature, arguments):
        function = builder.module.declare_intrinsic("llvm.ctpop", (arguments[0].type,))
        return builder.call(function, arguments)

    return types.uint64(types.uint64), generate


@intrinsic(prefer_literal=True)
def _distance_planes(typing_context, planes, offset, masks, mask, other_mask, scratch, half, vectors, octets):
    """scratch[p v + k] = plane 2^k of the distances of the items in vector v to the query whose masks begin
    at `mask`; from `half` on, those to the query of `other_mask`. `octets` is a literal, and p the number of
    binary digits of 8 octets."""
    if not isinstance(octets, types.IntegerLiteral):
        return None
    width = 8 * octets.literal_value
    digits = width.bit_length()

    def generate(context, builder, signature, arguments):
        source = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        mask_data = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        queries = [builder.gep(mask_data, [first]) for first in arguments[3:5]]
        targets = [
            _pointer(context, builder, signature.args[5], arguments[5], first)
            for first in (_i64(0), arguments[6])
        ]
        with cgutils.for_range(builder, arguments[7], intp=_WORD) as loop:
            first = builder.mul(loop.index, _i64(width))
            distances = [_Digits(builder), _Digits(builder)]
            for bit in range(width):
                plane = _load(builder, source, builder.add(first, _i64(bit)))
                for query, distance in zip(queries, distances):
                    word = builder.load(builder.gep(query, [_i64(bit)]))
                    distance.add(builder.xor(plane, _broadcast(builder, word)))
            first = builder.mul(loop.index, _i64(digits))
            for target, distance in zip(targets, distances):
                for k, digit in enumerate(distance.finish(digits)):
                    _store(builder, target, builder.add(first, _i64(k)), digit)
        return context.get_dummy_value()

    signature = types.void(planes, offset, masks, mask, other_mask, scratch, half, vectors, octets)
    return signature, generate


def _add_lanes(builder, vectors):
    """Of eight vectors, a vector whose lane k is the sum of the lanes of vector k."""
    for even, odd in (
        ([0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]),
        ([0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]),
        ([0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]),
    ):
        vectors = [
            builder.add(_shuffle(builder, x, y, even), _shuffle(builder, x, y, odd))
            for x, y in zip(vectors[::2], vectors[1::2])
        ]
    return vectors[0]


@intrinsic(prefer_literal=True)
def _add_octets(typing_context, scratch, start, begin, end, select, bins, row, octets, digits):
    """Add the selected items of vectors begin..end-1 to bins[row + d], d = their distance < 8 octets. Their
    distance planes, `digits` (a literal) of each vector, begin at scratch[start]."""
    if not isinstance(digits, types.IntegerLiteral):
        return None
    planes = digits.literal_value

    def generate(context, builder, signature, arguments):
        source = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        mask = _pointer(context, builder, signature.args[4], arguments[4], _i64(0))
        target = _pointer(context, builder, signature.args[5], arguments[5], arguments[6])
        popcount = _vector_function(builder, f"llvm.ctpop.v{LANES}i64", _VECTOR)
        sums = [cgutils.alloca_once(builder, _VECTOR) for _ in range(8)]
        with cgutils.for_range(builder, arguments[7], intp=_WORD) as octet:
            # All ones where the octet's distances do not have the plane 8, 16, ...
            flips = [
                _broadcast(
                    builder,
                    builder.sub(builder.and_(builder.lshr(octet.index, _i64(k)), _i64(1)), _i64(1)),
                )
                for k in range(planes - 3)
            ]
            for total in sums:
                builder.store(_ZERO, total)
            with cgutils.for_range_slice(builder, arguments[2], arguments[3], _i64(1), intp=_WORD) as (
                index,
                _,
            ):
                first = builder.mul(index, _i64(planes))
                one, two, four, *higher = (
                    _load(builder, source, builder.add(first, _i64(k))) for k in range(planes)
                )
                items = _load(builder, mask, index)
                for plane, flip in zip(higher, flips):
                    items = builder.and_(items, builder.xor(plane, flip))
                items_1 = builder.and_(items, one)
                items_2 = builder.and_(items, two)
                items_12 = builder.and_(items_1, two)
                terms = (
                    items,
                    items_1,
                    items_2,
                    items_12,
                    builder.and_(items, four),
                    builder.and_(items_1, four),
                    builder.and_(items_2, four),
                    builder.and_(items_12, four),
                )
                for total, term in zip(sums, terms):
                    builder.store(builder.add(builder.load(total), builder.call(popcount, [term])), total)
            counts = _add_lanes(builder, [builder.load(total) for total in sums])
            # From 'at least these planes' to 'exactly these planes'.
            for plane in (1, 2, 4):
                more = [LANES if k & plane else k | plane for k in range(8)]
                counts = builder.sub(counts, _shuffle(builder, counts, _ZERO, more))
            before = _load(builder, target, octet.index)
            _store(builder, target, octet.index, builder.add(before, counts))
        return context.get_dummy_value()

    signature = types.void(scratch, start, begin, end, select, bins, row, octets, digits)
    return signature, generate


@compiled(nogil=True, boundscheck=False)
def _add_bins(scratch, start, begin, end, select, bins, row, octets):
    """`_add_octets` with as many planes as the distances have digits."""
    if octets == 1:
        _add_octets(scratch, start, begin, end, select, bins, row, octets, 4)
    elif octets < 4:
        _add_octets(scratch, start, begin, end, select, bins, row, octets, 5)
    elif octets < 8:
        _add_octets(scratch, start, begin, end, select, bins, row, octets, 6)
    elif octets < 16:
        _add_octets(scratch, start, begin, end, select, bins, row, octets, 7)
    else:
        _add_octets(scratch, start, begin, end, select, bins, row, octets, 8)


@compiled(nogil=True, boundscheck=False, inline="always")
def _slice_distances(planes, offset, masks, mask, other_mask, scratch, vectors, octets):
    half = len(scratch) // 2
    for literal in literal_unroll(_OCTETS):
        if octets == literal:
            _distance_planes(planes, offset, masks, mask, other_mask, scratch, half, vectors, literal)


@compiled(nogil=True, boundscheck=False)
def _class_mask(select, block_begin, begin, end):
    """Set the bits of the items begin..end-1 in `select`, whose bit 0 is item `block_begin`; returns the
    first and the past-the-end vector that hold them, all of whose words are written."""
    low = begin - block_begin
    high = end - block_begin
    first = low // VECTOR_ITEMS
    last = (high + VECTOR_ITEMS - 1) // VECTOR_ITEMS
    ones = ~np.uint64(0)
    for word in range(first * LANES, last * LANES):
        mask = ones
        if word * 64 < low:
            skip = low - word * 64
            mask = np.uint64(0) if skip >= 64 else mask << np.uint64(skip)
        if word * 64 + 64 > high:
            keep = high - word * 64
            mask = np.uint64(0) if keep <= 0 else mask & (ones >> np.uint64(64 - keep))
        select[word] = mask
    return first, last


@compiled(nogil=True, boundscheck=False)
def _scratch(octets):
    """Room for the distance planes of a block to two queries, uint64, flat."""
    digits = 4
    while 8 * octets >= 1 << digits:
        digits += 1
    return np.empty(2 * BLOCK_VECTORS * LANES * digits, np.uint64)


@compiled(nogil=True, boundscheck=False)
def count_equal_labels(planes, items, query_masks, relevant_begin, relevant_end, bits, counts):
    """Histograms where the relevant items of query q are items relevant_begin[q]..relevant_end[q]-1 of the
    (sorted) database.

    Parameters
    ----------
    planes : uint64, flat
        Bit planes of the database, vector-major (vector, bit, 8), as of `slice_bits`.
    items : int
        N.
    query_masks : uint64 (Q, 8 octets)
        All ones where the query's bit is 1.
    relevant_begin, relevant_end : int64 (Q,)
    bits : int
        b.
    counts : int64 (Q, 2, b + 1)
        Zero on entry; the result, [0] irrelevant, [1] relevant.
    """
    queries, width = query_masks.shape
    octets = width // 8
    scratch = _scratch(octets)
    valid = np.empty(BLOCK_VECTORS * LANES, np.uint64)
    select = np.empty(BLOCK_VECTORS * LANES, np.uint64)
    bins = np.zeros((queries, 2, width), np.int64)  # of all items, and of the relevant ones
    flat = bins.reshape(-1)
    masks = query_masks.reshape(-1)
    block_items = BLOCK_VECTORS * VECTOR_ITEMS
    for begin in range(0, items, block_items):
        end = min(begin + block_items, items)
        _, vectors = _class_mask(valid, begin, begin, end)
        offset = (begin // VECTOR_ITEMS) * width * LANES
        for pair in range(0, queries, 2):
            other = min(pair + 1, queries - 1)
            _slice_distances(planes, offset, masks, pair * width, other * width, scratch, vectors, octets)
            for q in range(pair, other + 1):
                start = (q - pair) * (len(scratch) // 2)
                _add_bins(scratch, start, 0, vectors, valid, flat, 2 * q * width, octets)
                low = max(relevant_begin[q], begin)
                high = min(relevant_end[q], end)
                if low < high:
                    first, last = _class_mask(select, begin, low, high)
                    _add_bins(scratch, start, first, last, select, flat, (2 * q + 1) * width, octets)
    for q in range(queries):
        farthest = items  # at distance 8 octets: what the octets below did not count
        farthest_relevant = relevant_end[q] - relevant_begin[q]
        for d in range(width):
            farthest -= bins[q, 0, d]
            farthest_relevant -= bins[q, 1, d]
            if d <= bits:
                counts[q, 0, d] = bins[q, 0, d] - bins[q, 1, d]
                counts[q, 1, d] = bins[q, 1, d]
        if bits == width:
            counts[q, 0, bits] = farthest - farthest_relevant
            counts[q, 1, bits] = farthest_relevant


@compiled(nogil=True, boundscheck=False)
def count_shared_labels(planes, items, query_masks, label_planes, query_labels, levels, bits, counts):
    """Histograms where the affinity is the number of shared labels, at most levels - 1.

    Parameters
    ----------
    planes, items, query_masks, bits
        As of `count_equal_labels`.
    label_planes : uint64, flat
        Bit planes of the labels, vector-major (vector, label, 8).
    query_labels : bool (Q, L)
    levels : int
        V; 2 counts "at least one shared label".
    counts : int64 (Q, V, b + 1)
        Zero on entry; the result.
    """
    queries, width = query_masks.shape
    octets = width // 8
    labels = query_labels.shape[1]
    words = BLOCK_VECTORS * LANES
    scratch = _scratch(octets)
    valid = np.empty(words, np.uint64)
    at_least = np.empty((levels + 1, words), np.uint64)  # at_least[v]: items that share >= v labels
    bins = np.zeros((queries, levels, width), np.int64)  # [0]: of all items
    flat = bins.reshape(-1)
    totals = np.zeros((queries, levels), np.int64)  # items in each of them
    masks = query_masks.reshape(-1)
    block_items = BLOCK_VECTORS * VECTOR_ITEMS
    for begin in range(0, items, block_items):
        end = min(begin + block_items, items)
        _, vectors = _class_mask(valid, begin, begin, end)
        first_vector = begin // VECTOR_ITEMS
        offset = first_vector * width * LANES
        for pair in range(0, queries, 2):
            other = min(pair + 1, queries - 1)
            _slice_distances(planes, offset, masks, pair * width, other * width, scratch, vectors, octets)
            for q in range(pair, other + 1):
                start = (q - pair) * (len(scratch) // 2)
                _add_bins(scratch, start, 0, vectors, valid, flat, levels * q * width, octets)
                reached = 0  # no item shares more labels than the query has
                for label in range(labels):
                    if not query_labels[q, label]:
                        continue
                    top = min(reached + 1, levels - 1)
                    for vector in range(vectors):
                        source = ((first_vector + vector) * labels + label) * LANES
                        for lane in range(LANES):
                            word = vector * LANES + lane
                            plane = label_planes[source + lane]
                            for level in range(top, 1, -1):
                                known = at_least[level, word] if level <= reached else np.uint64(0)
                                at_least[level, word] = known | (at_least[level - 1, word] & plane)
                            known = at_least[1, word] if reached else np.uint64(0)
                            at_least[1, word] = known | plane
                    reached = top
                for level in range(1, reached + 1):
                    selected = 0
                    for word in range(vectors * LANES):
                        mask = at_least[level, word]
                        if level < reached:
                            mask = mask & ~at_least[level + 1, word]
                        at_least[level, word] = mask
                        selected += np.int64(popcount(mask))
                    if selected:
                        totals[q, level] += selected
                        row = (levels * q + level) * width
                        _add_bins(scratch, start, 0, vectors, at_least[level], flat, row, octets)
    for q in range(queries):
        totals[q, 0] = items
        for level in range(levels):
            for d in range(width):
                totals[q, level] -= bins[q, level, d]  # in the end: those at distance 8 octets
                if d <= bits:
                    counts[q, level, d] = bins[q, level, d]
            if bits == width:
                counts[q, level, bits] = totals[q, level]
        for level in range(1, levels):
            for d in range(bits + 1):
                counts[q, 0, d] -= counts[q, level, d]


@compiled(nogil=True, boundscheck=False)
def _transpose_bits(octets):
    """Bit 8 r + c of a word to 8 c + r: three exchanges of ever larger blocks."""
    exchanged = (octets ^ (octets >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    octets ^= exchanged ^ (exchanged << np.uint64(7))
    exchanged = (octets ^ (octets >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    octets ^= exchanged ^ (exchanged << np.uint64(14))
    exchanged = (octets ^ (octets >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return octets ^ exchanged ^ (exchanged << np.uint64(28))


@compiled(nogil=True, boundscheck=False)
def _slice_words(packed, columns, planes, begin):
    """Write the bits of packed, uint8 (64 m, bytes), to planes (vectors, width, LANES) from word `begin`."""
    octets = np.empty(8, np.uint64)
    for word in range(packed.shape[0] // 64):
        vector, lane = divmod(begin + word, LANES)
        for byte in range(packed.shape[1]):
            for group in range(8):  # bit c of byte r: bit c of item r
                eight = np.uint64(0)
                for item in range(8):
                    row = np.uint64(packed[64 * word + 8 * group + item, byte])
                    eight |= row << np.uint64(8 * item)
                octets[group] = _transpose_bits(eight)
            for bit in range(min(8, columns - 8 * byte)):
                plane = np.uint64(0)
                for group in range(8):  # the first bit of packed bytes is the highest
                    part = (octets[group] >> np.uint64(56 - 8 * bit)) & np.uint64(255)
                    plane |= part << np.uint64(8 * group)
                planes[vector, 8 * byte + bit, lane] = plane


def slice_bits(packed: np.ndarray, columns: int, width: int) -> np.ndarray:
    """Bit planes of packed rows.

    Parameters
    ----------
    packed : uint8 (n, bytes)
    columns : int
        Bits of a row.
    width : int
        Planes, `columns` or more.

    Returns
    -------
    uint64, flat
        Vector-major (vector, width, LANES): plane j of an item is its bit j for j < columns and 0 up to
        `width`; padding items are all zero.
    """
    items = packed.shape[0]
    planes = np.zeros((-(-items // VECTOR_ITEMS), width, LANES), np.uint64)
    whole = items // 64 * 64
    packed = np.ascontiguousarray(packed[:, : -(-columns // 8)])
    _slice_words(packed[:whole], columns, planes, 0)
    if whole < items:
        rest = np.zeros((64, packed.shape[1]), np.uint8)
        rest[: items - whole] = packed[whole:]
        _slice_words(rest, columns, planes, whole // 64)
    return planes.reshape(-1)
