"""Figures of the leaderboard as PNG files of the documentation, which say what they were drawn from."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reporting import figures
from reporting.leaderboard import summary
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.settings import check_keys, listed
from reporting.tables.model import Table
from reporting.tables.runs import Results

KEYS = {
    "figure": str,
    "protocol": (str, list),
    "set": str,
    "costs": list,
    "metric": (str, list),
    "bits": (int, list),
    "methods": list,
    "without": list,
    "reference_lines": list,
}


@dataclass(frozen=True)
class Picture:
    """A figure of a page. source: what it is drawn from, as its file has it."""

    path: Path
    kind: str
    table: Table
    results: Results
    options: Mapping[str, Any]
    source: str

    def fault(self) -> str:
        """Why the file is not the figure that its page asks for; "" if it is. Pixels are not compared."""
        if not self.path.is_file():
            return f"{self.path} does not exist"
        if recorded(self.path) != self.source:
            return f"{self.path} was drawn from other scores or with other settings"
        return ""

    def write(self) -> None:
        """Draw the figure. Raises ValueError where there is nothing to draw."""
        from tiebench import figure_style

        figure = figures.draw(self.kind, self.table, self.results, **self.options)
        figure_style.save(figure, self.path, source=self.source)


def parse(figure: Mapping, image: str, folder: Path, boards: Boards) -> Picture:
    """The figure that a marker asks for. figure: its settings; image: its file, relative to the folder.

    Raises ValueError, one line with the nearest name, for settings that are unknown or do not fit.
    """
    check_keys(figure, KEYS, "a figure")
    if "set" not in figure and "protocol" not in figure:
        raise ValueError("a figure needs the key protocol")
    if not image.endswith(".png"):
        raise ValueError(f"image must be a .png file, not {image!r}")
    described = figures.describe(figure["figure"])
    needs = [*described.needs, *["trials"] * ("search" in figure.get("costs", ()))]
    source: dict[str, Any] = {"settings": dict(figure)}
    if "set" in figure:
        plan = summary.plan_of(boards)
        protocols = plan.tables(figure["set"])
        table, results = plan.model(figure["set"], boards, needs)
        source |= plan.source(figure["set"], boards)
    else:
        protocols = listed(figure["protocol"])
        table, results = _asked(figure, protocols, needs, boards)
    options = {"costs": figure["costs"]} if "costs" in figure else {}
    source |= {"sha256": boards.sha256(protocols, needs)}
    path, said = Path(os.path.normpath(folder / image)), json.dumps(source, sort_keys=True)
    return Picture(path, figure["figure"], table, results, options, said)


def _asked(
    settings: Mapping, protocols: Sequence[str], needs: Sequence[str], boards: Boards
) -> tuple[Table, Results]:
    """The table of the protocols, metrics and bits of a marker, and what was measured of it."""
    for name in protocols:
        if lacking := [part for part in needs if not boards.has(name, part)]:
            words = f"{' and '.join(lacking)} of runs, which the leaderboard of {name} does not have"
            raise ValueError(f"figure {settings['figure']} needs {words}")
    table, results = boards.asked(settings, needs)
    return replace(table, reference_lines=tuple(settings.get("reference_lines", ()))), results


def recorded(path: Path) -> str | None:
    """What a PNG file says that it was drawn from; None if it does not.

    Raises ValueError, one line, for a file that is no PNG.
    """
    from PIL import Image

    try:
        with Image.open(path) as image:
            return getattr(image, "text", {}).get("Source")
    except OSError as error:
        raise ValueError(f"{path} is not a PNG file; delete it, and it is drawn again") from error
