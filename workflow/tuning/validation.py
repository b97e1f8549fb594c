"""The score of one trial: a fit on a part of the training set, and the rest of it to query and to search.

Queries and database of the protocol are never seen. What decides a score stands here, apart from the search
that asks for it.
"""

import time

import numpy as np

from methods.base import check_codes, no_exit
from tiebench import metrics
from tiebench.affinities import AffinityBlocks
from tiebench.scoring import score_codes
from workflow.stages.protocol_data import Rows

PARTITIONS = 1000  # more than a search has: seeds of the fits of two searches differ


class TooLong(Exception):
    """A fit has used more processor seconds than a trial may."""


def partition(items, shares, key, labels=None):
    """Disjoint positions of a training set: fit, validation queries, validation database.

    key: of the random generator, an integer or several.
    shares: {"fit": …, "query": …}, the rest is the database; fractions of the items. With "hold_out":
    "classes", `fit` is a fraction of the classes of `labels`, int64 (items,): queries and database are items
    of the others, which the fit does not see, in the same proportion. Raises ValueError for fewer than four
    classes: two are learnt from, and two told apart.
    """
    generator = np.random.default_rng(key)
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


def with_training_items(fit, database, share):
    """A validation database in which a `share` of the items is what the method is fitted on, as it is in the
    protocol's database: items of `fit`, as far as there are enough, join those of `database`. It is `fit`
    alone where the share is 1.
    """
    if share == 1:
        return fit
    return np.concatenate([database, fit[: round(len(database) * share / (1 - share))]])


def validation_score(
    method_class,
    protocol,
    bits,
    hyperparameters,
    metric,
    shares,
    repeat,
    seconds=None,
    seed=0,
    ap_at_normaliser="hits",
):
    """Score of one trial on one partition.

    seed: of the search; with `repeat` it decides the partition and the seed of the fit. seconds: most
    processor seconds that the fit may take (None: any). Raises `TooLong` if it takes more, at the next line
    that the method logs or at its end, and `Refusal` if the method refuses the trial. ap_at_normaliser: as of
    `tiebench.score`.
    """
    rows = protocol.split.training
    labels = None if protocol.labels is None else protocol.labels[rows]
    fit, query, rest = (rows[part] for part in partition(len(rows), shares, (seed, repeat, 1), labels))
    database = with_training_items(fit, rest, float(np.isin(protocol.split.database, rows).mean()))
    affinity = protocol.affinity.among(query, database)
    # A method that is given the whole database in runs is given the part `fit` here, as every other: what it
    # would see of the held-out part are its scores' labels. The validation database is encoded by `encode`,
    # as the queries.
    stop = _stop_after(seconds)
    training_set = protocol.training_set(fit, method_class.supervision, log=stop)
    method = method_class(bits=bits, seed=PARTITIONS * seed + repeat, **hyperparameters)
    name = method_class.__module__.rpartition(".")[2]
    with no_exit(name):
        method.fit(training_set)
        stop({})  # of a method that logs little
        codes = [method.encode(Rows(protocol.items, part)) for part in (query, database)]
    query_codes, database_codes = (
        np.packbits(check_codes(made, len(part), bits, name), axis=1)
        for made, part in zip(codes, (query, database))
    )
    blocks = AffinityBlocks(
        lambda begin, end: affinity.block(query[begin:end], database), tuple(affinity.levels)
    )
    entry, parameter = metrics.resolve(metric)
    at = [] if parameter is None or entry.parameter != "cutoff" else [parameter]
    return score_codes(query_codes, database_codes, bits, blocks, at, ap_at_normaliser).means[metric]


def _stop_after(seconds):
    """A training set's `log` that raises `TooLong` once this process has used `seconds` more."""
    begun = time.process_time()

    def log(record):
        if seconds is not None and time.process_time() - begun > seconds:
            raise TooLong(f"the fit took more than {seconds:g} seconds of processor time")

    return log
