"""Lines of a run's training log: which have an objective, and what they count."""

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise

# What counts the lines of a log, in the order in which it is looked for.
COUNTERS = ("epoch", "iteration", "sweep", "bit")


def with_objective(log: Iterable[Mapping] | None) -> list[Mapping]:
    """Lines with a finite objective."""
    return [line for line in log or () if _finite(line.get("objective"))]


def counts(lines: Iterable[Mapping], name: str) -> bool:
    """Whether every line has this counter, each more than the one before."""
    lines = list(lines)
    if not all(_finite(line.get(name)) for line in lines):
        return False
    return all(one[name] < other[name] for one, other in pairwise(lines))


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
