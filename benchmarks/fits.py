"""Whole trainings: seconds and memory of every method with its defaults, a process each.

python -m benchmarks fits
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress

import numpy as np

from benchmarks import commands
from benchmarks.class_items import Items
from benchmarks.report import progress
from methods.base import Refusal
from methods.base.catalogue import catalogue, load_class

ITEMS, FEATURES, CLASSES = 5000, 1280, 10  # CIFAR-10 setting 1 on features of a MobileNetV2
BITS = (12, 48)
_FEW = 200


def run(report, quick):
    """Print one table: there is no peer for a whole method."""
    items = 1000 if quick else ITEMS
    report.write(
        "## Whole trainings",
        f"{items} synthetic items of {CLASSES} classes with {FEATURES} float32 features of unit length; each "
        "method with its defaults, in a process of its own, on one thread, after a first training on a few "
        "items. Seconds are the processor's. Memory is the process's peak above what it held before.",
    )
    rows = []
    for name in sorted(catalogue()):
        progress(f"fits: {name}")
        found = [
            json.loads(
                commands.python(
                    commands.ROOT, "benchmarks.fits", name, bits, items, environment=os.environ
                ).text
            )
            for bits in BITS
        ]
        rows.append(
            [f"`{name}`"]
            + [f"{one['fit']:.1f}" if "fit" in one else one["refused"] for one in found]
            + [f"{one['encode'] / items * 1e6:.0f}" if "encode" in one else "" for one in found]
            + [f"{max(one.get('memory', 0) for one in found):.0f}"]
        )
    head = ["method", *(f"fit, {bits} bits, s" for bits in BITS)]
    head += [*(f"encode, {bits} bits, µs an item" for bits in BITS), "memory, MB"]
    report.rows(head, rows)


def measure(name, bits, items, features=FEATURES, classes=CLASSES, seconds=None, **settings):
    """Seconds of the processor to fit and to encode the items, and peak MB above those before: a dict.

    seconds: of the processor that both may take, or the process is ended by SIGPROF. settings:
    hyper-parameters. Returns {"refused": why} where the method refuses.
    """
    generator = np.random.default_rng(0)
    labels = generator.integers(0, classes, items)
    vectors = generator.standard_normal((items, features), np.float32)
    vectors += generator.standard_normal((classes, features), np.float32)[labels] / 4
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    drawn = Items(vectors, labels)

    method = load_class(name)(bits=bits, **settings)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    with suppress(Refusal):  # imports, kernels and allocators first
        load_class(name)(bits=bits, **settings).fit(drawn.training_set(slice(_FEW)))
    before, begun = commands.peak_bytes(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds or 0)  # the kernel's: nothing of Python runs inside LAPACK
    try:
        method.fit(drawn.training_set())
        fitted = time.process_time()
        method.encode(vectors)
        encoded = time.process_time()
    except Refusal as refusal:
        return {"refused": str(refusal)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    memory = (commands.peak_bytes() - before) / 1e6
    return {"fit": fitted - begun, "encode": encoded - fitted, "memory": memory}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
