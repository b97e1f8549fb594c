"""Lines of a run's training log: which have an objective, what they count; numbers of such files."""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

# What counts the lines of a log, in the order in which it is looked for.
COUNTERS = ("epoch", "iteration", "sweep", "bit")


def with_objective(log: Iterable[Mapping] | None) -> list[Mapping]:
    """Lines with a finite objective."""
    return [line for line in log or () if number(line.get("objective")) is not None]


def have(lines: Iterable[Mapping], name: str) -> bool:
    """Whether every line has a finite number of this name."""
    return all(number(line.get(name)) is not None for line in lines)


def counts(lines: Iterable[Mapping], name: str) -> bool:
    """Whether every line has this counter, each more than the one before."""
    lines = list(lines)
    return have(lines, name) and all(one[name] < other[name] for one, other in pairwise(lines))


def number(value: object) -> float | None:
    """A finite number as a float, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None
