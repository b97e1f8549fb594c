"""Choice of hyper-parameters on a validation part of the training set: queries and database are never seen.

Random search by successive halving, the same trials for every method: each trial is fitted on a part of the
training set and scored with validation queries against a validation database, both held out from it; the best
quarter of the trials continues with more partitions and seeds, until one is left.
"""

import itertools

import numpy as np

from methods.base import Refusal, check_codes, no_exit
from tiebench.hamming import AffinityBlocks
from tiebench.metrics import resolve
from tiebench.scoring import score_codes
from workflow.protocol_data import Rows

KEEP = 4  # one in four trials survives a rung
REPEATS = (1, 3, 8)  # partitions of the training set on which a trial has been scored, rung by rung


def draw_trials(space, parameters, trials, seed):
    """Distinct settings, drawn at random: a list of dicts.

    space: hyper-parameter -> list of values; those that the method does not have are ignored. All
    methods draw from the same stream, so that methods with the same parameters get the same trials.
    """
    names = [name for name in sorted(space) if name in parameters]
    possible = list(itertools.product(*(range(len(space[name])) for name in names)))
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(possible))[:trials]
    return [{name: space[name][place] for name, place in zip(names, possible[index])} for index in chosen]


def partition(items, shares, seed):
    """Disjoint positions of a training set: fit, validation queries, validation database.

    shares: {"fit": …, "query": …}, the rest is the database; fractions of the items.
    """
    order = np.random.default_rng((seed, 1)).permutation(items)
    edges = np.cumsum([round(items * shares["fit"]), round(items * shares["query"])])
    return np.split(order, edges)


def validation_score(method_class, protocol, bits, hyperparameters, metric, shares, repeat):
    """Score of one trial on one partition; the worst one possible if the method refuses the trial."""
    rows = protocol.split.training
    fit, query, database = (rows[part] for part in partition(len(rows), shares, repeat))
    affinity = protocol.affinity
    # A method that is given the whole database in runs is given the part `fit` here, as every other: what it
    # would see of the validation database are its scores' labels. `learned_codes` are of the items of `fit`,
    # so that the validation database is encoded by `encode`, as the queries.
    training_set = protocol.training_set(fit)
    method = method_class(bits=bits, seed=repeat, **hyperparameters)
    name = method_class.__module__.rpartition(".")[2]
    with no_exit(name):
        try:
            method.fit(training_set)
        except Refusal:
            return -np.inf if resolve(metric)[0].higher_is_better else np.inf
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


def search(trials, evaluate, report, higher_is_better=True):
    """Successive halving: (index of the best trial, one list of scores per trial).

    evaluate(trial, repeat) -> score; higher_is_better: its direction, that of the metric. Trials that survive
    a rung keep their scores.
    """
    sign = -1 if higher_is_better else 1
    scores = [[] for _ in trials]
    alive = list(range(len(trials)))
    for rung, repeats in enumerate(REPEATS):
        for place, index in enumerate(alive):
            while len(scores[index]) < repeats:
                scores[index].append(float(evaluate(trials[index], len(scores[index]))))
            report({"rung": rung + 1, "trial": f"{place + 1}/{len(alive)}", "score": np.mean(scores[index])})
        alive.sort(key=lambda index: (sign * np.mean(scores[index]), index))
        if rung + 1 < len(REPEATS):
            alive = alive[: max(1, len(alive) // KEEP)]
    return alive[0], scores
