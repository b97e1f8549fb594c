"""Whole trainings: seconds and memory of every method with its defaults, a process each.

python -m benchmarks fits
"""

import json
import resource
import signal
import sys
import time
from contextlib import suppress
from typing import NamedTuple

from benchmarks import class_items, commands
from benchmarks.report import progress
from methods.base import Refusal
from methods.base.catalogue import catalogue, load_class
from tiebench.files import machine_memory

BITS = (12, 48)
_FEW = 200


class Size(NamedTuple):
    items: int
    dimensions: int
    bits: int
    classes: int


# Setting 1 on features of a MobileNetV2.
CIFAR10 = Size(items=5000, dimensions=1280, bits=BITS[0], classes=10)


def run(report, quick):
    """Print one table: there is no peer for a whole method."""
    size = CIFAR10._replace(items=1000) if quick else CIFAR10
    report.write(
        "## Whole trainings",
        f"{size.items} synthetic items of {size.classes} classes with {size.dimensions} float32 features of "
        "unit length; each method with its defaults, in a process of its own, on one thread, after a first "
        "training on a few items. Seconds are the processor's. Memory is the process's peak above what it "
        "held before.",
    )
    rows, seconds = [], []
    for name in sorted(catalogue()):
        progress(f"fits: {name}")
        found = [in_process(name, size._replace(bits=bits), {}) for bits in BITS]
        seconds += [one["fit"] for one in found if "fit" in one]
        rows.append(
            [f"`{name}`"]
            + [f"{one['fit']:.1f}" if "fit" in one else one.get("refused", one.get("over")) for one in found]
            + [f"{one['encode'] / size.items * 1e6:.0f}" if "encode" in one else "" for one in found]
            + [f"{max(one.get('memory', 0) for one in found):.0f}"]
        )
    head = ["method", *(f"fit, {bits} bits, s" for bits in BITS)]
    head += [*(f"encode, {bits} bits, µs an item" for bits in BITS), "memory, MB"]
    report.rows(head, rows, keep="fits")
    what = f"training a method on {size.items:,} items of {size.dimensions:,} features"
    report.wait(what, f"{min(seconds):.0f} to {max(seconds):.0f} s of a processor")


def in_process(name, size, settings, seconds=None):
    """What `measure` returns, from a process of its own, or {"over": why}: it takes too long or too much
    memory."""
    given = json.dumps([name, size, settings, seconds])
    try:
        ran = commands.python("benchmarks.fits", given)
    except commands.Killed as error:
        if error.signal != signal.SIGPROF:
            raise
        return {"over": f"over {seconds:g} s"}
    return json.loads(ran.splitlines()[-1])


def measure(name, size, settings, seconds=None):
    """Seconds of the processor to fit and to encode the items, and peak MB above those before: a dict.

    size: a `Size`; settings: hyper-parameters; seconds: of the processor that both may take, or the process
    is ended by SIGPROF. Returns {"refused": why} where the method refuses.
    """
    drawn = class_items.made(size.items, size.dimensions, size.classes)

    method = load_class(name)(bits=size.bits, **settings)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    with suppress(Refusal):  # imports, kernels and allocators first
        load_class(name)(bits=size.bits, **settings).fit(drawn.training_set(slice(_FEW)))
    before, begun = commands.peak_bytes(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds or 0)  # the kernel's: nothing of Python runs inside LAPACK
    try:
        method.fit(drawn.training_set())
        fitted = time.process_time()
        method.encode(drawn.vectors)
        encoded = time.process_time()
    except Refusal as refusal:
        return {"refused": str(refusal)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    memory = (commands.peak_bytes() - before) / 1e6
    return {"fit": fitted - begun, "encode": encoded - fitted, "memory": memory}


def within_memory(name, size, settings, seconds):
    """As `measure`, with no more memory than the machine has, lest another program be ended for it."""
    available = machine_memory()
    resource.setrlimit(resource.RLIMIT_AS, (available, available))
    try:
        return measure(name, Size(*size), settings, seconds)
    except MemoryError:
        return {"over": "out of memory"}
    except RuntimeError as error:  # PyTorch's
        if "can't allocate memory" not in str(error):
            raise
        return {"over": "out of memory"}


if __name__ == "__main__":
    print(json.dumps(within_memory(*json.loads(sys.argv[1]))))
