"""Codes of classes that are far from each other: hash centres, for any number of bits and classes.

Codes are int8 arrays (classes, bits) of -1 and +1. No two classes have the same one: what draws codes draws
those again that repeat another, and refuses more classes than there are codes.
"""

import math

import numpy as np

from methods.base import Refusal


def refuse_more_classes_than_codes(classes, bits, balanced=False):
    """Raises `Refusal` if there are fewer codes than classes, or fewer `balanced` ones, of bits // 2 ones."""

    def codes(length):
        return math.comb(length, length // 2) if balanced else 1 << length

    if bits < 64 and codes(bits) < classes:  # there are 10^18 balanced codes of 64 bits
        enough = next(length for length in range(bits + 1, 65) if codes(length) >= classes)
        balance = f": {codes(bits)} codes have {bits // 2} ones" if balanced else ""
        raise Refusal(f"{bits} bits cannot tell {classes} classes apart{balance}; that takes {enough} bits")


def constant_bits(codes):
    """How many bits are the same for all classes, of codes (classes, bits)."""
    codes = np.asarray(codes)
    return int((codes == codes[0]).all(axis=0).sum())


def _made_distinct(codes, draw):
    """The codes, those that repeat an earlier one drawn again by draw(number) until all differ, in place."""
    order = np.arange(len(codes))  # codes drawn again come last: they give way to the others
    while True:
        _, first = np.unique(codes[order], axis=0, return_index=True)
        again = np.delete(order, first)
        if not len(again):
            return codes
        codes[again] = draw(len(again))
        order = np.concatenate([order[np.sort(first)], again])


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
    from scipy.linalg import hadamard

    matrix = hadamard(bits, np.int8)
    return np.concatenate([matrix, -matrix])[:classes]


def spread_hadamard_centres(classes, bits):
    """Rows of [H; -H] chosen so that columns differ as far as possible: CSQ's centres with mended columns.

    H is Sylvester's matrix of the smallest order that is not below `bits`; its entry (i, j) is
    (-1)^(number of bits that i and j share). Column j is determined by its entries in the rows 1, 2, 4, ...:
    with these among the rows, all columns differ, as far as the number of classes allows. Where fewer columns
    than the order are kept, those of a van der Corput sequence are, so that two rows still differ in nearly
    half of them. Raises `Refusal` where classes > 2 order.
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
    places = np.zeros(1, np.uint32)
    while len(places) < order:
        places = np.concatenate([2 * places, 2 * places + 1])
    return places


def random_centres(classes, bits, generator, draws=1000):
    """The best of `draws` sets of random codes with bits // 2 ones each; codes that repeat are drawn again.

    Best is the set with the largest smallest distance between two codes, among those the one with the largest
    mean distance; CSQ draws its centres so where no Hadamard matrix has enough rows. Raises `Refusal` where
    there are fewer such codes than classes.
    """
    refuse_more_classes_than_codes(classes, bits, balanced=True)

    def draw(number):
        return balanced_codes(number, bits, generator)

    best, chosen = (-1, -1.0), None
    for _ in range(draws):
        codes = draw(classes)
        quality = separation(codes)
        if quality > best:
            best, chosen = quality, codes
    return _made_distinct(chosen, draw)


def balanced_codes(number, bits, generator):
    """Random codes with bits // 2 ones each, int8 (number, bits), which may repeat."""
    ranks = generator.random((number, bits)).argsort(axis=1)
    return np.where(ranks < bits // 2, 1, -1).astype(np.int8)


def bernoulli_centres(classes, bits, generator):
    """Different codes of independent fair bits. Raises `Refusal` where there are fewer codes than classes."""
    refuse_more_classes_than_codes(classes, bits)

    def draw(number):
        return np.where(generator.random((number, bits)) < 0.5, 1, -1).astype(np.int8)

    return _made_distinct(draw(classes), draw)


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
    (OrthoHash's `O`); the distance falls to 0.2 bits at the least, below which any different code is taken.
    Their order is shuffled. Raises `Refusal` where there are fewer codes than classes.
    """
    refuse_more_classes_than_codes(classes, bits)
    share, missed, chosen = 0.61, 0, np.empty((classes, bits), np.int8)
    count = 0
    while count < classes:
        batch = np.where(generator.random((64, bits)) < 0.5, 1, -1).astype(np.int8)
        for code in batch:
            nearest = ((chosen[:count] != code).sum(axis=1)).min(initial=bits)
            wanted = share * bits if share >= 0.2 else 1
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
