"""Markdown: printed at once, saved to a file at the end."""

import datetime
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from benchmarks import optional_peers
from benchmarks.timing import interleave
from tiebench.files import write_text

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "torch")


class Report:
    """Prints blocks of Markdown and stores them. targets: rows (quantity, target, measured)."""

    def __init__(self):
        self._blocks = []
        self.targets = []

    def write(self, *blocks):
        """Headings, paragraphs or whole tables, with an empty line after each."""
        for block in blocks:
            print(block, end="\n\n", flush=True)
            self._blocks.append(block)

    def rows(self, head, rows):
        """A table. head: column titles; rows: equally long sequences of text. The first column is text."""
        cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (head, *rows)]
        if len({len(row) for row in cells}) != 1:
            raise ValueError("all rows of a table must be equally long")
        lines = ["| " + " | ".join(row) + " |" for row in cells]
        lines.insert(1, "|---|" + "---:|" * (len(head) - 1))
        self.write("\n".join(lines))

    def times(self, measurements, base, names=None, work=(None, 0)):
        """Rows of what, seconds, range and ratio to `base`; work: title of a rate, amount of a call."""
        rate, amount = work
        rows = []
        for name in names or measurements:
            one = measurements[name]
            ratio = "1 (base)" if name == base else f"x{rounded(one.ratio_to(measurements[base]))}"
            row = [name, duration(one.median), f"{duration(one.low)}..{duration(one.high)}", ratio]
            rows.append([*row, rounded(amount / one.median)] if rate else row)
        self.rows(["what", "median", "min..max", f"time over `{base}`", *[rate] * bool(rate)], rows)

    def compare(self, title, competitors, rounds, base, **options):
        """Time competitors in turns and print them under a title; options: of `times`. Returns the times."""
        self.write(f"### {title}")
        measurements = interleave(competitors, rounds)
        self.times(measurements, base, **options)
        return measurements

    def target(self, quantity, target, measured):
        """A row of the table of targets; measured: text, or a ratio."""
        self.targets.append((quantity, target, measured if isinstance(measured, str) else rounded(measured)))

    def finish(self, path=None):
        """Print the targets, and save everything to a file, whole or not at all; there they come first."""
        head, body = self._blocks[:1], self._blocks[1:]
        self._blocks = head
        if self.targets:
            self.write("## Targets", "Reported, not enforced. They assume an otherwise idle machine.")
            self.rows(["quantity", "target", "measured"], self.targets)
        if path is not None:
            write_text(path, "\n\n".join(self._blocks + body) + "\n")


def progress(message):
    """Print progress to standard error."""
    print(f"... {message}", file=sys.stderr, flush=True)


def rounded(value):
    """Three significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds):
    """Seconds as text, in a suitable unit."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{rounded(seconds * factor)} {unit}"
    return f"{rounded(seconds * 1e6)} us"


def megabytes(size):
    return f"{size / 1e6:.1f} MB"


def header(threads):
    """Description of the machine and of versions, as Markdown."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    present, absent = optional_peers.versions()
    optional = "; ".join(
        words + ", ".join(names)
        for words, names in (("installed: ", present), ("not installed, so not timed: ", absent))
        if names
    )
    now = datetime.datetime.now(datetime.UTC)
    lines = (
        f"- processor: {_processor()}, {os.cpu_count()} logical cores; load average at the start {load}",
        f"- {platform.python_implementation()} {platform.python_version()}, {versions}",
        f"- optional peers {optional}",
        f"- {platform.system()} {platform.machine()}; threads: {threads}; date: {now:%Y-%m-%d %H:%M} UTC",
        "- Times are medians over rounds in which the competitors of a table take turns in random "
        "order; ratios are medians of the ratios within each round. Codes and features are synthetic.",
    )
    return "# Benchmarks\n\n" + "\n".join(lines)


def _processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
