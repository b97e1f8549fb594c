"""Markdown: printed at once, saved to a file at the end."""

import datetime
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from benchmarks import optional_peers

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "torch")


class Report:
    """Prints blocks of Markdown and stores them."""

    def __init__(self):
        self._blocks = []

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

    def times(self, measurements, base, names=None, extra=None):
        """Rows of what, seconds, range and ratio to `base`; extra: title -> (function of a name -> text)."""
        extra = extra or {}
        head = ["what", "median", "min..max", f"time over `{base}`", *extra]
        self.rows(
            head,
            [
                (
                    name,
                    duration(measurements[name].median),
                    f"{duration(measurements[name].low)}..{duration(measurements[name].high)}",
                    "1 (base)"
                    if name == base
                    else f"x{figure(measurements[name].ratio_to(measurements[base]))}",
                    *(column(name) for column in extra.values()),
                )
                for name in (names or measurements)
            ],
        )

    def __len__(self):
        """Blocks so far."""
        return len(self._blocks)

    def lead_with(self, begin, place):
        """Move the blocks from number `begin` on to `place` in the saved file."""
        rest, moved = self._blocks[:begin], self._blocks[begin:]
        self._blocks = rest[:place] + moved + rest[place:]

    def save(self, path):
        """Write everything to a file, whole or not at all."""
        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        partial.write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")
        partial.replace(path)


def progress(message):
    """Print progress to standard error."""
    print(f"... {message}", file=sys.stderr, flush=True)


def figure(value):
    """Three significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds):
    """Seconds as text, in a suitable unit."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{figure(seconds * factor)} {unit}"
    return f"{figure(seconds * 1e6)} us"


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
