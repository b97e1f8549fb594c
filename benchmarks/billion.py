"""A billion codes, counted in parts, by many and by few queries."""

from benchmarks import parts
from benchmarks.report import duration

ITEMS, QUICK_ITEMS = 1_000_000_000, 6_000_000


def run(report, quick=False):
    """Print time and memory."""
    items, count = (QUICK_ITEMS, 20) if quick else (ITEMS, 120)
    queries = (parts.QUERIES, 10)
    seconds = parts.measure(report, "A billion codes", items, count, queries)
    for number, one in zip(queries, seconds, strict=True):
        report.target(f"{items:,} items in parts, {number:,} queries", "seconds", duration(one))
