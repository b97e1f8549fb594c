"""Time competitors in turns, so that a disturbance of the machine affects all of them."""

import math
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class Disagreement(Exception):
    """Competitors compute different results, so their times cannot be compared."""


@dataclass(frozen=True)
class Competitor:
    """call() is what is timed; its seconds count `scale` times (part of the work, extrapolated)."""

    call: Callable
    scale: float = 1.0


@dataclass(frozen=True)
class Measurement:
    """Seconds per call in each round of one interleaved run."""

    seconds: tuple

    @property
    def median(self):
        return statistics.median(self.seconds)

    def ratio_to(self, base):
        """Median over the rounds of own seconds over the base's seconds of the same round."""
        return statistics.median(own / other for own, other in zip(self.seconds, base.seconds, strict=True))


def interleave(competitors, rounds, least_seconds=0.005):
    """Time competitors in turns, in a new random order in each round.

    competitors: name -> `Competitor` or function. Quick calls are repeated until `least_seconds` have passed
    and follow an untimed one, so that a competitor finds its own data in the caches, not its neighbour's.
    Returns name -> `Measurement`.
    """
    entries = {
        name: entry if isinstance(entry, Competitor) else Competitor(entry)
        for name, entry in competitors.items()
    }
    repeats = {}
    for name, entry in entries.items():
        entry.call()  # compiles, allocates, fills caches
        repeats[name] = max(1, math.ceil(least_seconds / max(_seconds(entry.call, 1), 1e-7)))
    seconds = {name: [] for name in entries}
    order = list(entries)
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            entry = entries[name]
            if repeats[name] > 1:
                entry.call()
            seconds[name].append(entry.scale * _seconds(entry.call, repeats[name]) / repeats[name])
    return {name: Measurement(tuple(values)) for name, values in seconds.items()}


def agree(what, ours, theirs, tolerance=1e-5):
    """Raise `Disagreement` unless two arrays are equal, up to a tolerance relative to the largest entry."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not np.abs(ours - theirs).max() <= tolerance * max(np.abs(theirs).max(), 1e-300):
        raise Disagreement(f"{what}: results differ")


def _seconds(call, repeats):
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - started
