"""Health of codes: what the runs of a table make of their bits, as data and on the page."""

import math

import pandas as pd

from reporting.tables.model import Table
from reporting.tables.runs import Results
from reporting.tables.titles import EN_DASH

COUNTS = (
    "constant_bits",
    "constant_bits_of_queries",
    "unused_bits",
    "distinct_codes",
    "classes",
    "largest_bucket",
)
NUMBERS = (
    "ones_lowest",
    "ones_highest",
    "correlation_mean",
    "correlation_max",
    "entropy",
    "effective_bits",
    "tie@10",
    "tie@100",
    "tie@1000",
    "nearest_radius_0",
    "nearest_radius_1",
    "nearest_radius_2",
    "ap_range",
)
KEY = {"table": "str", "protocol": "str", "method": "str", "bits": "int64", "seed": "int64"}
# As of `frames.KINDS`.
KINDS = KEY | {"collapsed": "str", "collapsed_epoch": "Int64"} | dict.fromkeys(COUNTS, "Int64")
KINDS |= dict.fromkeys(NUMBERS, "float64")

# Heading, what it means, column and decimals of the printed tables.
PRINTED = (
    ("Constant bits", "the same for all items of the database", "constant_bits", 0),
    ("Correlation", "mean absolute correlation of two bits that vary", "correlation_mean", 2),
    ("Distinct codes", "in the database", "distinct_codes", 0),
    ("Entropy", "of the codes, in bits", "entropy", 1),
    ("Effective bits", "minus log2 of the probability that two items share a code", "effective_bits", 1),
    ("Largest bucket", "items of the most frequent code", "largest_bucket", 0),
    ("Tie at 10", "mean number of items tied at rank 10", "tie@10", 0),
    ("Tie at 100", "the same at rank 100", "tie@100", 0),
    ("Tie at 1,000", "the same at rank 1,000", "tie@1000", 0),
    ("Nearest at 0", "share of queries whose code some item has", "nearest_radius_0", 2),
    ("Range of AP", "between the worst and the best order of ties, as a share of AP", "ap_range", 2),
)


def frame(table: Table, results: Results) -> pd.DataFrame:
    """One row per run with codes, in the order of the table's protocols, methods, bits and seeds.

    Columns: table, protocol, method (str), bits, seed (int); collapsed (str: why the codes count as
    collapsed, "" if they do not); collapsed_epoch (since which epoch of training, <NA> if not
    known) and the counts of COUNTS (Int64, <NA> if there is none); NUMBERS (float, NaN if undefined), among
    them ones_lowest and ones_highest, the shares of items whose bit is 1 of the two extreme bits; the rest as
    of `tiebench.diagnostics.Health`. Runs without health, and those from the leaderboard, are left out.
    """
    rows = []
    for protocol, method, bits in table.cells:
        for seed, run in results.cell(protocol, method, bits).items():
            health = run.health
            if not health or run.from_leaderboard:
                continue
            row = {name: health.get(name) for name in KINDS} | {"collapsed": run.collapsed}
            row |= dict(zip(KEY, (table.name, protocol, method, bits, seed), strict=True))
            row |= {"ones_lowest": min(health["ones"]), "ones_highest": max(health["ones"])}
            rows.append(row)
    return pd.DataFrame(rows, columns=list(KINDS)).astype(KINDS)


def rows(table: Table, health: pd.DataFrame | None) -> list[dict]:
    """Rows of the printed tables, one per protocol, method and bits of the table, with means over seeds.

    Each is {"title" (of the protocol), "method", "name", "bits", "values": [(number or None,
    text), ...] of PRINTED, "collapsed": words, "" for a cell without collapsed codes}.
    """
    result: list[dict] = []
    if health is None:
        return result
    for (protocol, method, bits), cell in health.groupby(["protocol", "method", "bits"], sort=False):
        values = []
        for _, _, column, digits in PRINTED:
            mean = cell[column].astype("float64").mean()
            known = not math.isnan(mean)
            values.append((mean if known else None, f"{mean:,.{digits}f}" if known else EN_DASH))
        result.append(
            {
                "title": table.protocol_title(protocol),
                "method": method,
                "name": table.method_title(method),
                "bits": int(bits),
                "values": values,
                "collapsed": _collapse_words(cell),
            }
        )
    return result


def _collapse_words(cell: pd.DataFrame) -> str:
    """Which seeds of a cell collapsed, why, and when, as far as their trainings tell."""
    words = []
    for row in cell[cell["collapsed"] != ""].itertuples():
        when = "" if pd.isna(row.collapsed_epoch) else f" since epoch {row.collapsed_epoch}"
        words.append(f"{f'seed {row.seed}' if len(cell) > 1 else 'yes'}{when}: {row.collapsed}")
    return "; ".join(words)
