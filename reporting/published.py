"""A published table read back whole, its figures and its page, from the files in a folder of results."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from reporting import figures, frames
from reporting.claims import verdicts
from reporting.frames import rows_of
from reporting.printed import health
from reporting.printed.table_files import ENDINGS
from reporting.records.read import published_table, table_results
from reporting.statistics import columns
from reporting.tables.model import Table
from reporting.tables.runs import Results
from reporting.tables.titles import UNCODED
from tiebench.files import reading_result
from tiebench.messages import one_line

if TYPE_CHECKING:
    from reporting.page.table_view import TableView


@dataclass(frozen=True)
class Published:
    """What the workflow wrote of one table.

    tidy: of `frames.tidy`; compared: of `columns.comparisons`; judged: of `verdicts.judge`; health: of
    `health.frame`; files: name -> text, for each of ENDINGS; folder: that all of it is in.
    """

    table: Table
    tidy: pd.DataFrame
    compared: pd.DataFrame
    judged: list[dict]
    health: pd.DataFrame
    files: Mapping[str, str]
    folder: Path

    def results(self, also: Iterable[str] = ()) -> Results:
        """What was measured, from the runs in the folder; also: as of `read.table_runs`.

        Raises ValueError for runs that another table has made again with other settings: tables of a protocol
        share its runs.
        """
        found = table_results(self.table, self.folder, also)
        for protocol, metric, method, bits, mean in rows_of(self.tidy, "mean"):
            scores = found.scores(protocol, metric, method, bits)
            # Files have all digits, or those that a reader needs.
            if scores and not math.isclose(statistics.fmean(scores.values()), mean, rel_tol=1e-6):
                place = self.folder / "runs" / protocol / method / str(bits)
                raise ValueError(
                    f"{place}: these runs are not those of {self.table.name}.tidy.csv; make the table again, "
                    "and give other settings of a method a variant of their own"
                )
        return found


def read(name: str, results: str | Path = "results") -> Published:
    """A published table by its name.

    Raises ValueError for an unknown table or a damaged file, OSError for one that cannot be read; one line
    that names the file.
    """
    table = published_table(name, results)
    parsers: dict[str, tuple[str, Callable[[str], Any]]] = {
        ".tidy.csv": ("tidy", frames.from_csv),
        ".statistics.csv": ("compared", lambda text: frames.from_csv(text, columns.KINDS)),
        ".claims.csv": ("judged", lambda text: verdicts.from_csv(text, table.claims)),
        ".health.csv": ("health", lambda text: frames.from_csv(text, health.KINDS)),
    }
    files: dict[str, str] = {}
    parsed: dict[str, Any] = {}
    for ending in ENDINGS:
        path = Path(results, f"{name}{ending}")
        with reading_result(path):
            text = files[path.name] = path.read_text(encoding="utf-8")
            try:
                if ending in parsers:
                    field, parse = parsers[ending]
                    parsed[field] = parse(text)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise ValueError(f"{path} is not what this version writes ({one_line(error)})") from error
    return Published(table=table, files=files, folder=Path(results), **parsed)


def select(
    published: Published, methods: Sequence[str] | None = None, blocks: Sequence[str] | None = None
) -> tuple[Table, pd.DataFrame, pd.DataFrame]:
    """A part of a table as (table, tidy, compared): these methods and blocks, None for all.

    methods, blocks: as of `Table.only`. Fewer methods have another best and other corrections, so with
    `methods` the comparisons are computed again from the runs.
    """
    if methods is None and blocks is None:
        return published.table, published.tidy, published.compared
    table = published.table.only(methods, blocks)
    cells = {
        group.cell(m, b) for group in table.groups for m in (*group.methods, UNCODED) for b in group.bits
    }
    tidy, compared = _of(published.tidy, cells), _of(published.compared, cells)
    if methods is not None:
        compared = columns.comparisons(table, published.results(["per_query"]))
    return table, tidy, compared


def _of(frame: pd.DataFrame, cells: set) -> pd.DataFrame:
    return frame[[row in cells for row in rows_of(frame)]].reset_index(drop=True)


def view(
    published: Published,
    drawn: Mapping[str, str | Path] | None = None,
    gallery_file: str | Path | None = None,
) -> "TableView":
    """What a page shows of a published table, a `table_view.TableView`; computes no number again.

    drawn: figure -> its SVG file; one that says that there is nothing to draw is left out. None: the figures
    are drawn from the runs. gallery_file: the SVG file of the gallery, its PNG file beside it, or None.

    Raises ValueError or OSError, naming the file, for one that is missing or damaged.
    """
    from reporting.drawing import axes
    from reporting.page import embedding, gallery, table_view
    from reporting.printed.cells import cells

    results = published.results(figures.RECORD_PARTS if drawn is None else ["training"])
    if drawn is None:
        texts = _draw_all(published.table, results)
    else:
        texts = {name: Path(path).read_text(encoding="utf-8") for name, path in drawn.items()}
    drawings = {}
    for name, svg in texts.items():
        if f'id="{axes.NOTHING}"' not in svg:
            described = figures.describe(name)
            drawings[name] = table_view.Drawing(described.title, described.caption, svg)
    if gallery_file is not None:
        plain = Path(gallery_file)
        svg = embedding.smallest_svg(
            plain.read_text(encoding="utf-8"), plain.with_suffix(".png").read_bytes()
        )
        drawings["gallery"] = table_view.Drawing(gallery.TITLE, gallery.CAPTION, svg)
    return table_view.TableView(
        table=published.table,
        results=results,
        printed=cells(published.tidy, published.table, published.compared),
        figures=drawings,
        claims=published.judged,
        health=published.health,
        files=published.files,
    )


def _draw_all(table: Table, results: Results) -> dict[str, str]:
    """The figures that a table has something to draw for: name -> text of an SVG file."""
    from reporting.drawing import axes as axes
    from tiebench import figure_style

    texts = {}
    for name in figures.applicable(table):
        try:
            drawn = figures.draw(name, table, results)
        except axes.NothingToDraw:  # say because all cells are refused
            continue
        texts[name] = figure_style.render(drawn, "svg").decode()
    return texts
