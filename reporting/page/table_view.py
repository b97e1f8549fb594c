"""What is shown of a table on a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from reporting.printed.cells import Cells
from reporting.tables.model import Table
from reporting.tables.runs import Results


@dataclass(frozen=True)
class Drawing:
    """A static figure: title and caption in plain text, and the text of an SVG file."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class TableView:
    """A table and everything that a page shows of it.

    results: of runs with "training"; printed: its cells, marks and notes; figures: name -> Drawing; claims:
    of `verdicts.judge`; files: name -> text of what the page offers for download; health: of `health.frame`,
    or None; links: method -> address of what its first row leads to, which then has its name as id.
    """

    table: Table
    results: Results
    printed: Cells
    figures: Mapping[str, Drawing]
    claims: Sequence[Mapping]
    files: Mapping[str, str]
    health: pd.DataFrame | None = None
    links: Mapping[str, str] = field(default_factory=dict)
