"""A billion codes in parts: does the time follow from a tenth of them?

python -m benchmarks billion
"""

import itertools
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import parts
from benchmarks.report import duration, figure, progress
from benchmarks.timing import Failed

ITEMS, QUICK_ITEMS = 1_000_000_000, 6_000_000
PARTS, QUICK_PARTS = 120, 20  # of all items; those of a tenth are as large
QUERIES = (10, 1000)
_BYTES = 1.1 * (parts.BITS // 8 + 1)  # of disk an item


def run(report, quick=False):
    """Time and memory of a tenth of the items and of all, by few and by many queries. Returns the summary."""
    items, count = (QUICK_ITEMS, QUICK_PARTS) if quick else (ITEMS, PARTS)
    sizes = (items // 10, items)
    report.write(
        "## A billion codes",
        f"{sizes[0]:,} and {items:,} synthetic items, {parts.BITS} bits, {parts.CLASSES} classes, in parts "
        f"of {items // count:,}; {parts.WORKERS} single-threaded processes at a time. Seconds include "
        "merging and all metrics; memory is the largest peak of any process.",
    )
    seen, memory = {}, {}
    with tempfile.TemporaryDirectory(prefix="tiebench-billion-") as folder:
        free, needed = shutil.disk_usage(folder).free, _BYTES * items
        if free < needed:
            raise Failed(f"{folder}: {free / 1e9:.0f} GB are free, and {needed / 1e9:.0f} needed")
        whole = Path(folder, "whole")
        progress(f"billion: drawing {items:,} codes")
        drawing = parts.timed(lambda: parts.draw(whole, items))
        bytes_on_disk = sum(file.stat().st_size for file in whole.iterdir())
        report.write(f"Drawing the codes took {duration(drawing)}; they take {bytes_on_disk / 1e9:.1f} GB.")
        for size, queries in itertools.product(sizes, QUERIES):
            progress(f"billion: {queries:,} queries, {size:,} items")
            some = Path(folder, f"{size}-{queries}")
            _first(whole, some, size, queries)
            begin = time.perf_counter()
            memory[size, queries] = _scored(some, count * size // items)
            seen[size, queries] = time.perf_counter() - begin
            for file in Path(folder).glob(f"{some.name}-*.npz"):
                file.unlink()
    # Seconds = items (a + b queries), with a and b from the tenth. All parts are of one size, so the starts
    # of their processes belong to a.
    (few, many), (small, large) = QUERIES, sizes
    each = (seen[small, many] - seen[small, few]) / (many - few) / small
    fixed = seen[small, few] / small - few * each
    law = {(size, queries): size * (fixed + queries * each) for size, queries in seen}
    report.rows(
        ["items", "queries", "seconds", "by the law", "G pairs/s in all", "peak MB"],
        [
            (
                f"{size:,}",
                f"{queries:,}",
                duration(seconds),
                duration(law[size, queries]),
                figure(size * queries / seconds / 1e9),
                f"{memory[size, queries]:,.0f}",
            )
            for (size, queries), seconds in seen.items()
        ],
    )
    report.write(
        f"The law, from the first two rows: {fixed * 1e9:.2g} ns an item (starts of processes, reading, "
        f"sorting by class, slicing), and {each * 1e12:.3g} ps a pair."
    )
    ratios = [figure(seen[large, queries] / law[large, queries]) for queries in QUERIES]
    what = f"seconds of {large:,} items over those that a tenth predicts, {few} and {many:,} queries"
    return [(what, "near 1", " and ".join(ratios))]


def _first(whole, folder, items, queries):
    """A folder with the first items and queries of another; what is wanted whole is not copied."""
    folder.mkdir()
    for name in ("query", "query_labels"):
        np.save(folder / f"{name}.npy", np.load(whole / f"{name}.npy")[:queries])
    shutil.copy(whole / "bits.npy", folder)
    for name in ("database", "database_labels"):
        source = np.load(whole / f"{name}.npy", mmap_mode="r")
        if len(source) == items:
            (folder / f"{name}.npy").symlink_to(whole / f"{name}.npy")
        else:
            np.save(folder / f"{name}.npy", source[:items])


def _scored(folder, count):
    """Count all parts and merge them; the largest peak of a process, in MB."""
    files, _, counting = parts.counted(folder, folder.parent, count)
    _, merging = parts.evaluate("--merge", *files, "--at", "1000")
    return max(counting, merging)
