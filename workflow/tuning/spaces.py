"""Spaces of hyper-parameters: trials drawn from them, and their axes continued beyond the ends.

A space maps hyper-parameters to axes. An axis is a list of values, or {"log_uniform": [low, high]}: any
number between two positive ones, whose logarithm is uniform; an integer if both are.
"""

import itertools
import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import qmc

POINTS = 2**12  # of a sequence, most of which are met only where a space holds few settings
NEAR = 0.1  # share of the logarithm of a continuous axis that counts as its end
STEP = math.sqrt(10)  # ratio by which a continuous axis is continued


@dataclass
class Trial:
    """Settings that were tried.

    settings: what they change; space: index of the space that they belong to; origin: "as given",
    "candidate", "drawn", or "beyond <hyper-parameter>". evaluations: one per partition, as
    `workflow.tuning.search.Evaluated` returns them; the last one may have no score, and is then the last that
    was made. confirmations: the same of each rung that fits on another share. rung: number of rungs that the
    trial took part in.
    """

    settings: dict[str, Any]
    space: int = 0
    origin: str = "drawn"
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    confirmations: list[list[dict[str, Any]]] = field(default_factory=list)
    rung: int = 0

    def evaluate(self, evaluate, repeats):
        """Score the trial on its first partitions, up to `repeats`, until one has no score."""
        while len(self.evaluations) < repeats and self.mean is not None:
            self.evaluations.append(evaluate(self.settings, len(self.evaluations)))

    @property
    def mean(self):
        """Mean score; None if an evaluation has none, NaN before the first one."""
        return self.mean_of(None)

    def mean_of(self, partitions):
        """`mean` of the first partitions alone; None: of all."""
        return _mean(self.evaluations[:partitions])

    def confirm(self, evaluate, repeats):
        """Score the trial on the partitions of a further rung, until one has no score: the mean, or None."""
        scored: list[dict[str, Any]] = []
        self.confirmations.append(scored)
        while len(scored) < repeats and _mean(scored) is not None:
            scored.append(evaluate(self.settings, len(scored)))
        return _mean(scored)

    @property
    def last_mean(self):
        """`mean` of the last rung in which the trial has one, None if it has none."""
        means = map(_mean, reversed([self.evaluations, *self.confirmations]))
        return next((mean for mean in means if mean is not None), None)


def _mean(evaluations):
    scores = [one["score"] for one in evaluations]
    return None if None in scores else float(np.mean(scores)) if scores else math.nan


def restricted(spaces, parameters):
    """The spaces without the hyper-parameters that a method does not have, by name."""
    return [{name: space[name] for name in sorted(space) if name in parameters} for space in spaces]


def draw_trials(spaces, values, trials, seed):
    """Different settings, spread over the spaces: a list of `Trial`, the first of which changes nothing.

    spaces: as `restricted` returns them; trials take them in turn. values: the hyper-parameters as they are.
    All methods draw from the same sequences, so that methods with the same spaces get the same trials, and
    more trials begin with the same ones. Fewer than `trials` where the spaces hold fewer.
    """
    enough = 2 * trials  # some may be drawn twice, or be the settings as they are
    drawn = [_settings(space, enough, (seed, place)) for place, space in enumerate(spaces)]
    chosen = [Trial({}, _space_of(values, spaces), "as given")]
    for step in range(enough):
        for place, settings in enumerate(drawn):
            if step < len(settings) and len(chosen) < trials:
                whole = values | settings[step]
                if all(whole != values | trial.settings for trial in chosen):
                    chosen.append(Trial(settings[step], place))
    return chosen


def with_candidates(trials, candidates, spaces, values):
    """The trials, and after the first one those candidates (dicts of changes) that are not among them."""
    added: list[Trial] = []
    for settings in candidates:
        whole = values | settings
        if all(whole != values | trial.settings for trial in [*trials, *added]):
            added.append(Trial(settings, _space_of(whole, spaces), "candidate"))
    return [*trials[:1], *added, *trials[1:]]


def _settings(space, number, key):
    """Up to `number` distinct settings of one space, by a scrambled Sobol' sequence: one dimension an axis.

    Where a space holds few settings, those that the sequence has not met come last, in the order of the axes.
    """
    axes = list(space.items())
    size = math.prod(len(axis) if isinstance(axis, list) else math.inf for _, axis in axes)
    if not axes:
        return [{}]
    found: dict[str, dict[str, Any]] = {}
    sequence = qmc.Sobol(len(axes), rng=np.random.default_rng(key))
    for point in sequence.random(POINTS):
        settings = {name: _value(axis, float(share)) for (name, axis), share in zip(axes, point)}
        found.setdefault(json.dumps(settings), settings)
        if len(found) >= min(number, size):
            break
    if len(found) < min(number, size) < math.inf:
        names, lists = zip(*axes)
        for values in itertools.product(*lists):
            settings = dict(zip(names, values))
            found.setdefault(json.dumps(settings), settings)
    return list(found.values())[:number]


def _value(axis, share):
    """The value of an axis at a share of it in [0, 1)."""
    if isinstance(axis, list):
        return axis[int(share * len(axis))]
    low, high = axis["log_uniform"]
    whole = isinstance(low, int) and isinstance(high, int)
    return min(max(_rounded(low * (high / low) ** share, whole), low), high)


def _space_of(values, spaces):
    """Index of the space that values belong to: the one whose axes of words agree best with them."""

    def agreement(place):
        words = [name for name, axis in spaces[place].items() if not all(map(_is_number, _listed(axis)))]
        agreeing = sum(values[name] in spaces[place][name] for name in words)
        return agreeing - len(words), agreeing, -place

    return max(range(len(spaces)), key=agreement)


def beyond(axis, value, reached=()):
    """The number that continues an axis beyond the end where `value` is, or None: it is at no end, or no
    numbers are left there.

    reached: what was tried beyond the ends. A list of two or more numbers is continued by its last ratio, or
    by its last step if its steps are more alike than its ratios; a continuous axis by half a decade, and the
    last tenth of its logarithm is its end. Positive numbers stay positive, integers stay integers, and an
    axis that begins with 0 has an end there.
    """
    if not _is_number(value) or not all(map(_is_number, _listed(axis))) or len(set(_listed(axis))) < 2:
        return None
    points, continuous = sorted(set(_listed(axis))), isinstance(axis, dict)
    low, high = points[0], points[-1]
    margin = (high / low) ** NEAR if continuous else 1
    if value >= max([high / margin, *reached]):
        first, last = points[-2:]
    elif value <= min([low * margin, *reached]) and low != 0:
        last, first = points[:2]
    else:
        return None
    if _by_ratios(axis):
        ratio = STEP if continuous else max(first, last) / min(first, last)
        new = value * ratio if last > first else value / ratio
    else:
        new = value + last - first
    whole = all(isinstance(point, int) for point in points)
    new = _rounded(new, whole)
    if whole and new == round(value):
        new += 1 if last > first else -1
    return new if new != value and (new > 0 or low < 0) else None


def _by_ratios(axis):
    """Whether the numbers of an axis are spaced by ratios rather than by steps, 0 aside."""
    points = sorted(set(_listed(axis)))
    positive = [point for point in points if point > 0]
    if isinstance(axis, dict) or points[0] < 0 or len(positive) < 2:
        return isinstance(axis, dict)
    steps, ratios = np.diff(points), np.diff(np.log(positive))
    if len(points) > 2 and np.allclose(steps, steps[0], atol=0):
        return False
    return bool(np.std(ratios) / np.mean(ratios) <= np.std(steps) / np.mean(steps))


def _listed(axis):
    return axis["log_uniform"] if isinstance(axis, dict) else axis


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rounded(value, whole):
    """A number with three significant digits, or the nearest integer."""
    return round(value) if whole else float(f"{value:.3g}")
