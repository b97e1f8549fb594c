"""Scores as the page shows them: panels of cells, each with what is known of it in words."""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from reporting.page.table_view import TableView
from reporting.page.templates import equals, known, metric_words, signed
from reporting.printed.cells import Cell, Row
from reporting.printed.marks import as_published
from reporting.statistics import columns as statistics
from reporting.tables.model import Group, Source, Table
from reporting.tables.runs import AS_GIVEN, Results, ScoreCell
from reporting.tables.titles import EN_DASH, LEADERBOARD, UNCODED, family_title
from tiebench.paired import TOO_FEW

# What a mark of an open comparison says to a screen reader, by verdict.
OPEN_WORDS = {
    TOO_FEW: "too few runs to tell from the best",
    statistics.UNDECIDED: "not decided whether it is worse than the best",
}


def score_panels(view: TableView, id_: str) -> list[dict]:
    """The tables of the template, one for each panel. id_: of the view, for its notes."""
    table, printed, result = view.table, view.printed, []
    panels = table.panels()
    for number, (groups, methods) in enumerate(panels, 1):
        columns = [(group, bits) for group in groups for bits in group.bits]
        row = functools.partial(_row, view, columns, view.links if number == 1 else {})
        pieces = printed.rows(groups, methods)
        families = [
            {
                "title": (family_title(family) or "Other") if len(pieces) > 1 else "",
                "rows": [row(methods.index(of.method or ""), of) for of in rows],
            }
            for family, rows in pieces
        ]
        if uncoded := printed.uncoded(groups):
            families.append({"title": "", "rows": [row(len(methods), uncoded)]})
        # Of a table of one protocol, the heading of the page says which.
        titles = [
            ("" if group.title == table.heading else group.title, metric_words(group.metric))
            for group in groups
        ]
        result.append(
            {
                "notes": id_,
                "region": f"Scores of {table.heading}, part {number} of {len(panels)}",
                "caption": Markup("; ").join(
                    Markup("{1} on {0}").format(title, metric) if title else metric
                    for title, metric in titles
                ),
                "groups": [
                    (Markup(", ").join(filter(None, words)), len(group.bits))
                    for words, group in zip(titles, groups)
                ],
                # Code length, and whether the column is the first of its group.
                "columns": [(bits, bits == group.bits[0]) for group, bits in columns],
                "families": families,
            }
        )
    return result


def _row(view: TableView, columns: list[tuple[Group, int]], links: Mapping, place: int, of: Row) -> dict:
    """A row of the template's tables. links: method -> its page."""
    places = [group.cell(of.method or UNCODED, bits) for group, bits in columns]
    cells = [cell and _cell(view.table, view.results, at, cell) for at, cell in zip(places, of.cells)]
    name, link = Markup.escape(of.heading), links.get(of.method or "")
    if link:
        name = Markup('<a href="{}">{}</a>').format(link, name)
    return {
        "anchor": of.method if link else "",
        "id": of.method,
        "value": place,
        "name": name,
        "cells": cells,
    }


def _cell(table: Table, results: Results, place: ScoreCell, cell: Cell) -> dict:
    """A cell of the template's tables; `about` has what is known of it, a line for each thing."""
    about = []
    if cell.status == UNCODED:
        about.append(f"{cell.mean:.5f}, ranked by the features themselves: no code")
    elif cell.known:
        words = {"best": ", best of its column", "second": ", second of its column"}.get(cell.rank, "")
        seed_word = "seed" if cell.seeds == 1 else "seeds"
        about.append(f"Mean {cell.mean:.5f} over {cell.seeds} {seed_word}{words}")
    if cell.status == LEADERBOARD:
        about.append("From the leaderboard, not run here")
    if cell.collapsed:
        somewhere = " in some fold" if table.folds.get(place[0]) else ""
        about.append(f"Collapsed codes: {cell.collapsed} of {cell.seeds} seeds{somewhere}")
    if not math.isnan(cell.std):
        each = ", ".join(f"{score:.4f}" for score in results.scores(*place).values())
        about.append(f"Seeds {each}; standard deviation {cell.std:.4f}")
        about.append(f"95% Student interval over seeds {cell.ci_low:.4f} to {cell.ci_high:.4f}")
    about += _comparison_words(table, cell.comparison)
    if not math.isnan(cell.difference):
        about.append(f"{signed(cell.difference)} from the published value")
    if cell.known and cell.trials > 1:
        about.append(f"Hyper-parameters: the best of {cell.trials} trials ({cell.budget})")
    elif cell.known and cell.budget == AS_GIVEN:
        about.append("Hyper-parameters as given")
    if cell.reason:
        about.append(cell.reason)
    return {
        "value": repr(cell.mean) if cell.known else "",
        "mean": f"{cell.mean:.3f}" if cell.known else EN_DASH,
        "std": "" if math.isnan(cell.std) else f"{cell.std:.3f}",
        "published": as_published(cell.published),
        "mark": cell.rank,
        "open": cell.open if cell.known else "",
        "open_words": OPEN_WORDS.get(cell.comparison.verdict, "") if cell.comparison is not None else "",
        "note": cell.note,
        "collapsed": cell.collapsed > 0,
        "filled": cell.filled,
        "about": "\n".join(about),
    }


def _comparison_words(table: Table, row: Any) -> list[str]:
    """What the statistics say of a cell, in sentences. row: of `columns.comparisons`, or None."""
    if row is None:
        return []
    said = []
    if known(row.ci_low):
        said.append(f"95% bootstrap interval over queries {row.ci_low:.4f} to {row.ci_high:.4f}")
    if row.verdict not in ("", statistics.BEST):
        words = f"{signed(row.difference)} from the best ({table.method_title(row.best)})"
        if known(row.difference_low) and known(row.difference_high):
            words += f", interval {signed(row.difference_low)} to {signed(row.difference_high)}"
        if known(row.p_adjusted):
            words += f", adjusted p {equals(row.p_adjusted)}"
        said.append(f"{words}: {row.verdict}")
        if not pd.isna(row.seeds_needed):
            said.append(f"About {int(row.seeds_needed)} seeds of each would decide")
    return said


def sources(table: Table, shown: Iterable[ScoreCell]) -> list[Source]:
    """The papers whose scores stand in some of these cells, in the table's order."""
    used = {source for cell, (_, source, _) in table.published_values.items() if cell in shown}
    return [source for source in table.sources if source.source in used]
