"""Tables and runs that tests write as settings and records, as `reporting.tables.model` has them.

An entry may have `uncoded_scores`, those of features, which no file has.
"""

from styles import STYLES

from reporting.tables.model import Table
from reporting.tables.runs import Results, Run


def small(**changes):
    """The settings of a small table, after changes."""
    plain = {"name": "small", "title": "A small table", "seeds": [0, 1, 2], "styles": STYLES}
    plain["methods"] = ["talr_ap", "mihash", "lsh"]
    return plain | {"blocks": [block()]} | changes


def block(protocol="digits", metric="ap", bits=(12, 24), **more):
    return {"protocol": protocol, "metric": metric, "bits": list(bits)} | more


def record(method, bits, seed, metrics, protocol="digits", **more):
    """A run that is done."""
    key = {"protocol": protocol, "method": method, "bits": bits, "seed": seed}
    return key | {"status": "done", "metrics": metrics} | more


def row_of(frame, method, bits=12):
    """The one row of a method at a length."""
    rows = frame[(frame["method"] == method) & (frame["bits"] == bits)]
    assert len(rows) == 1
    return rows.iloc[0]


def table_of(entry, published=(), **settings):
    """The table of an entry. published: what papers print; settings: further parts of its file."""
    if isinstance(entry, Table):
        return entry
    return Table.from_json({"table": entry, "published": list(published), **settings})


def model_of(entry, records, published=(), uncoded=None):
    """The table of an entry, and the results of records, or of runs; uncoded: scores of features."""
    table = table_of(entry, published)
    runs = [one if isinstance(one, Run) else Run.from_json(one) for one in records]
    given = entry.get("uncoded_scores") if isinstance(entry, dict) else None
    return table, Results.of(table, runs, uncoded or given)
