"""Published tables of results as one HTML file that needs nothing else: no request, no other file."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from reporting.page.colours import lighter
from reporting.page.embedding import data_url, inline_svg, packed
from reporting.page.runs import shown_runs
from reporting.page.scores import score_panels, sources
from reporting.page.swatches import swatches
from reporting.page.table_view import Drawing, TableView
from reporting.page.templates import anchor, environment, subscripts
from reporting.printed import health
from reporting.printed.legend import remarks
from reporting.records.marked import collapsed_methods, filled_methods
from reporting.tables.model import Table, in_order
from reporting.tables.titles import COLLAPSED, FILLED
from tiebench.metrics import resolve

ASSETS = Path(__file__).parents[1] / "assets"
# Verdicts on claims, and outcomes of the comparisons that they rest on: never shown by colour alone.
SYMBOLS = {
    "reproduced": "✓",
    "not reproduced": "✗",
    "undecided": "?",
    "too few runs": "?",
    "for": "✓",
    "against": "✗",
    "open": "?",
}
# Characters of a file from which on a page holds it compressed.
LARGE_FILE = 20_000
RUN_FILES = ("run.json", "training.jsonl", "scores.json")


def page(views: Sequence[TableView], command: str = "") -> str:
    """The results of tables as one self-contained HTML document, of one table with its heading.

    command: what makes this page again.

    For each view the page holds the scores in the layout of the paper, published values beside them, claims
    with their verdicts, figures, missing results with their reasons, runs, versions and
    fingerprints, and its files as data: links. The same arguments give the same text, whatever the order of
    the records. Links to files of runs are relative to the folder `results`, where the page is meant to lie.

    Raises ValueError for two views of tables of one name, and whatever `Run.outcome` or `inline_svg` raise.
    """
    tables = [view.table.name for view in views]
    if twice := sorted({name for name in tables if tables.count(name) > 1}):
        raise ValueError(f"two tables of a page are named {twice[0]!r}")
    template = environment().get_template("page.html.j2")
    return template.render(
        title=views[0].table.heading if len(views) == 1 else "TieBench report",
        command=command,
        style=_asset("tables.css") + _asset("figures.css") + _asset("page.css"),
        script=_asset("sorting.js") + _asset("figures.js") + _asset("page.js"),
        **content(views),
    )


def content(views: Sequence[TableView]) -> dict:
    """What the templates show of tables, on a page of their own or on the site."""
    metrics = dict.fromkeys(group.metric for view in views for group in view.table.groups)
    methods = _methods(views)
    known = swatches(view.table for view in views)
    names = {method: known[method][0] for method in methods}
    for mark, of in ((COLLAPSED, collapsed_methods), (FILLED, filled_methods)):
        for method in set().union(*(of(view.table, view.results) for view in views)):
            names[method] += mark
    number = itertools.count()
    shown = [_view(view, number) for view in views]
    drawn = [drawing["svg"] for view in shown for drawing in view["figures"]]
    return {
        "views": shown,
        "methods": [{"id": method, "name": names[method], "swatch": known[method][1]} for method in methods],
        "bits": sorted({bits for view in views for group in view.table.groups for bits in group.bits}),
        "metrics": [_definition(metric) for metric in metrics],
        "health_columns": health.PRINTED,
        "symbols": SYMBOLS,
        "run_files": RUN_FILES,
        "lighter": lighter([*drawn, *(swatch for _, swatch in known.values())]),
    }


def _methods(views: Iterable[TableView]) -> list[str]:
    """Methods of all views, family after family as far as the tables say, otherwise as they first appear."""
    family_of: dict[str, str] = {}
    for view in views:
        for group in view.table.groups:
            for method in group.methods:
                family_of[method] = family_of.get(method) or view.table.family(method)
    return in_order(family_of, list(family_of), family_of)


def _view(view: TableView, number: Iterator[int]) -> dict:
    """Everything that the template shows of one table. number: of the next figure of the page."""
    table, printed = view.table, view.printed
    codes = health.rows(table, view.health)
    methods = list(dict.fromkeys(method for group in table.groups for method in group.methods))
    id_ = anchor(table.name)
    return {
        "id": id_,
        "name": table.name,
        "title": table.heading,
        "description": table.description.strip(),
        "seeds": table.seeds,
        "seed_counts": printed.seeds or max((cell.seeds for cell in printed.of.values()), default=0),
        "fewer_seeds": [
            (table.method_title(method), count)
            for method, count in table.fewer_seeds.items()
            if method in methods and count < len(table.seeds)
        ],
        "panels": score_panels(view, id_),
        "several": any(cell.seeds > 1 for cell in printed.of.values()),
        "legend": printed.signs,
        "decided": printed.decided,
        "notes": printed.notes,
        "sources": sources(table, printed.of),
        "remarks": remarks(table, printed.of),
        "downloads": [_download(name, text) for name, text in view.files.items()],
        "claims": view.claims,
        "health": codes,
        "collapsed": sum(row["collapsed"] != "" for row in codes),
        "figures": [
            _figure(view.table, name, drawing, next(number)) for name, drawing in view.figures.items()
        ],
    } | shown_runs(table, view.results)


def _definition(metric: str) -> dict:
    """What the table of metrics says of a metric."""
    entry, value = resolve(metric)
    return {
        "metric": metric,
        "description": entry.description.format(value),
        "source": entry.source,
        "has_range": entry.has_range,
        "without_relevant": None if entry.without_relevant is None else f"{entry.without_relevant:g}",
    }


def _asset(name: str) -> Markup:
    return Markup((ASSETS / name).read_text(encoding="utf-8"))


def _download(name: str, text: str) -> dict:
    """A file as it is, or compressed if it is large: tables of health have a row for every run."""
    if len(text) > LARGE_FILE:
        return {"name": f"{name}.gz", "href": f"data:application/gzip;base64,{packed(text)}"}
    return {"name": name, "href": data_url(name, text)}


def _figure(table: Table, name: str, drawing: Drawing, number: int) -> dict:
    return {
        "title": drawing.title,
        "caption": subscripts(drawing.caption),
        "svg": inline_svg(drawing.svg, f"{table.name}-{name}", drawing.title, f"f{number}"),
        "file": f"{name}_{table.name}.svg",
        "points": "data-values=" in drawing.svg,
    }
