"""Scores as the page shows them: panels of cells, each with what is known of it in words."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from reporting import statistics
from reporting.budgets import AS_GIVEN
from reporting.filled import FILLED, filled_marks
from reporting.frames import by_cell, score_of, uncoded_in
from reporting.layout import by_family, panels
from reporting.page_words import equals, known, signed
from reporting.printing import as_published, marks
from reporting.table_view import TableView
from reporting.titles import (
    EN_DASH,
    LEADERBOARD,
    UNCODED,
    UNCODED_TITLE,
    family_title,
    method_title,
    row_title,
)

# What a mark of an open comparison says to a screen reader, by verdict.
OPEN_WORDS = {
    statistics.WORSE_OVER_QUERIES: "too few seeds to tell from the best",
    statistics.WORSE_OVER_SEEDS: "too few queries to tell from the best",
    statistics.UNDECIDED: "not decided whether it is worse than the best",
}


def score_panels(view: TableView, note_of: Mapping, compared: Mapping, open_marks: Mapping) -> list[dict]:
    """Panels as {"groups", "columns": [{bits, edge}], "families": [{"title", "rows"}]}."""
    table, tidy_frame = view.table, view.tidy
    cells = {
        (row["protocol"], row["metric"], row["method"], row["bits"]): row
        for row in tidy_frame.to_dict(orient="records")
    }
    mark = marks(tidy_frame, table)
    whole, marked = filled_marks(tidy_frame)
    found = by_cell(table, view.records)
    result = []
    for panel in panels(table):
        columns = [(group, bits) for group in panel.groups for bits in group.bits]
        pieces = by_family(table, panel.methods)
        families = []
        for of, methods in pieces:
            rows = []
            for method in methods:
                row = []
                for group, bits in columns:
                    cell = (group.protocol, group.metric, method, bits)
                    runs = found.get((group.protocol, method, bits), {})
                    seeds = {seed: score_of(record, group.metric)[0] for seed, record in runs.items()}
                    about = (
                        mark.get(cell, ""),
                        note_of.get(cell, ""),
                        compared.get(cell),
                        open_marks.get(cell),
                    )
                    row.append(_cell(table, cells.get(cell), seeds, *about, filled=cell in marked))
                index = panel.methods.index(method)
                name = row_title(table, method) + FILLED * (method in whole)
                rows.append({"index": index, "name": name, "id": method, "cells": row})
            title = (family_title(of) or "Other") if len(pieces) > 1 else ""
            families.append({"title": title, "rows": rows})
        if uncoded_in(tidy_frame, panel.groups):
            row = []
            for group, bits in columns:
                found_cell = cells.get((group.protocol, group.metric, UNCODED, bits))
                row.append(_cell(table, found_cell, {}, "", "", None, None))
            row = {"index": len(panel.methods), "name": UNCODED_TITLE, "id": None, "cells": row}
            families.append({"title": "", "rows": [row]})
        result.append(
            {
                "groups": panel.groups,
                "columns": [
                    {"bits": bits, "edge": index == 0 or group is not columns[index - 1][0]}
                    for index, (group, bits) in enumerate(columns)
                ],
                "families": families,
            }
        )
    return result


def _cell(
    table: Mapping,
    row: Mapping | None,
    seeds: Mapping,
    mark: str,
    note: str,
    comparison: Mapping | None,
    open_mark: str | None,
    filled: bool = False,
) -> dict | None:
    """A cell of scores for the template; `about` has what is known of it, a line for each thing."""
    if row is None:
        return None
    hole = math.isnan(row["mean"])
    about = []
    if row["status"] == UNCODED:
        about.append(f"{row['mean']:.5f}, ranked by the features themselves: no code")
    elif not hole:
        words = {"best": ", best of its column", "second": ", second of its column"}.get(mark, "")
        seed_word = "seed" if row["seeds"] == 1 else "seeds"
        about.append(f"Mean {row['mean']:.5f} over {row['seeds']} {seed_word}{words}")
    if row["status"] == LEADERBOARD:
        about.append("From the leaderboard, not run here")
    if row["collapsed"]:
        about.append(f"Collapsed codes: {row['collapsed']} of {row['seeds']} runs")
    if not math.isnan(row["std"]):
        each = ", ".join(f"{score:.4f}" for score in seeds.values() if score is not None)
        about.append(f"Seeds {each}; standard deviation {row['std']:.4f}")
        about.append(f"95% Student interval over seeds {row['ci_low']:.4f} to {row['ci_high']:.4f}")
    about += _comparison_words(table, comparison)
    if not math.isnan(row["difference"]):
        about.append(f"{signed(row['difference'])} from the published value")
    if not hole and row["trials"] > 1:
        about.append(f"Hyper-parameters: the best of {row['trials']} trials ({row['budget']})")
    elif not hole and row["budget"] == AS_GIVEN:
        about.append("Hyper-parameters as given")
    if row["reason"]:
        about.append(row["reason"])
    return {
        "value": "" if hole else repr(row["mean"]),
        "mean": EN_DASH if hole else f"{row['mean']:.3f}",
        "std": "" if math.isnan(row["std"]) else f"{row['std']:.3f}",
        "published": as_published(row["published"]),
        "mark": mark,
        "open": "" if hole else open_mark or "",
        "open_words": OPEN_WORDS.get(comparison["verdict"], "not decided") if comparison is not None else "",
        "note": note,
        "collapsed": row["collapsed"] > 0,
        "filled": filled,
        "about": "\n".join(about),
    }


def statistics_of(view: TableView) -> pd.DataFrame:
    """The rows of `view.statistics` that are of this table."""
    if view.statistics is None:
        return pd.DataFrame()
    return view.statistics[view.statistics["table"] == view.table["name"]]


def _comparison_words(table: Mapping, comparison: Mapping | None) -> list[str]:
    """What the statistics say of a cell, in sentences."""
    if comparison is None:
        return []
    said = []
    if known(comparison["ci_low"]) and known(comparison["ci_high"]):
        said.append(
            f"95% bootstrap interval over queries {comparison['ci_low']:.4f} to {comparison['ci_high']:.4f}"
        )
    if comparison["verdict"] not in ("", "best") and known(comparison["difference"]):
        words = f"{signed(comparison['difference'])} from the best"
        if comparison.get("best"):
            words += (
                f" ({method_title(table, comparison['best'])})" if isinstance(comparison["best"], str) else ""
            )
        if known(comparison["difference_low"]) and known(comparison["difference_high"]):
            low, high = signed(comparison["difference_low"]), signed(comparison["difference_high"])
            words += f", interval {low} to {high}"
        if known(comparison["p_adjusted"]):
            words += f", adjusted p {equals(comparison['p_adjusted'])}"
        said.append(f"{words}: {comparison['verdict']}")
        if comparison["over_seeds"] == statistics.TOO_FEW and comparison["verdict"] != statistics.WORSE:
            counted = not pd.isna(comparison["seeds_needed"])
            needed = f": about {int(comparison['seeds_needed'])} would decide" if counted else ""
            said.append(f"{comparison['over_seeds'].capitalize()} to decide over seeds{needed}")
    return said


def sources(table: Mapping, published: Iterable[Mapping], printed: Mapping, shown: set) -> list[dict]:
    used = {source for cell, (_, source, _) in printed.items() if cell in shown}
    by_name = {source["source"]: source for source in published}
    return [by_name[name] for name in table.get("published") or [] if name in used]


def remarks(table: Mapping, printed: Mapping, shown: set) -> list[tuple[str, str]]:
    """(methods, note) for the notes that published values on the page carry."""
    methods_of: dict[str, dict[str, None]] = {}
    for cell, (_, _, note) in printed.items():
        if note and cell in shown:
            methods_of.setdefault(note, {})[method_title(table, cell[2])] = None
    return [(", ".join(methods), note) for note, methods in methods_of.items()]
