"""Choice of hyper-parameters on a validation part of the training set: queries and database are never seen.

Random search by successive halving, the same number of trials for every method: each trial is fitted on a
part of the training set and scored with validation queries against a validation database, both held out from
it; the best quarter of the trials continues with more partitions and seeds, until the last rung. The first
trial is the settings as they are, so that a search does not end below them on the validation parts.
"""

import json
import math
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from methods.base import Refusal, check_codes, no_exit
from tiebench.files import write_text
from tiebench.hamming import AffinityBlocks
from tiebench.messages import one_line
from tiebench.scoring import score_codes
from workflow.protocol_data import Rows

KEEP = 4  # one in four trials survives a rung


class TooLong(Exception):
    """A fit has used more processor seconds than a trial may."""


def draw_trials(spaces, parameters, trials, seed):
    """Distinct settings, drawn at random: a list of dicts, the first of them empty (nothing changed).

    spaces: list of spaces, each hyper-parameter -> list of values; trials take them in turn. Hyper-parameters
    that the method does not have are ignored. All methods draw from the same stream, so that methods with
    the same spaces get the same trials. Fewer than `trials` where the spaces hold fewer.
    """
    spaces = [{name: space[name] for name in sorted(space) if name in parameters} for space in spaces]
    drawn = [_settings(space, trials, (seed, place)) for place, space in enumerate(spaces)]
    chosen = [{}]
    for step in range(trials):
        for settings in drawn:
            if step < len(settings) and settings[step] not in chosen and len(chosen) < trials:
                chosen.append(settings[step])
    return chosen


def _settings(space, number, key):
    """Up to `number` distinct settings of one space, in random order."""
    shape = tuple(len(values) for values in space.values())
    places = np.random.default_rng(key).permutation(math.prod(shape))[:number]
    return [
        {name: values[place] for (name, values), place in zip(space.items(), np.unravel_index(index, shape))}
        for index in places
    ]


def partition(items, shares, seed, labels=None):
    """Disjoint positions of a training set: fit, validation queries, validation database.

    shares: {"fit": …, "query": …}, the rest is the database; fractions of the items. With "hold_out":
    "classes", `fit` is a fraction of the classes of `labels`, int64 (items,): queries and database are items
    of the others, which the fit does not see, in the same proportion. Raises ValueError for fewer than four
    classes: two are learnt from, and two told apart.
    """
    generator = np.random.default_rng((seed, 1))
    order = generator.permutation(items)
    if shares.get("hold_out") == "classes":
        if labels is None or np.ndim(labels) != 1 or len(classes := np.unique(labels)) < 4:
            raise ValueError("tuning: hold_out: classes needs a training set of four classes at least")
        learnt = generator.permutation(classes)[
            : min(max(2, round(len(classes) * shares["fit"])), len(classes) - 2)
        ]
        seen = np.isin(labels[order], learnt)
        held = order[~seen]
        return [order[seen], *np.split(held, [round(len(held) * shares["query"] / (1 - shares["fit"]))])]
    edges = np.cumsum([round(items * shares["fit"]), round(items * shares["query"])])
    return np.split(order, edges)


def validation_score(method_class, protocol, bits, hyperparameters, metric, shares, repeat, seconds=None):
    """Score of one trial on one partition.

    seconds: most processor seconds that the fit may take (None: any). Raises `TooLong` if it takes more, at
    the next line that the method logs, and `Refusal` if the method refuses the trial.
    """
    rows = protocol.split.training
    labels = None if protocol.labels is None else protocol.labels[rows]
    fit, query, database = (rows[part] for part in partition(len(rows), shares, repeat, labels))
    affinity = protocol.affinity
    # A method that is given the whole database in runs is given the part `fit` here, as every other: what it
    # would see of the validation database are its scores' labels. `learned_codes` are of the items of `fit`,
    # so that the validation database is encoded by `encode`, as the queries.
    training_set = protocol.training_set(fit, log=_stop_after(seconds))
    method = method_class(bits=bits, seed=repeat, **hyperparameters)
    name = method_class.__module__.rpartition(".")[2]
    with no_exit(name):
        method.fit(training_set)
        codes = [method.encode(Rows(protocol.items, part)) for part in (query, database)]
    codes = [
        np.packbits(check_codes(made, len(part), bits, name), axis=1)
        for made, part in zip(codes, (query, database))
    ]
    blocks = AffinityBlocks(
        lambda begin, end: affinity.block(query[begin:end], database), tuple(affinity.levels)
    )
    at = [int(metric.partition("@")[2])] if "@" in metric else []
    return score_codes(*codes, bits, blocks, at=at).means[metric]


def _stop_after(seconds):
    """A training set's `log` that raises `TooLong` once this process has used `seconds` more."""
    begun = time.process_time()

    def log(record):
        if seconds is not None and time.process_time() - begun > seconds:
            raise TooLong(f"the fit took more than {seconds:g} seconds of processor time")

    return log


@dataclass
class Trial:
    """Settings that were tried.

    evaluations: one per partition, as `Evaluated` returns them; the last one may have no score, and is then
    the last that was made. rung: number of rungs that the trial took part in.
    """

    settings: dict[str, Any]
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    rung: int = 0

    def evaluate(self, evaluate, repeats):
        """Score the trial on its first partitions, up to `repeats`, until one has no score."""
        while len(self.evaluations) < repeats and self.mean is not None:
            self.evaluations.append(evaluate(self.settings, len(self.evaluations)))

    @property
    def mean(self):
        """Mean score; None if the trial was refused or too long, NaN before its first evaluation."""
        scores = [one["score"] for one in self.evaluations]
        return None if None in scores else float(np.mean(scores)) if scores else math.nan


def search(settings, evaluate, report, rungs, higher_is_better=True):
    """Successive halving: (index of the best trial, a `Trial` per settings).

    evaluate(settings, repeat) -> {"score": number or None, …}; rungs: partitions of the training set on which
    a trial has been scored, rung by rung; higher_is_better: the metric's direction. Trials that survive a
    rung keep their scores. A trial without a score is below all others.
    """
    trials = [Trial(one) for one in settings]
    alive = list(range(len(trials)))
    for rung, repeats in enumerate(rungs, start=1):
        for place, index in enumerate(alive, start=1):
            trials[index].evaluate(evaluate, repeats)
            trials[index].rung = rung
            report({"rung": rung, "trial": f"{place}/{len(alive)}", "score": trials[index].mean})
        alive.sort(key=lambda index: (-worth(trials[index], higher_is_better), index))
        if rung < len(rungs):
            alive = alive[: max(1, len(alive) // KEEP)]
    return alive[0], trials


def worth(trial, higher_is_better):
    """The mean score of a trial as a number of which more is better; -inf without a score."""
    return -np.inf if trial.mean is None else trial.mean if higher_is_better else -trial.mean


class Evaluated:
    """evaluate(trial, repeat) -> the evaluation, kept in a file that an interrupted search continues from.

    evaluate: a function that returns a score, or raises `Refusal` or `TooLong`. path: a .jsonl file, whose
    name identifies what decides the scores.

    An evaluation has `score` (None without one), `seconds` of processor time, `status` ("scored", "refused"
    or "too long") and `reason`, why there is no score.
    """

    def __init__(self, path, evaluate):
        self.path, self.evaluate = Path(path), evaluate
        self.known = {}
        with suppress(OSError, ValueError):  # none was interrupted, or its last line was cut
            for line in self.path.read_text(encoding="utf-8").splitlines():
                record = json.loads(line)
                self.known[record.pop("trial")] = record

    def __call__(self, trial, repeat):
        key = json.dumps([trial, repeat], sort_keys=True)
        if key not in self.known:
            self.known[key] = self._evaluation(trial, repeat)
            lines = [json.dumps({"trial": key} | known) + "\n" for key, known in self.known.items()]
            write_text(self.path, "".join(lines))
        return self.known[key]

    def _evaluation(self, trial, repeat):
        begun, score, status, reason = time.process_time(), None, "scored", None
        try:
            score = float(self.evaluate(trial, repeat))
        except Refusal as error:
            status, reason = "refused", one_line(error)
        except TooLong as error:
            status, reason = "too long", one_line(error)
        seconds = round(time.process_time() - begun, 2)
        return {"score": score, "seconds": seconds, "status": status, "reason": reason}
