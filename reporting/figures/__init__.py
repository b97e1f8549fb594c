"""Figures of a table, one file each: `<name>.py` here draws `results/figures/<name>_<table>.pdf`.

A file is found by itself. It defines

* `TITLE`, `CAPTION`: plain text for the page that shows the figure (AP_T and NDCG_T get subscripts);
* `NEEDS` (optional): what it reads of the runs besides scores and curves, some of "training", "per_query";
* `REQUIRES` (optional): which tables it applies to, see `applicable`;
* `draw(table, results, options)`: a matplotlib Figure.

TITLE, CAPTION, NEEDS and REQUIRES are literals: they are read without importing the file, so nothing here
loads matplotlib until something is drawn.
"""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reporting.drawing.options import Options
from reporting.records.marked import collapsed_methods, filled_methods
from reporting.tables.model import Table
from reporting.tables.runs import Results
from reporting.tables.titles import COLLAPSED, FILLED
from tiebench.discovery import Kind
from tiebench.messages import did_you_mean
from tiebench.metrics import ORDERS, ranking_of, resolve

KIND = Kind(
    "figure",
    __name__,
    Path(__file__).parent,
    {"title": str, "caption": str, "needs": (), "requires": {}},
    ("draw",),
)
RECORD_PARTS = ("training", "per_query")
REQUIREMENTS = ("metrics", "ranges", "methods", "columns", "protocols", "unseen", "training_sizes", "orders")


def names() -> list[str]:
    """Names of all figures, sorted."""
    return list(KIND.find())


def describe(name: str) -> SimpleNamespace:
    """What the file of the figure `name` says of it: title, caption, needs, requires. Does not import it.

    Raises ValueError for an unknown name, and for a file that lacks a literal or has one that is wrong.
    """
    figure = KIND.named(name)
    for key, known in (("needs", RECORD_PARTS), ("requires", REQUIREMENTS)):
        for value in getattr(figure.said, key):
            if value not in known:
                end = did_you_mean(value, known)
                raise ValueError(f"{figure.path}: {key.upper()} has an unknown entry {value!r}{end}")
    return figure.said


def applicable(table: Table) -> list[str]:
    """Names of the figures that a table has something to draw for, sorted. Imports no figure.

    A figure's REQUIRES may ask for: "metrics", a block with one of these metrics; "ranges", a block with a
    metric that has a range over the orders of ties; "columns", at least so many columns (protocol, metric
    and bits) in the table; "protocols", of at least so many protocols, and no metric of which less is
    better, as these figures average over metrics; "methods", at least so many methods
    that stand in all of its columns; "unseen", a block of seen and one of unseen classes; "training_sizes",
    at least so many sizes of training sets, see `Table.training_sizes`; "orders", a block of a metric in an
    order of tied items. A table without blocks has no figures.
    """
    columns: dict[tuple, set] = {}
    for group in table.groups:
        for bits in group.bits:
            columns.setdefault((group.protocol, group.metric, bits), set()).update(group.methods)
    if not columns:
        return []
    protocols, metrics, _ = map(set, zip(*columns))
    higher = all(resolve(metric)[0].higher_is_better for metric in metrics)
    rankings = [ranking for metric in metrics if (ranking := ranking_of(metric)[0])]
    suits: dict[str, Callable[[Any], bool]] = {
        "metrics": lambda some: not metrics.isdisjoint(some),
        "ranges": lambda _: any(map(has_range, metrics)),
        "columns": lambda least: len(columns) >= least,
        "protocols": lambda least: len(protocols) >= least and higher,
        "methods": lambda least: len(set.intersection(*columns.values())) >= least,
        "unseen": lambda _: len(set(map(table.is_unseen, protocols))) == 2,
        "training_sizes": lambda least: len(set(table.training_sizes().values())) >= least,
        "orders": lambda _: any(ranking.kind in ORDERS for ranking in rankings),
    }
    return [
        name for name in names() if all(suits[key](asked) for key, asked in describe(name).requires.items())
    ]


def has_range(metric: str) -> bool:
    """Whether runs have scores of a metric in the worst and in the best order of ties."""
    return ranking_of(metric)[0] is None and resolve(metric)[0].has_range


def check_options(kind: str, names: Iterable[str]) -> None:
    """Raise ValueError, with the nearest name, for an option that a figure does not have, besides what it
    draws of the table."""
    known = [
        entry.name
        for entry in fields(Options)
        if not entry.metadata.get("internal") and entry.metadata.get("figure", kind) == kind
    ]
    for name in names:
        if name not in known:
            end = did_you_mean(name, [*known, "methods", "blocks"])
            raise ValueError(f"figure {kind}: unknown option {name!r}{end}")


def draw(kind: str, table: Table, results: Results, **options):
    """The figure `kind` of a table as a matplotlib Figure.

    options: methods and blocks, what to draw of the table, see `Table.only`, and fields of `Options` (width,
    font_size, title, and `costs` of the figure of costs); they replace those of the table's configuration.
    results: of runs with what the figure's NEEDS says.

    Raises ValueError for an unknown figure, option, method or block, and `NothingToDraw`, a
    ValueError, where the runs have nothing that the figure shows.
    """
    describe(kind)
    options = {**(table.figures.get(kind) or {}), **options}
    methods, blocks = options.pop("methods", None), options.pop("blocks", None)
    check_options(kind, options)
    chosen = Options(**options)
    from reporting.drawing.axes import draw_scaled
    from reporting.drawing.method_styles import method_styles

    module = KIND.named(kind).load()
    part = replace(table, styles=method_styles(table)).only(methods, blocks)
    # Marks are added to titles here, once for all figures, and their notes to the heading.
    if found := collapsed_methods(part, results):
        part = _marked(part, found, COLLAPSED)
        cells = (f"{table.method_title(m)} at {', '.join(map(str, bits))} bits" for m, bits in found.items())
        chosen = replace(chosen, note=f"{COLLAPSED} Collapsed codes: {'; '.join(cells)}.")
    if filled := filled_methods(part, results):
        part = _marked(part, filled, FILLED)
        chosen = replace(chosen, note=f"{chosen.note} {FILLED} From the leaderboard.".strip())
    return draw_scaled(module.draw, part, results, chosen)


def _marked(table: Table, methods: Iterable[str], mark: str) -> Table:
    """A table whose titles of some methods end in a mark."""
    styles = {
        method: replace(table.style(method), title=table.method_title(method) + mark) for method in methods
    }
    return replace(table, styles={**table.styles, **styles})
