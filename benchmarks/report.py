"""Markdown: printed at once, saved to a file at the end."""

import datetime
import importlib.metadata
import os
import platform
import sys
from pathlib import Path

import yaml
from llvmlite.binding import get_host_cpu_features

from benchmarks import optional_peers
from benchmarks.timing import interleave
from reporting.leaderboard.publishing import processor
from reporting.printed.markdown import markdown_table
from tiebench.files import write_text

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "scikit-learn", "torch")
# Tables to which every benchmark adds: their title and columns.
SUMMARIES = {
    "waits": ("What you wait for", "what", "time"),
    "peers": ("Beside other implementations: time of the other over ours", "ours", "other", "ratio"),
    "targets": ("Targets, not enforced, of an otherwise idle machine", "quantity", "target", "measured"),
}


class Report:
    """Prints blocks of Markdown and stores them, and keeps tables for pages of the documentation.

    kept: command -> table -> {"head": titles, "rows": [cells, ...]}, all of them Markdown; place: what is
    measured on.
    """

    def __init__(self):
        self._blocks = []
        self.kept = {}
        self.place = f"{_processor()}, one thread"
        self._tables = {}

    def begin(self, command):
        """What follows is measured by this command."""
        self._tables = self.kept[command] = {}

    def write(self, *blocks):
        """Headings, paragraphs or whole tables, with an empty line after each."""
        for block in blocks:
            print(block, end="\n\n", flush=True)
            self._blocks.append(block)

    def rows(self, head, rows, keep=None):
        """A table. head: column titles; rows: equally long sequences of text. The first column is text.

        keep: name under which pages find it.
        """
        cells = [[str(cell).replace("|", "\\|") for cell in row] for row in (head, *rows)]
        if len({len(row) for row in cells}) != 1:
            raise ValueError("all rows of a table must be equally long")
        if keep:
            self._tables[keep] = {"head": cells[0], "rows": cells[1:]}
        self.write(markdown_table(cells[0], cells[1:], len(head) - 1))

    def times(self, measurements, base, names=None, work=(None, 0)):
        """Rows of what, seconds, range and ratio to `base`; work: title of a rate, amount of a call."""
        rate, amount = work
        rows = []
        for name in names or measurements:
            one = measurements[name]
            ratio = "1 (base)" if name == base else f"x{rounded(one.ratio_to(measurements[base]))}"
            low, high = (duration(end(one.seconds)) for end in (min, max))
            row = [name, duration(one.median), f"{low}..{high}", ratio]
            rows.append([*row, rounded(amount / one.median)] if rate else row)
        self.rows(["what", "median", "min..max", f"time over `{base}`", *[rate] * bool(rate)], rows)

    def compare(self, title, competitors, rounds, base, **options):
        """Time competitors in turns and print them under a title; options: of `times`. Returns the times."""
        self.write(f"### {title}")
        measurements = interleave(competitors, rounds)
        self.times(measurements, base, **options)
        return measurements

    def target(self, quantity, target, measured):
        """A row of the table of targets; measured: text, or a number."""
        self._add("targets", quantity, target, measured)

    def peer(self, ours, other, ratio):
        """A row of the table of peers. ratio: seconds of the other over ours."""
        self._add("peers", ours, other, ratio)

    def wait(self, what, time):
        """A row of the table of what a user waits for; time: text."""
        self._add("waits", what, time)

    def _add(self, table, *cells):
        _, *head = SUMMARIES[table]
        rows = self._tables.setdefault(table, {"head": head, "rows": []})["rows"]
        rows.append([cell if isinstance(cell, str) else rounded(cell) for cell in cells])

    def finish(self, path=None):
        """Print the summaries, and save everything to a file, whole or not at all; there they come first."""
        head, body = self._blocks[:1], self._blocks[1:]
        self._blocks = head
        for name, (title, *columns) in SUMMARIES.items():
            rows = [row for tables in self.kept.values() for row in tables.get(name, {"rows": []})["rows"]]
            if rows:
                self.write(f"## {title}")
                self.rows(columns, rows)
        if path is not None:
            write_text(path, "\n\n".join(self._blocks + body) + "\n")

    def record(self, folder):
        """Write the tables of each command, `python -m benchmarks NAME …`, to NAME.yaml in a folder."""
        about = {"date": f"{datetime.date.today()}", "machine": self.place}
        about |= {"versions": _versions()}
        for command, tables in self.kept.items():
            made = {"command": command} | about | {"tables": tables}
            write_text(
                Path(folder, f"{command.split()[3]}.yaml"),
                yaml.safe_dump(
                    made, default_flow_style=None, sort_keys=False, allow_unicode=True, width=10_000
                ),
            )


def progress(message):
    """Print progress to standard error."""
    print(f"... {message}", file=sys.stderr, flush=True)


def rounded(value):
    """Three significant digits, and all that stand before the point; none is lost to an exponent of ten."""
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


def header():
    """Description of the machine and of versions, as Markdown."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    absent = ", ".join(optional_peers.versions()[1]) or "none"
    now = datetime.datetime.now(datetime.UTC)
    lines = (
        f"- processor: {_processor()}, {os.cpu_count()} logical cores; load average at the start {load}",
        f"- {_versions()}; not installed, so not timed: {absent}",
        f"- {platform.system()} {platform.machine()}; one thread; date: {now:%Y-%m-%d %H:%M} UTC",
        "- Times are medians over rounds in which the competitors of a table take turns in random "
        "order; ratios are medians of the ratios within each round. Codes and features are synthetic.",
    )
    return "# Benchmarks\n\n" + "\n".join(lines)


def _processor():
    """Of an x86 also whether it has AVX-512, on which counting depends most."""
    found = get_host_cpu_features().get("avx512f")
    return processor() + ("" if found is None else " with AVX-512" if found else " without AVX-512")


def _versions():
    libraries = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    return ", ".join([interpreter, *libraries, *optional_peers.versions()[0]])
