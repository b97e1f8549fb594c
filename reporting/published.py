"""A published table read back whole, its figures and its page, from the files in a folder of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from reporting import average_ranks, claims, figures, frames, statistics
from reporting.records import ALSO, published_settings, table_records
from reporting.table_files import ENDINGS


@dataclass(frozen=True)
class Published:
    """What the workflow wrote of one table.

    table: its entry; settings: of `records.published_settings`; tidy: of `frames.tidy`; compared: of
    `statistics.comparisons`; judged: of `claims.judge`; files: name -> text, for each of ENDINGS.
    """

    table: Mapping
    settings: Mapping
    tidy: pd.DataFrame
    compared: pd.DataFrame
    judged: list[dict]
    files: Mapping[str, str]


def read(name: str, results: str | Path = "results") -> Published:
    """A published table by its name.

    Raises ValueError for an unknown table or a damaged file, OSError for one that cannot be read; one line
    that names the file.
    """
    settings = published_settings(name, results)
    paths = {ending: Path(results, f"{name}{ending}") for ending in ENDINGS}
    texts = {ending: path.read_text(encoding="utf-8") for ending, path in paths.items()}

    def parsed(ending, parse, *arguments):
        try:
            return parse(texts[ending], *arguments)
        except (ValueError, KeyError) as error:
            raise ValueError(
                f"{paths[ending]} is not what this version writes ({error}); delete it to regenerate it"
            ) from error

    return Published(
        table=settings["table"],
        settings=settings,
        tidy=parsed(".tidy.csv", frames.from_csv),
        compared=parsed(".statistics.csv", statistics.from_csv),
        judged=parsed(".claims.csv", claims.from_csv, settings["claims"]),
        files={f"{name}{ending}": text for ending, text in texts.items()},
    )


def select(
    published: Published,
    methods: Sequence[str] | None = None,
    blocks: Sequence[str] | None = None,
    runs: str | Path = "results/runs",
) -> tuple[Mapping, pd.DataFrame, pd.DataFrame]:
    """A part of a table as (table, tidy, compared): these methods and blocks, None for all.

    methods, blocks: as of `figures.select`. Fewer methods have another best and other corrections, so with
    `methods` the comparisons are computed again from the runs.
    """
    if methods is None and blocks is None:
        return published.table, published.tidy, published.compared
    table = figures.select(published.table, methods, blocks)
    groups = frames.groups(table)
    cells = {(g.protocol, g.metric, m, b) for g in groups for m in g.methods for b in g.bits}
    kept = [_of(frame, cells) for frame in (published.tidy, published.compared)]
    if methods is not None:
        records = table_records(published.settings | {"table": table}, runs, also=["per_query"])
        kept[1] = statistics.comparisons(table, records)
    return table, *kept


def _of(frame: pd.DataFrame, cells: set) -> pd.DataFrame:
    rows = frame[["protocol", "metric", "method", "bits"]].itertuples(index=False, name=None)
    return frame[[row in cells for row in rows]].reset_index(drop=True)


# -- figures and page -----------------------------------------------------------------------------


def figure_options(table: Mapping, kind: str) -> dict:
    """Options of `figures.draw` that a table's configuration gives a figure, `table["figures"][kind]`.

    `title: none` and `title: false` both leave the title out.
    """
    options = dict((table.get("figures") or {}).get(kind) or {})
    if options.get("title") == "none":
        options["title"] = False
    return options


def figure(published: Published, kind: str, runs: str | Path = "results/runs", **options):
    """A figure of a published table as a matplotlib Figure; options replace those of the configuration.

    Raises ValueError as `figures.draw` does.
    """
    records = table_records(published.settings, runs, also=figures.describe(kind).needs)
    chosen = figure_options(published.table, kind) | options
    return figures.draw(kind, published.table, records, **chosen)


def view(published: Published, runs: str | Path = "results/runs"):
    """Everything of a published table that stands on a page, as `page.TableView`.

    Figures are drawn again, for a page has them in a form that its script can filter; numbers are not
    computed again.
    """
    from reporting import drawing, page

    table = published.table
    records = table_records(published.settings, runs, also=ALSO)
    drawn = {}
    for name in figures.applicable(table):
        try:
            svg = drawing.render(figures.draw(name, table, records, **figure_options(table, name)), "svg")
        except drawing.NothingToDraw:  # say because all cells are refused
            continue
        described = figures.describe(name)
        drawn[name] = page.Drawing(described.title, described.caption, svg.decode())
    return page.TableView(
        table=table,
        records=records,
        tidy=published.tidy,
        published=published.settings["published"],
        figures=drawn,
        statistics=published.compared,
        ranks=average_ranks.ranks(table, records),
        claims=published.judged,
        files=published.files,
    )
