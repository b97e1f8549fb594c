"""Codes of classes that are far from each other: hash centres, for any number of bits and classes.

Codes are int8 arrays (classes, bits) of -1 and +1.
"""

import numpy as np

from methods.base import Refusal


def sylvester(order):
    """Sylvester's Hadamard matrix, int8 (order, order); order a power of two.

    Entry (i, j) is (-1)^(number of bits that i and j share): any two rows differ in half of the columns.
    """
    if order < 1 or order & (order - 1):
        raise ValueError(f"the order of Sylvester's matrix must be a power of two, not {order}")
    places = np.arange(order, dtype=np.uint32)
    odd = np.bitwise_count(places[:, None] & places) & 1
    return np.where(odd, -1, 1).astype(np.int8)


def hadamard_centres(classes, bits):
    """The first rows of [H; -H], H Sylvester's matrix of order `bits`: the centres of CSQ as published.

    Raises `Refusal` where `bits` is not a power of two, or classes > 2 bits. With few classes many columns
    repeat: with 10 classes only 16 columns differ, whatever the number of bits.
    """
    if bits & (bits - 1) or classes > 2 * bits:
        raise Refusal(
            "Hadamard centres need a power of two of bits and at most twice as many classes, "
            f"not {bits} bits and {classes} classes"
        )
    matrix = sylvester(bits)
    return np.concatenate([matrix, -matrix])[:classes]


def spread_hadamard_centres(classes, bits):
    """Rows of [H; -H] chosen so that columns differ as far as possible: CSQ's centres with mended columns.

    H is Sylvester's matrix of the smallest order that is not below `bits`. Its column j is determined by its
    entries in the rows 1, 2, 4, ...: with these among the rows, all columns differ, as far as the number of
    classes allows. Where fewer columns than the order are kept, those of a van der Corput sequence are, so
    that two rows still differ in nearly half of them. Raises `Refusal` where classes > 2 order.
    """
    order = 1 << int(bits - 1).bit_length()
    if classes > 2 * order:
        raise Refusal(f"{bits} bits have Hadamard centres of at most {2 * order} classes, not {classes}")
    powers = [1 << place for place in range(order.bit_length() - 1)]
    rest = [row for row in range(1, order) if row & (row - 1)]
    rows = np.array([*powers, *rest, 0], np.uint32)
    columns = _van_der_corput(order)
    codes = np.where(np.bitwise_count(rows[:, None] & columns) & 1, -1, 1).astype(np.int8)
    codes = np.concatenate([codes, -codes])[:classes]
    _, first = np.unique(codes, axis=1, return_index=True)
    repeated = np.setdiff1d(np.arange(order), first)
    return codes[:, np.sort(np.concatenate([np.sort(first), repeated])[:bits])]


def _van_der_corput(order):
    """0 to order - 1 with their binary digits reversed."""
    digits = order.bit_length() - 1
    places = np.arange(order, dtype=np.uint32)
    reversed_places = np.zeros_like(places)
    for digit in range(digits):
        reversed_places |= ((places >> digit) & 1) << (digits - 1 - digit)
    return reversed_places


def random_centres(classes, bits, generator, draws=1000):
    """The best of `draws` sets of random codes with bits // 2 ones each.

    Best is the set with the largest smallest distance between two codes, among those the one with the largest
    mean distance; CSQ draws its centres so where no Hadamard matrix has enough rows.
    """
    best, chosen = (-1, -1.0), None
    for _ in range(draws):
        ranks = generator.random((classes, bits)).argsort(axis=1)
        codes = np.where(ranks < bits // 2, 1, -1).astype(np.int8)
        quality = separation(codes)
        if quality > best:
            best, chosen = quality, codes
    return chosen


def bernoulli_centres(classes, bits, generator):
    """Codes of independent fair bits; different codes where 2^bits >= classes allows it.

    Raises `Refusal` where it does not.
    """
    if bits < 31 and 2**bits < classes:
        raise Refusal(f"{bits} bits cannot tell {classes} classes apart")
    codes = np.where(generator.random((classes, bits)) < 0.5, 1, -1).astype(np.int8)
    while True:
        _, first = np.unique(codes, axis=0, return_index=True)
        again = np.setdiff1d(np.arange(classes), first)
        if not len(again):
            return codes
        codes[again] = np.where(generator.random((len(again), bits)) < 0.5, 1, -1)


def separation(codes):
    """(smallest, mean) Hamming distance of two rows of codes (classes, bits); of one row, (bits, bits)."""
    classes, bits = codes.shape
    if classes < 2:
        return bits, float(bits)
    wide = codes.astype(np.float32)
    distances = (bits - (wide @ wide.T)[np.triu_indices(classes, 1)]) / 2
    return int(distances.min()), float(distances.mean())


def separated_centres(classes, bits, generator, failures=10_000):
    """Random codes drawn one after another, each kept if it is far enough from all before it.

    Far enough is 0.61 bits at first, and 0.01 bits less after every `failures` codes that were not
    (OrthoHash's `O`); the distance falls to 0.2 bits at the least, below which any different code is taken,
    and below that any code. Their order is shuffled.
    """
    share, missed, chosen = 0.61, 0, np.empty((classes, bits), np.int8)
    count = 0
    while count < classes:
        batch = np.where(generator.random((64, bits)) < 0.5, 1, -1).astype(np.int8)
        for code in batch:
            nearest = ((chosen[:count] != code).sum(axis=1)).min(initial=bits)
            wanted = share * bits if share >= 0.2 else (1 if share > 0.15 else 0)
            if nearest >= wanted:
                chosen[count] = code
                count, missed = count + 1, 0
                if count == classes:
                    break
            else:
                missed += 1
                if missed >= failures:
                    share, missed = share - 0.01, 0
    return chosen[generator.permutation(classes)]


KINDS = ("published", "hadamard", "spread_hadamard", "random", "bernoulli", "separated")


def make_centres(kind, classes, bits, generator):
    """Centres of a kind of `KINDS`: int8 (classes, bits). Raises `Refusal`.

    "published": Hadamard centres where they exist, else the best of random balanced ones, as CSQ has it.
    """
    if kind == "published":
        power = not bits & (bits - 1)
        kind = "hadamard" if power and classes <= 2 * bits else "random"
    if kind == "hadamard":
        return hadamard_centres(classes, bits)
    if kind == "spread_hadamard":
        return spread_hadamard_centres(classes, bits)
    if kind == "random":
        return random_centres(classes, bits, generator)
    if kind == "bernoulli":
        return bernoulli_centres(classes, bits, generator)
    if kind == "separated":
        return separated_centres(classes, bits, generator)
    raise Refusal(f"centres must be one of {', '.join(KINDS)}, not {kind!r}")
