"""A published table read back whole, its figures and its page, from the files in a folder of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from reporting import claims, figures, frames, health, layout, statistics
from reporting.records import ALSO, published_settings, table_records, uncoded_scores
from reporting.table_files import ENDINGS
from reporting.titles import UNCODED
from tiebench.files import reading_result
from tiebench.messages import one_line


@dataclass(frozen=True)
class Published:
    """What the workflow wrote of one table.

    table: its entry; settings: of `records.published_settings`; tidy: of `frames.tidy`; compared: of
    `statistics.comparisons`; judged: of `claims.judge`; health: of `health.frame`; files: name -> text, for
    each of ENDINGS.
    """

    table: Mapping
    settings: Mapping
    tidy: pd.DataFrame
    compared: pd.DataFrame
    judged: list[dict]
    health: pd.DataFrame
    files: Mapping[str, str]


def read(name: str, results: str | Path = "results") -> Published:
    """A published table by its name.

    Raises ValueError for an unknown table or a damaged file, OSError for one that cannot be read; one line
    that names the file.
    """
    settings = published_settings(name, results)
    paths = {ending: Path(results, f"{name}{ending}") for ending in ENDINGS}
    texts = {}
    for ending, path in paths.items():
        with reading_result(path):
            texts[ending] = path.read_text(encoding="utf-8")

    def parsed(ending, parse, *arguments):
        with reading_result(paths[ending]):
            try:
                return parse(texts[ending], *arguments)
            except (ValueError, KeyError, TypeError, IndexError) as error:
                what = f"{paths[ending]} is not what this version writes"
                raise ValueError(f"{what} ({one_line(error)})") from error

    return Published(
        table=settings["table"],
        settings=settings,
        tidy=parsed(".tidy.csv", frames.from_csv),
        compared=parsed(".statistics.csv", statistics.from_csv),
        judged=parsed(".claims.csv", claims.from_csv, settings["claims"]),
        health=parsed(".health.csv", health.from_csv),
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
    groups = layout.groups(table)
    cells = {(g.protocol, g.metric, m, b) for g in groups for m in (*g.methods, UNCODED) for b in g.bits}
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
    return figures.draw(kind, _with_uncoded(published, runs), records, **chosen)


def _with_uncoded(published: Published, runs: str | Path) -> dict:
    """The table with `uncoded_scores`, for the figures that show them."""
    found = uncoded_scores(published.settings, Path(runs).parent)
    return {**published.table, "uncoded_scores": found}


def view(
    published: Published,
    runs: str | Path = "results/runs",
    drawn: Mapping[str, str | Path] | None = None,
    gallery_file: str | Path | None = None,
):
    """What a page shows of a published table, a `table_view.TableView`; computes no number again.

    drawn: figure -> its SVG file; one that says that there is nothing to draw is left out. None: the figures
    are drawn from the runs. gallery_file: the SVG file of the gallery, its PNG file beside it, or None.

    Raises ValueError or OSError, naming the file, for one that is missing or damaged.
    """
    from reporting import drawing, embedding, gallery, table_view

    table = published.table
    records = table_records(published.settings, runs, also=ALSO if drawn is None else ["training"])
    if drawn is None:
        texts = _draw_all(_with_uncoded(published, runs), records)
    else:
        texts = {name: Path(path).read_text(encoding="utf-8") for name, path in drawn.items()}
    drawings = {}
    for name, svg in texts.items():
        if f'id="{drawing.NOTHING}"' not in svg:
            described = figures.describe(name)
            drawings[name] = table_view.Drawing(described.title, described.caption, svg)
    if gallery_file is not None:
        plain = Path(gallery_file)
        svg = embedding.smallest_svg(
            plain.read_text(encoding="utf-8"), plain.with_suffix(".png").read_bytes()
        )
        drawings["gallery"] = table_view.Drawing(gallery.TITLE, gallery.CAPTION, svg)
    return table_view.TableView(
        table=table,
        records=records,
        tidy=published.tidy,
        published=published.settings["published"],
        figures=drawings,
        statistics=published.compared,
        claims=published.judged,
        health=published.health,
        files=published.files,
    )


def _draw_all(table: Mapping, records: Sequence[Mapping]) -> dict[str, str]:
    """The figures that a table has something to draw for: name -> text of an SVG file."""
    from reporting import drawing
    from tiebench import figure_style

    texts = {}
    for name in figures.applicable(table):
        try:
            drawn = figures.draw(name, table, records, **figure_options(table, name))
        except drawing.NothingToDraw:  # say because all cells are refused
            continue
        texts[name] = figure_style.render(drawn, "svg").decode()
    return texts
