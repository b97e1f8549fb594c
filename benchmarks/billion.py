"""A billion codes, too many for one process: parts counted by separate processes, then merged."""

import os
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks import commands
from benchmarks.report import duration, progress, rounded
from benchmarks.timing import Disagreement

ITEMS, QUICK_ITEMS = 1_000_000_000, 6_000_000
PARTS, QUICK_PARTS = 120, 20
QUERIES = (1000, 10)
BITS, CLASSES, WORKERS = 64, 100, 2
_FLIPPED = 0.35
_CHUNK = 1_000_000


def run(report, quick=False):
    """Print time and memory, by many and by few queries."""
    measure(report, *((QUICK_ITEMS, QUICK_PARTS) if quick else (ITEMS, PARTS)))


def measure(report, items, parts):
    """Print time and memory of scoring so many synthetic codes in parts, by each of `QUERIES`; some of them
    must have the same scores at once."""
    report.write(
        "## A database in parts",
        f"{items:,} items, {BITS} bits, {CLASSES} classes, synthetic; {parts} parts, {WORKERS} "
        "single-threaded processes at a time. Memory is the largest peak of any process.",
    )
    rows = []
    with tempfile.TemporaryDirectory(prefix="tiebench-parts-") as folder:
        free, needed = shutil.disk_usage(folder).free, 1.1 * (BITS // 8 + 1) * items
        if free < needed:
            raise commands.Failed(f"{folder}: {free / 1e9:.0f} GB are free, and {needed / 1e9:.0f} needed")
        whole = Path(folder, "whole")
        begin = time.perf_counter()
        draw(whole, items)
        report.write(f"Drawing the codes took {duration(time.perf_counter() - begin)}.")
        some = Path(folder, "some")
        share = _first(whole, some, items // parts)
        at_once, one_memory = evaluate(str(some), "--at", "1000")
        few, _, _ = counted(some, folder, 5)
        merged, _ = evaluate("--merge", *few, "--at", "1000")
        if at_once != merged:
            raise Disagreement("the scores of merged parts are not those of the same items at once")
        for count in QUERIES:
            progress(f"billion: {count:,} queries, {items:,} items")
            for name in ("query", "query_labels"):
                np.save(whole / f"{name}.npy", np.load(whole / f"{name}.npy")[:count])
            files, counting, memory = counted(whole, folder, parts)
            begin = time.perf_counter()
            _, merging_memory = evaluate("--merge", *files, "--at", "1000")
            merging = time.perf_counter() - begin
            most = max(memory, merging_memory)
            what = f"scores of {count:,} queries in {items:,} codes of {BITS} bits, in parts, two processes"
            report.wait(what, f"{duration(counting + merging)}, {most:,.0f} MB a process")
            rate = rounded(count * items / counting / 1e9)
            seconds = [duration(counting), duration(merging)]
            rows.append([f"{count:,}", *seconds, rate, f"{most:,.0f}"])
    report.rows(["queries", "counting", "merging, all metrics", "G pairs/s in all", "peak MB"], rows)
    report.write(
        f"The first {share:,} items at once ({one_memory:,.0f} MB) and in 5 parts print identical scores, "
        "character for character."
    )


def draw(folder, items):
    """Codes by class prototype with flipped bits, chunk by chunk, as .npy files of a folder."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 2, (CLASSES, BITS), dtype=np.uint8)

    def drawn(count):
        labels = rng.integers(0, CLASSES, count, dtype=np.uint8)
        # Bits from bytes below a threshold: ten times as fast as drawing floats.
        flips = rng.integers(0, 256, (count, BITS), dtype=np.uint8) < round(256 * _FLIPPED)
        return np.packbits(prototypes[labels] ^ flips, axis=1), labels

    query, labels = drawn(QUERIES[0])
    np.save(folder / "query.npy", query)
    np.save(folder / "query_labels.npy", labels)
    np.save(folder / "bits.npy", BITS)
    create = np.lib.format.open_memmap
    codes = create(folder / "database.npy", "w+", np.uint8, (items, BITS // 8))
    classes = create(folder / "database_labels.npy", "w+", np.uint8, (items,))
    for begin in range(0, items, _CHUNK):
        end = min(begin + _CHUNK, items)
        codes[begin:end], classes[begin:end] = drawn(end - begin)


def _first(whole, folder, items):
    """A folder with the first items of another; returns how many."""
    folder.mkdir()
    for name in ("query", "query_labels", "bits"):
        np.save(folder / f"{name}.npy", np.load(whole / f"{name}.npy"))
    for name in ("database", "database_labels"):
        np.save(folder / f"{name}.npy", np.load(whole / f"{name}.npy", mmap_mode="r")[:items])
    return items


def counted(source, folder, parts):
    """Count all parts; returns (files, seconds, peak MB of the largest process)."""
    files = [str(Path(folder, f"{source.name}-{part}.npz")) for part in range(1, parts + 1)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as pool:
        counting = [
            pool.submit(evaluate, source, "--part", f"{part}/{parts}", "--histograms", file)
            for part, file in enumerate(files, start=1)
        ]
        memory = max(one.result()[1] for one in counting)
    return files, time.perf_counter() - begin, memory


def evaluate(*arguments):
    """Run tiebench score on one thread; returns (its output, peak MB)."""
    spent = commands.timed(commands.ROOT, "tiebench", "score", *arguments, environment=os.environ)
    return spent.text, spent.megabytes
