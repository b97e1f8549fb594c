"""Choice of hyper-parameters on a validation part of the training set: queries and database are never seen.

Quasi-random search by successive halving, the same number of scored trials for every method: each trial is
fitted on a part of the training set and scored with held-out queries against a validation database of the
form that the protocol's has; the best quarter of the trials continues with more partitions and seeds, until
the last of these rungs. The first trial is the settings as they are, so that these rungs do not end below
them on the validation parts. A trial without a score is replaced by a further draw. A best trial at an end of
an axis is then followed beyond it, by a bounded number of further trials. Further rungs may fit the best few
again on a larger part: what is best for fewer items is not always best for more.
"""

import json
import math
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from methods.base import Diverged, Refusal
from tiebench.files import write_text
from tiebench.messages import one_line
from workflow.tuning.spaces import Trial, beyond
from workflow.tuning.validation import TooLong

KEEP = 4  # one in four trials survives a rung


def too_much_work(settings, limits):
    """Why settings have more work than a trial may have, or None.

    limits: [{"of": names of hyper-parameters, "most": number}, …]; the work is the product of those of them
    that `settings` has, None aside.
    """
    for limit in limits:
        names = [name for name in limit["of"] if settings.get(name) is not None]
        if names and (work := math.prod(settings[name] for name in names)) > limit["most"]:
            return f"{' x '.join(names)} is {work:g}, more than {limit['most']:g}"
    return None


def search(trials, evaluate, report, rungs, higher_is_better=True, spares=()):
    """Successive halving: the index of the best of some `Trial`, which keep what they scored.

    evaluate(settings, repeat) -> {"score": number or None, …}; rungs: partitions of the training set on which
    a trial has been scored, rung by rung; higher_is_better: the metric's direction. A trial without a score
    is below all others.

    spares: further `Trial`s. Each takes the place of one without a score in the first rung, and is added to
    `trials`.

    Where every trial of a later rung loses its score there (a fit of another partition took too long), the
    next best of the rung before takes part.
    """
    alive, spares = list(range(len(trials))), iter(spares)
    left: list[int] = []  # those that a rung left behind with a score, best first
    for rung, repeats in enumerate(rungs, start=1):
        for place, index in enumerate(alive, start=1):
            trials[index].evaluate(evaluate, repeats)
            trials[index].rung = rung
            report({"rung": rung, "trial": f"{place}/{len(alive)}", "score": trials[index].mean})
            if rung == 1 and trials[index].mean is None and (spare := next(spares, None)):
                trials.append(spare)
                alive.append(len(trials) - 1)
            if place == len(alive) and left and all(trials[one].mean is None for one in alive):
                alive.append(left.pop(0))
        alive = [index for index in alive if trials[index].mean is not None] or alive
        alive.sort(key=lambda index: (-_worth(trials[index], higher_is_better), index))
        if rung < len(rungs):
            most = max(1, len(alive) // KEEP)
            left = [index for index in alive[most:] if trials[index].mean is not None]
            alive = alive[:most]
    return alive[0]


def widen(trials, best, spaces, values, most, evaluate, report, rungs, higher_is_better=True):
    """Continue the axes at whose ends the best trial lies, and return the index of the best one then.

    Each of at most `most` further trials, which are added to `trials`, is the best one with the next number
    beyond an end of one ordered axis of its space, scored rung by rung for as long as it is above the best
    one on the same partitions. Where several axes end, they take turns. It ends once the best trial is
    inside all axes. values: the hyper-parameters as they are, of which `settings` are changes.

    A method states its limits by `Refusal` or another ValueError: what it does not take is a trial without a
    score, and the end of its axis.
    """

    def within_limits(settings, repeat):
        return evaluate(settings, repeat, refusals=True)

    while most and trials[best].mean is not None and (open_ends := ends(trials, best, spaces, values)):
        name = min(open_ends, key=lambda name: (len(_reached(trials, name)), name))
        changed = trials[best].settings | {name: open_ends[name]}
        trial = Trial(changed, trials[best].space, f"beyond {name}")
        trials.append(trial)
        better = True
        for rung, repeats in enumerate(rungs, start=1):
            if better:
                trial.evaluate(within_limits, repeats)
                trial.rung = rung
                better = _worth(trial, higher_is_better) > _worth(trials[best], higher_is_better, repeats)
        report({"trial": trial.origin, "value": open_ends[name], "score": trial.mean})
        if better:
            best = len(trials) - 1
        most -= 1
    return best


def ends(trials, index, spaces, values):
    """Axes at whose ends a trial lies -> the next number beyond what the search has tried there."""
    settings = values | trials[index].settings
    space = spaces[trials[index].space]
    following = {name: beyond(space[name], settings[name], _reached(trials, name)) for name in space}
    return {name: number for name, number in following.items() if number is not None}


def _reached(trials, name):
    return [trial.settings[name] for trial in trials if trial.origin == f"beyond {name}"]


def ranked(trials, best, rungs, higher_is_better=True):
    """Indexes of the trials that the rungs let compare: `best`, then by the mean on the partitions of the
    last rung but one, which more trials reach than the last (of the last where there is one).
    """
    compared = rungs[-2:][0]
    able = [
        index
        for index, trial in enumerate(trials)
        if trial.mean is not None and len(trial.evaluations) >= compared
    ]
    return sorted(
        able, key=lambda index: (index != best, -_worth(trials[index], higher_is_better, compared), index)
    )


def confirm(trials, order, evaluate, report, rule, rung, higher_is_better=True):
    """Score the best trials again, fitted on another share, and return their indexes, the best first.

    order: of `ranked`, or of the rung before; evaluate: as of `search`, with that share; rule: {"trials": how
    many, "partitions": …}; rung: its number. Those without a score are left out; where none has one, `order`
    stays.
    """
    able = order[: rule["trials"]] if len(order) > 1 else []  # one alone is chosen already
    found = {}
    for place, index in enumerate(able, start=1):
        mean = trials[index].confirm(evaluate, rule["partitions"])
        trials[index].rung = rung
        report({"rung": rung, "trial": f"{place}/{len(able)}", "score": mean})
        if mean is not None:
            found[index] = mean if higher_is_better else -mean
    return sorted(found, key=lambda index: (-found[index], index)) or order


def _worth(trial, higher_is_better, partitions=None):
    """The mean score of a trial as a number of which more is better; -inf without a score.

    partitions: how many of the first ones count, None for all.
    """
    mean = trial.mean_of(partitions)
    return -np.inf if mean is None else mean if higher_is_better else -mean


class Evaluated:
    """evaluate(trial, repeat) -> the evaluation, kept in a file from which a search continues: one that was
    interrupted, and one with more trials, candidates, partitions or seconds than an earlier one.

    evaluate: a function of settings and partition that returns a score, or raises `Refusal` or `TooLong`.
    path: a .jsonl file, whose name identifies what decides the scores. seconds: most processor seconds of a
    fit, None without a limit; an evaluation under another limit is kept if this one would not have changed
    it. unlimited: settings that have no limit. work: limits of `too_much_work`, which decide nothing that is
    kept.

    `refusals` of a call: whether any other ValueError is a refusal, too. An evaluation has `score` (None
    without one), `seconds` of processor time, `status` ("scored", "refused", "diverged", "too long" or "too
    much work") and `reason`, why there is no score.
    """

    def __init__(self, path, evaluate, seconds=None, unlimited=(), work=()):
        self.path, self.evaluate, self.seconds = Path(path), evaluate, seconds
        self.unlimited, self.work = unlimited, work
        self.known = {}  # trial and partition -> (limit of seconds, evaluation)
        with suppress(OSError, ValueError):  # there was no search, or its file was damaged
            for line in self.path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.known[record.pop("trial")] = record.pop("limit"), record

    def __call__(self, settings, repeat, refusals=False):
        if settings not in self.unlimited and (reason := too_much_work(settings, self.work)):
            return {"score": None, "seconds": 0.0, "status": "too much work", "reason": reason}
        key, most = json.dumps([settings, repeat], sort_keys=True), self.limit(settings)
        if key not in self.known or not _same_under_limit(most, *self.known[key]):
            self.known[key] = most, self._evaluation(settings, repeat, refusals)
            lines = (
                json.dumps({"trial": key, "limit": limit} | known) + "\n"
                for key, (limit, known) in self.known.items()
            )
            write_text(self.path, "".join(lines))
        return self.known[key][1]

    def limit(self, settings):
        """Most processor seconds of a fit with these settings, None without a limit."""
        return None if settings in self.unlimited else self.seconds

    def _evaluation(self, settings, repeat, refusals):
        begun, score, status, reason = time.process_time(), None, "scored", None
        try:
            score = float(self.evaluate(settings, repeat))
        except TooLong as error:
            status, reason = "too long", one_line(error)
        except Diverged as error:
            status, reason = "diverged", one_line(error)
        except ValueError as error:
            if not (refusals or isinstance(error, Refusal)):
                raise
            status, reason = "refused", one_line(error)
        seconds = round(time.process_time() - begun, 2)
        return {"score": score, "seconds": seconds, "status": status, "reason": reason}


def _same_under_limit(limit, before, known):
    """Whether an evaluation under a limit of seconds would be the same under this one."""
    allowed, before = (math.inf if most is None else most for most in (limit, before))
    if known["status"] == "too long":
        return allowed <= before
    return allowed >= min(before, known["seconds"])
