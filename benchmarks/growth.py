"""How training and encoding grow with items, dimensions, bits and classes: a process for each measurement.

python -m benchmarks growth --methods itq pcah --axes dimensions
"""

import numpy as np

from benchmarks import commands
from benchmarks.fits import Size, in_process
from benchmarks.report import progress, rounded
from methods.base.catalogue import catalogue
from tiebench.messages import did_you_mean

SECONDS = 60.0  # of a processor for one training and its encoding; sizes beyond it are not tried


BASE = Size(items=2000, dimensions=512, bits=32, classes=10)
AXES = {
    "items": (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
    "dimensions": (128, 256, 512, 1024, 2048, 4096, 8192, 12_288),
    "bits": (16, 32, 64, 128, 256, 512),
    "classes": (10, 20, 50, 100, 200, 500, 1000),
}
_QUICK = 3  # sizes of an axis with --quick

# Exponents of items, dimensions, bits and classes in the operations of a training, counted from the algorithm
# that the paper describes; None where they were not counted.
OPERATIONS = {
    "adsh": (1, None, None, 0),
    "agh": (1, 1, None, 0),
    "dpsh": (2, 1, 1, 0),  # its loss pairs each batch with all items
    "dsdh": (2, 1, 1, None),  # as DPSH's
    "itq": (1, 3, 3, 0),
    "ksh": (2, None, 1, 0),  # of the labelled items
    "pcah": (1, 3, None, 0),
    "sdh": (1, None, None, None),
    "sgh": (1, 1, 1, 0),
    "sh": (1, 3, None, 0),
    "sph": (1, 1, 2, 0),
}
# An epoch of batches of a fixed size through a linear layer.
_BATCHES = (1, 1, 1, None)
# What is measured: title, and the least value that enters an exponent. Smaller ones are noise.
MEASURED = {
    "fit": ("Seconds of training", 0.05),
    "encode": ("Seconds of encoding the items", 0.05),
    "memory": ("Megabytes above what the process held before", 20),
}


def run(report, quick, methods=None, axes=None, seconds=None):
    """Print three tables of every axis: seconds of training, microseconds of encoding an item, memory.

    methods, axes: names, all by default; seconds: of a processor that a training and its encoding may take.
    Raises `commands.Failed` for an unknown method.
    """
    seconds = SECONDS if seconds is None else seconds
    about = catalogue()
    for name in methods or ():
        if name not in about:
            raise commands.Failed(f"--methods: unknown method {name!r}{did_you_mean(name, about)}")
    report.write(
        "## Growth of trainings",
        f"Synthetic items of unit length, as of `fits`; {_words(BASE)}, but for the axis of a table. Each "
        "training in a process of its own, on one thread, after a first one on a few items; seconds are the "
        "processor's. Methods with epochs train for one. An axis ends where a training and its encoding take "
        f"more than {seconds:g} s. Exponents are slopes of log value over log size in the upper half of the "
        "sizes that were measured; beside them that of the operations in the paper's algorithm, if counted "
        "(an epoch of batches of a fixed size is linear).",
    )
    known: dict[tuple[str, Size], dict] = {}
    for axis in axes or AXES:
        sizes = AXES[axis]
        if quick:
            sizes = sizes[:_QUICK]
        rows = {}
        for name in methods or sorted(about):
            progress(f"growth: {name}, {axis}")
            settings = {"epochs": 1} if "epochs" in about[name].parameters else {}
            rows[name] = climb(name, axis, sizes, settings, seconds, known)
        _tables(report, axis, sizes, rows, about)


def climb(name, axis, sizes, settings, seconds, known):
    """What `in_process` finds of a method along an axis, until it takes too long: size -> dict.

    known: (name, size) -> dict, what was found so far.
    """
    found = {}
    for size in sizes:
        whole = BASE._replace(**{axis: size})
        if (name, whole) not in known:
            known[name, whole] = in_process(name, whole, settings, seconds)
        found[size] = known[name, whole]
        if "over" in found[size]:
            break
    return found


def exponent(values):
    """The slope of log value over log size of the upper half of the sizes, at least two; None of fewer.

    values: size -> positive number.
    """
    if len(values) < 2:
        return None
    sizes = sorted(values)
    upper = sizes[min(len(sizes) // 2, len(sizes) - 2) :]
    return float(np.polyfit(np.log(upper), np.log([values[size] for size in upper]), 1)[0])


def _tables(report, axis, sizes, rows, about):
    """rows: method -> what `climb` returns."""
    report.write(f"### {axis.capitalize()}", f"{_words(BASE, without=axis)}.")
    head = ["method", *(f"{size:,}" for size in sizes), "exponent"]
    for what, (title, least) in MEASURED.items():
        report.write(f"{title}:")
        counted = what == "fit"
        body = [
            _row(name, sizes, found, what, least) + [_text(_stated(about[name], axis))] * counted
            for name, found in rows.items()
        ]
        report.rows(head + ["of its operations"] * counted, body, keep=f"{what}_{axis}")
    refused = [
        f"- `{name}`, {size:,} {axis}: {one['refused']}"
        for name, found in rows.items()
        for size, one in found.items()
        if "refused" in one
    ]
    if refused:
        report.write("Refused:", "\n".join(refused))


def _row(name, sizes, found, what, least):
    """Cells of a method; the exponent is of the values that are at least `least`."""
    cells = []
    for size in sizes:
        one = found.get(size, {})
        cells.append(
            rounded(round(one[what], 3)) if what in one else one.get("over", "refused" if one else "")
        )
    values = {size: one[what] for size, one in found.items() if one.get(what, 0) >= least}
    return [f"`{name}`", *cells, _text(exponent(values))]


def _stated(about, axis):
    """The exponent of the operations of a training, or None."""
    none = _BATCHES if "epochs" in about.parameters else (None,) * len(BASE)
    return OPERATIONS.get(about.name, none)[BASE._fields.index(axis)]


def _text(slope):
    return "" if slope is None else f"{slope:.1f}"


def _words(size, without=None):
    return ", ".join(f"{count:,} {axis}" for axis, count in size._asdict().items() if axis != without)
