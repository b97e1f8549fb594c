"""Whole trainings: seconds and memory of every method with its defaults, a process each.

python -m benchmarks fits
"""

import json
import resource
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

from benchmarks.report import progress
from benchmarks.timing import Failed
from methods.base import Refusal, TrainingSet
from methods.base.catalogue import catalogue, load_class

ITEMS, FEATURES, CLASSES = 5000, 1280, 10  # CIFAR-10 setting 1 on features of a MobileNetV2
BITS = (12, 48)
_FEW = 200
_ROOT = Path(__file__).parents[1]


def run(report, quick):
    """Print one table. Returns no rows of the summary: there is no peer for a whole method."""
    items = 1000 if quick else ITEMS
    report.write(
        "## Whole trainings",
        f"{items} synthetic items of {CLASSES} classes with {FEATURES} float32 features of unit length; each "
        "method with its defaults, in a process of its own, on one thread, after a first training on a few "
        "items. Memory is the process's peak above what it held before.",
    )
    rows = []
    for name in sorted(catalogue()):
        progress(f"fits: {name}")
        found = [_apart(name, bits, items) for bits in BITS]
        rows.append(
            [f"`{name}`"]
            + [f"{one['fit']:.1f}" if "fit" in one else one["refused"] for one in found]
            + [f"{one['encode'] / items * 1e6:.0f}" if "encode" in one else "" for one in found]
            + [f"{max(one.get('memory', 0) for one in found):.0f}"]
        )
    head = ["method", *(f"fit, {bits} bits, s" for bits in BITS)]
    head += [*(f"encode, {bits} bits, µs an item" for bits in BITS), "memory, MB"]
    report.rows(head, rows)
    return []


def _apart(name, bits, items):
    command = [sys.executable, "-m", "benchmarks.fits", name, str(bits), str(items)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{name} at {bits} bits: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout)


def measure(name, bits, items):
    """Seconds to fit and to encode the items, and peak MB above those before: a dict; or {"refused": why}."""
    import torch

    torch.set_num_threads(1)
    generator = np.random.default_rng(0)
    labels = generator.integers(0, CLASSES, items)
    features = generator.standard_normal((items, FEATURES), np.float32)
    features += generator.standard_normal((CLASSES, FEATURES), np.float32)[labels] / 4
    features /= np.linalg.norm(features, axis=1, keepdims=True)

    def affinity(rows, columns):
        return (labels[rows][:, None] == labels[columns]).astype(np.int64)

    method = load_class(name)(bits=bits)
    with suppress(Refusal):  # imports, kernels and allocators first
        load_class(name)(bits=bits).fit(TrainingSet(features[:_FEW], affinity, labels=labels[:_FEW]))
    before, begun = _peak_mb(), time.perf_counter()
    try:
        method.fit(TrainingSet(features, affinity, labels=labels))
    except Refusal as refusal:
        return {"refused": str(refusal)}
    fitted = time.perf_counter()
    method.encode(features)
    encoded = time.perf_counter()
    return {"fit": fitted - begun, "encode": encoded - fitted, "memory": _peak_mb() - before}


def _peak_mb():
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
