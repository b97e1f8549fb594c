"""Joint histograms of Hamming distance and affinity by bit-slicing: the fast kernel, for 1 to 64 bits.

The database is stored as bit planes: word j of a group of 512 items holds bit j of those items, so one
512-bit vector operation works on 512 items at once. For one query,

1. XOR with the query's bits and a tree of full adders turn the b planes into the binary digits of the 512
   distances (the *distance planes*: 1, 2, 4, ...);
2. for every distance, AND-ing the right planes or their complements and counting bits gives its bin. Eight
   neighbouring distances share one pass: the counts of all products of the three lowest planes are taken
   and turned into the eight bins by inclusion and exclusion, which needs 7 ANDs instead of 14.

A second pass under a mask of the relevant items gives the relevant bins. Compared with one popcount and one
increment a pair, which is bound by the increments, this needs about 0.7 vector operations a pair at 48 bits.

The vector code is written as LLVM instructions on <8 x i64>: Numba's loop vectoriser gives up on loops over
this many arrays. LLVM splits the vectors where a processor's are shorter, so it runs everywhere.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tiebench._compiled import compiled

LANES = 8  # 64-bit words in a vector
VECTOR_ITEMS = 64 * LANES  # items in a vector
BLOCK_VECTORS = 16  # vectors in a block: at 48 bits a block and its scratch stay in the level-2 cache
MAX_BITS = 64
_PLANES = 7  # distance planes kept per vector: 1, 2, 4, ..., 64

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, LANES)
_ZERO = ir.Constant(_VECTOR, [0] * LANES)


def _pointer(context, builder, array_type, array, offset):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


def _load(builder, pointer, index):
    value = builder.load(builder.gep(pointer, [index]))
    value.align = 8  # NumPy aligns to 16 bytes at best: a stricter promise would fault
    return value


def _store(builder, pointer, index, value):
    builder.store(value, builder.gep(pointer, [index])).align = 8


def _broadcast(builder, word):
    lane = ir.Constant(ir.IntType(32), 0)
    vector = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), word, lane)
    order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(vector, vector, order)


def _full_adder(builder, x, y, z):
    partial = builder.xor(x, y)
    carry = builder.or_(builder.and_(x, y), builder.and_(partial, z))
    return builder.xor(partial, z), carry


def _add_planes(builder, planes):
    """Binary digits, lowest first, of the number of planes that are set at each position."""
    digits = []
    while planes:
        carries = []
        while len(planes) > 1:
            if len(planes) >= 3:
                digit, carry = _full_adder(builder, planes.pop(0), planes.pop(0), planes.pop(0))
            else:
                x, y = planes.pop(0), planes.pop(0)
                digit, carry = builder.xor(x, y), builder.and_(x, y)
            planes.append(digit)
            carries.append(carry)
        digits.append(planes[0])
        planes = carries
    return digits


def _i64(value):
    return ir.Constant(_WORD, value)


@intrinsic
def popcount(typing_context, word):
    """Number of bits set in a uint64 word, as uint64."""

    def generate(context, builder, signature, arguments):
        function = builder.module.declare_intrinsic("llvm.ctpop", (arguments[0].type,))
        return builder.call(function, arguments)

    return types.uint64(types.uint64), generate


@intrinsic(prefer_literal=True)
def _distance_planes(typing_context, planes, offset, query_masks, mask_offset, scratch, vectors, octets):
    """scratch[7 v + k] = plane 2^k of the distances of the items in vector v. `octets` is a literal."""
    if not isinstance(octets, types.IntegerLiteral):
        return None
    width = 8 * octets.literal_value

    def generate(context, builder, signature, arguments):
        source = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        mask_data = context.make_array(signature.args[2])(context, builder, arguments[2]).data
        mask_data = builder.gep(mask_data, [arguments[3]])
        target = _pointer(context, builder, signature.args[4], arguments[4], _i64(0))
        masks = [
            _broadcast(builder, builder.load(builder.gep(mask_data, [_i64(bit)]))) for bit in range(width)
        ]
        with cgutils.for_range(builder, arguments[5], intp=_WORD) as loop:
            first = builder.mul(loop.index, _i64(width))
            differing = [
                builder.xor(_load(builder, source, builder.add(first, _i64(bit))), masks[bit])
                for bit in range(width)
            ]
            digits = _add_planes(builder, differing)
            first = builder.mul(loop.index, _i64(_PLANES))
            for k in range(_PLANES):
                digit = digits[k] if k < len(digits) else _ZERO
                _store(builder, target, builder.add(first, _i64(k)), digit)
        return context.get_dummy_value()

    return types.void(planes, offset, query_masks, mask_offset, scratch, vectors, octets), generate


@intrinsic
def _count_products(typing_context, scratch, begin, end, flip8, flip16, flip32, select, products):
    """products[k] = number of selected items of the octet whose plane product k is set.

    The octet holds the distances whose planes 8, 16 and 32 equal the complements of the flips; product k
    multiplies the planes 1, 2, 4 named by the binary digits of k. Vectors begin..end-1 are counted.
    """

    def generate(context, builder, signature, arguments):
        source = _pointer(context, builder, signature.args[0], arguments[0], _i64(0))
        mask = _pointer(context, builder, signature.args[6], arguments[6], _i64(0))
        target = context.make_array(signature.args[7])(context, builder, arguments[7]).data
        flips = [_broadcast(builder, word) for word in arguments[3:6]]
        sums = [cgutils.alloca_once_value(builder, _ZERO) for _ in range(8)]
        popcount = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR]), f"llvm.ctpop.v{LANES}i64"
        )
        reduce = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_WORD, [_VECTOR]), f"llvm.vector.reduce.add.v{LANES}i64"
        )
        with cgutils.for_range_slice(builder, arguments[1], arguments[2], _i64(1), intp=_WORD) as (index, _):
            first = builder.mul(index, _i64(_PLANES))
            one, two, four, eight, sixteen, thirty_two, sixty_four = (
                _load(builder, source, builder.add(first, _i64(k))) for k in range(_PLANES)
            )
            items = builder.and_(_load(builder, mask, index), builder.not_(sixty_four))
            for plane, flip in zip((eight, sixteen, thirty_two), flips):
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
        for k, total in enumerate(sums):
            value = builder.call(reduce, [builder.load(total)])
            builder.store(value, builder.gep(target, [_i64(k)]))
        return context.get_dummy_value()

    signature = types.void(scratch, begin, end, flip8, flip16, flip32, select, products)
    return signature, generate


@compiled(nogil=True, boundscheck=False)
def _add_bins(scratch, begin, end, select, selected, bits, products, bins):
    """Add the distance histogram of the `selected` items under the mask `select` to bins (b + 1,)."""
    zero = np.uint64(0)
    ones = ~zero
    remaining = selected
    for octet in range((bits + 7) // 8):
        flip8 = zero if octet & 1 else ones
        flip16 = zero if octet & 2 else ones
        flip32 = zero if octet & 4 else ones
        _count_products(scratch, begin, end, flip8, flip16, flip32, select, products)
        n7 = products[7]
        n6 = products[6] - n7
        n5 = products[5] - n7
        n3 = products[3] - n7
        n4 = products[4] - n5 - n6 - n7
        n2 = products[2] - n3 - n6 - n7
        n1 = products[1] - n3 - n5 - n7
        n0 = products[0] - n1 - n2 - n3 - n4 - n5 - n6 - n7
        remaining -= products[0]
        first = 8 * octet
        if first + 7 <= bits:
            bins[first] += n0
            bins[first + 1] += n1
            bins[first + 2] += n2
            bins[first + 3] += n3
            bins[first + 4] += n4
            bins[first + 5] += n5
            bins[first + 6] += n6
            bins[first + 7] += n7
        else:  # the planes above `bits` are empty: so are these bins
            counts = (n0, n1, n2, n3, n4, n5, n6, n7)
            for k in range(bits + 1 - first):
                bins[first + k] += counts[k]
    if bits % 8 == 0:  # distance b is what the octets below did not count: no pass of its own
        bins[bits] += remaining


@compiled(nogil=True, boundscheck=False)
def _slice_distances(planes, offset, query_masks, mask_offset, scratch, vectors, octets):
    if octets == 1:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 1)
    elif octets == 2:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 2)
    elif octets == 3:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 3)
    elif octets == 4:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 4)
    elif octets == 5:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 5)
    elif octets == 6:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 6)
    elif octets == 7:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 7)
    else:
        _distance_planes(planes, offset, query_masks, mask_offset, scratch, vectors, 8)


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
def count_equal_labels(planes, items, query_masks, relevant_begin, relevant_end, bits, counts):
    """Histograms where the relevant items of query q are items relevant_begin[q]..relevant_end[q]-1 of
    the (sorted) database.

    planes: uint64, vector-major (vector, bit, 8); items: N; query_masks uint64 (Q, 8 octets), all ones
    where the query's bit is 1; counts int64 (Q, 2, b + 1), zero on entry: [0] irrelevant, [1] relevant.
    """
    octets = query_masks.shape[1] // 8
    scratch = np.empty(BLOCK_VECTORS * LANES * _PLANES, np.uint64)
    valid = np.empty(BLOCK_VECTORS * LANES, np.uint64)
    select = np.empty(BLOCK_VECTORS * LANES, np.uint64)
    products = np.empty(8, np.int64)
    masks = query_masks.reshape(-1)
    block_items = BLOCK_VECTORS * VECTOR_ITEMS
    for begin in range(0, items, block_items):
        end = min(begin + block_items, items)
        _, vectors = _class_mask(valid, begin, begin, end)
        offset = (begin // VECTOR_ITEMS) * query_masks.shape[1] * LANES
        for q in range(query_masks.shape[0]):
            _slice_distances(planes, offset, masks, q * query_masks.shape[1], scratch, vectors, octets)
            _add_bins(scratch, 0, vectors, valid, end - begin, bits, products, counts[q, 0])
            low = max(relevant_begin[q], begin)
            high = min(relevant_end[q], end)
            if low < high:
                first, last = _class_mask(select, begin, low, high)
                _add_bins(scratch, first, last, select, high - low, bits, products, counts[q, 1])
    for q in range(counts.shape[0]):
        for d in range(bits + 1):
            counts[q, 0, d] -= counts[q, 1, d]


@compiled(nogil=True, boundscheck=False)
def count_shared_labels(planes, items, query_masks, label_planes, query_labels, levels, bits, counts):
    """Histograms where the affinity is the number of shared labels, at most levels - 1.

    label_planes uint64, vector-major (vector, label, 8); query_labels bool (Q, L); counts int64
    (Q, levels, b + 1), zero on entry. levels = 2 counts 'at least one shared label'.
    """
    octets = query_masks.shape[1] // 8
    labels = query_labels.shape[1]
    words = BLOCK_VECTORS * LANES
    scratch = np.empty(words * _PLANES, np.uint64)
    valid = np.empty(words, np.uint64)
    at_least = np.empty((levels + 1, words), np.uint64)  # at_least[v]: items that share >= v labels
    products = np.empty(8, np.int64)
    masks = query_masks.reshape(-1)
    block_items = BLOCK_VECTORS * VECTOR_ITEMS
    for begin in range(0, items, block_items):
        end = min(begin + block_items, items)
        _, vectors = _class_mask(valid, begin, begin, end)
        first_vector = begin // VECTOR_ITEMS
        offset = first_vector * query_masks.shape[1] * LANES
        for q in range(query_masks.shape[0]):
            _slice_distances(planes, offset, masks, q * query_masks.shape[1], scratch, vectors, octets)
            _add_bins(scratch, 0, vectors, valid, end - begin, bits, products, counts[q, 0])
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
                    _add_bins(
                        scratch, 0, vectors, at_least[level], selected, bits, products, counts[q, level]
                    )
    for q in range(counts.shape[0]):
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


def slice_bits(packed, columns, width):
    """Bit planes of packed rows: uint8 (n, bytes) -> uint64, flat, vector-major (vector, width, LANES).

    Plane j of an item is its bit j for j < columns and 0 up to `width`; padding items are all zero.
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
