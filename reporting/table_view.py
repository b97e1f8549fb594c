"""What is shown of a table on a page."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Drawing:
    """A static figure: title and caption in plain text, and the text of an SVG file."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class TableView:
    """A table and everything that a page shows of it.

    table: its entry in the settings, with name, families and styles; records: what
    `records.table_records` gives, with "training"; tidy: of `frames.tidy`; published: sources of published
    values; figures: name -> Drawing; statistics: of `statistics.comparisons`, or None; claims: of
    `claims.judge`; files: name -> text of what the page offers for download;
    health: of `health.frame`, or None.
    """

    table: Mapping
    records: list
    tidy: pd.DataFrame
    published: list
    figures: Mapping[str, Drawing]
    statistics: pd.DataFrame | None
    claims: list[Mapping]
    files: Mapping[str, str]
    health: pd.DataFrame | None = None
