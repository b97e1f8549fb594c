"""Average ranks of methods over the columns of a table, with Friedman's and Nemenyi's tests."""

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from reporting.frames import tidy
from reporting.model import Results, Table
from tiebench.metrics import resolve
from tiebench.paired import LEVEL


def ranks(table: Table, results: Results) -> dict | None:
    """Average rank of each method over the columns of a table, with the tests of Demšar (JMLR 2006).

    A column is a (protocol, metric, bits); the best mean of it has rank 1, equal means share the mean of
    their ranks. A method without a score in some column of the table is left out, and the others are ranked
    among themselves; bounds and methods that see more than the training set are left out without a word. A
    dict:

    * methods: ids, the lowest average rank first, equal ones in row order; average_rank: id -> float;
    * columns: how many columns were ranked;
    * friedman_p: of scipy.stats.friedmanchisquare, None where it is not defined: all means equal;
    * critical_difference: of Nemenyi's test at 0.05, q sqrt(k (k + 1) / (6 N)) for k methods and N columns,
      with q the 0.95 quantile of the studentized range for k groups and infinite degrees of freedom, over
      sqrt 2: smaller differences of average ranks are not significant;
    * left_out: ids of the methods left out, in row order.

    None for fewer than three methods or two columns. The tests take columns for independent, but columns
    that differ only in bits are not: the same queries, database and method stand behind them. So read ranks
    as a summary of the table, not as evidence.
    """
    frame = tidy(replace(table, published=()), replace(results, uncoded={}))
    scores: dict[str, dict[tuple, float]] = {}
    for row in frame[[table.competes(method) for method in frame["method"]]].itertuples(index=False):
        cells = scores.setdefault(row.method, {})
        if not math.isnan(row.mean):
            cells[row.protocol, row.metric, row.bits] = row.mean
    columns = list(dict.fromkeys(frame[["protocol", "metric", "bits"]].itertuples(index=False, name=None)))
    ranked = [method for method, cells in scores.items() if len(cells) == len(columns)]
    if len(ranked) < 3 or len(columns) < 2:
        return None
    signs = [1 if resolve(metric)[0].higher_is_better else -1 for _, metric, _ in columns]
    values = np.array([[scores[method][column] for method in ranked] for column in columns])
    values *= np.array(signs)[:, None]
    average = dict(zip(ranked, stats.rankdata(-values, axis=1).mean(axis=0).tolist(), strict=True))
    methods = sorted(ranked, key=average.__getitem__)
    equal = bool((values == values[:, :1]).all())
    quantile = float(stats.studentized_range.ppf(1 - LEVEL, len(ranked), math.inf)) / math.sqrt(2)
    return {
        "methods": methods,
        "average_rank": {method: average[method] for method in methods},
        "columns": len(columns),
        "friedman_p": None if equal else float(stats.friedmanchisquare(*values.T).pvalue),
        "critical_difference": quantile * math.sqrt(len(ranked) * (len(ranked) + 1) / (6 * len(columns))),
        "left_out": [method for method in scores if method not in ranked],
    }
