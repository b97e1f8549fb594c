"""What the printed forms of a table share: marks, notes, rounded values, and sentences that explain them."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from reporting.frames import rows_of
from reporting.records.collapsed import collapse_sentence
from reporting.records.filled import filled_sentence
from reporting.tables.budgets import budget_sentence
from reporting.tables.model import Table
from reporting.tables.runs import ScoreCell
from reporting.tables.titles import (
    BOUND,
    DAGGER,
    EARLIER,
    EXTERNAL,
    FAMILIES,
    LEADERBOARD,
    TRAINING_SET,
    UNCODED,
    UNCODED_TITLE,
)
from tiebench.metrics import resolve

# What the names of the ends of ranges over tie orders end in: they are no scores of their own.
RANGE = ("_min", "_max")
# Of rows that take no part in what is best and second.
NOT_RANKED = "; neither best nor second"


@dataclass(frozen=True)
class Note:
    """Why cells have no score, or not from every seed: its mark, the cells in words, the reason."""

    mark: str
    cells: str
    reason: str


def places(tidy_frame: pd.DataFrame, table: Table) -> dict[ScoreCell, int]:
    """Cell -> its place within its column (protocol, metric, bits), from 1, by unrounded means.

    Higher is better unless the metric says otherwise. Equal means share a place. Uncoded features, bounds and
    methods that see more than the training set take no part, and ends of ranges have no places.
    """
    result: dict[ScoreCell, int] = {}
    for (protocol, metric, bits), column in tidy_frame.groupby(["protocol", "metric", "bits"], sort=False):
        if not metric.endswith(RANGE):
            apart = [
                name for name in column["method"] if name == UNCODED or not table.competes(name, protocol)
            ]
            scored = column[column["mean"].notna() & ~column["method"].isin(apart)]
            order = scored["mean"].rank(method="min", ascending=not resolve(metric)[0].higher_is_better)
            for method, place in zip(scored["method"], order, strict=True):
                result[protocol, metric, method, bits] = int(place)
    return result


def marks(found: Mapping[ScoreCell, int]) -> dict[ScoreCell, str]:
    """Cell -> "best" or "second" within its column. found: of `places`.

    Equal means share a mark; the second is the next worse value. A column with fewer than two places has no
    marks.
    """
    columns: dict[tuple, dict[ScoreCell, int]] = {}
    for cell, place in found.items():
        columns.setdefault((cell[0], cell[1], cell[3]), {})[cell] = place
    result: dict[ScoreCell, str] = {}
    for column in columns.values():
        if len(column) > 1:
            words = dict(zip(sorted(set(column.values())), ("best", "second")))
            result |= {cell: words[place] for cell, place in column.items() if place in words}
    return result


def notes(tidy_frame: pd.DataFrame, table: Table) -> tuple[list[Note], dict[tuple, str]]:
    """Notes for cells whose status is not "done", one per reason, and cell -> mark ("a", "b", ...)."""
    titles = {(group.protocol, group.metric): group.title for group in table.groups}
    cells_of: dict[str, dict[tuple, list[int]]] = {}
    mark_of = {}
    for protocol, metric, method, bits, status, reason in rows_of(tidy_frame, "status", "reason"):
        if status not in ("done", UNCODED, LEADERBOARD) and not metric.endswith(RANGE):
            mark_of[protocol, metric, method, bits] = reason
            cells_of.setdefault(reason, {}).setdefault((protocol, metric, method), []).append(bits)
    letter = {reason: _letters(index) for index, reason in enumerate(cells_of)}
    result = []
    for reason, cells in cells_of.items():
        words = [
            f"{table.method_title(method)} on {titles[protocol, metric]} ({', '.join(map(str, bits))} bits)"
            for (protocol, metric, method), bits in cells.items()
        ]
        # Blocks of several metrics may have one title.
        result.append(Note(letter[reason], "; ".join(dict.fromkeys(words)), reason))
    return result, {cell: letter[reason] for cell, reason in mark_of.items()}


def _letters(index: int) -> str:
    text = ""
    index += 1
    while index:
        index, rest = divmod(index - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def as_published(value: float) -> str:
    """A published value with at least three decimals, more where it has them; "" for NaN."""
    return "" if math.isnan(value) else f"{value:.{max(3, len(repr(value).partition('.')[2]))}f}"


def legend(tidy_frame: pd.DataFrame, table: Table, statistics: str = "") -> str:
    """What marks and small figures of a printed table mean, in sentences.

    statistics: what the marks of `statistics.cell_marks` mean, from `statistics.marks_legend`.
    """
    words = ["Best in bold, second underlined.", seeds_sentence(tidy_frame), signs_legend(tidy_frame, table)]
    if table.print_published and tidy_frame["published"].notna().any():
        words.append("In parentheses: as published.")
    return " ".join(filter(None, [*words, statistics]))


def signs_legend(tidy_frame: pd.DataFrame, table: Table) -> str:
    """What the marks of rows and of cells mean, in sentences."""
    methods = tidy_frame.loc[tidy_frame["status"] != UNCODED, "method"]
    words = [dagger_sentence(table, methods, NOT_RANKED), external_sentence(table, methods)]
    words += [earlier_sentence(table, methods), uncoded_sentence(tidy_frame)]
    words += [bounds_sentence(tidy_frame, table), collapse_sentence(tidy_frame, table)]
    words += [filled_sentence(tidy_frame), taken_sentence(table), budget_sentence(tidy_frame, table)]
    return " ".join(filter(None, words))


def taken_sentence(table: Table) -> str:
    """Whose runs made the codes of protocols that train nothing; "" where there are none."""
    titles: dict[str, list[str]] = {}
    for name, settings in table.settings.items():
        if settings.codes_of is not None:
            titles.setdefault(table.protocol_title(settings.codes_of), []).append(table.protocol_title(name))
    return " ".join(
        f"Codes on {', '.join(names)} are those of the runs on {other}, and so are their settings and costs."
        for other, names in titles.items()
    )


def external_sentence(table: Table, methods: Iterable[str]) -> str:
    """What the pilcrow means, one sentence; "" where none of the methods has one."""
    if not any(table.is_external(method) for method in methods):
        return ""
    return (
        f"{EXTERNAL} Codes of another program, checked against the split and scored here; nothing shows what "
        "they were learned from, or how settings were chosen."
    )


def dagger_sentence(table: Table, methods: Iterable[str], ranked: str = "") -> str:
    """What the dagger means, one sentence; "" where none of the methods has one.

    ranked: what follows on how the methods are marked, as "; neither best nor second".
    """
    more = sorted({table.sees(method) for method in methods} - {TRAINING_SET})
    shown = ", ".join(table.protocol_title(name) for name in table.settings if not table.is_unseen(name))
    only = f", only on {shown}" if shown and any(map(table.is_unseen, table.settings)) else ""
    return f"{DAGGER} Learns from {' or '.join(more)} besides the training set{only}{ranked}." if more else ""


def earlier_sentence(table: Table, methods: Iterable[str]) -> str:
    """What the two bars mean, for the methods that have them; "" where none has."""
    titles: dict[str, list[str]] = {}
    for method in dict.fromkeys(methods):
        if differs := table.style(method).earlier:
            titles.setdefault(differs, []).append(table.method_title(method))
    named = "; ".join(f"{', '.join(of)}: {differs}" for differs, of in titles.items())
    return f"{EARLIER} Run with an earlier implementation ({named})." if named else ""


def uncoded_sentence(tidy_frame: pd.DataFrame, ranked: str = NOT_RANKED) -> str:
    """What the row of the features themselves is; "" for a table without it."""
    if not (tidy_frame["status"] == UNCODED).any():
        return ""
    return f"{UNCODED_TITLE}: ranked by the features themselves, no code{ranked}."


def bounds_sentence(tidy_frame: pd.DataFrame, table: Table, ranked: str = NOT_RANKED) -> str:
    """What baselines are; "" for a table without any."""
    if all(table.family(method) != BOUND for method in tidy_frame["method"]):
        return ""
    return f"{FAMILIES[BOUND]}: codes of a linear classifier trained on the same features{ranked}."


def seeds_sentence(tidy_frame: pd.DataFrame) -> str:
    """What follows a mean, in words; "" where every cell has one seed at most."""
    if not (tidy_frame["seeds"] > 1).any():
        return ""
    return f"Mean ± standard deviation over {seed_counts(tidy_frame)}seeds."


def seed_counts(tidy_frame: pd.DataFrame) -> str:
    """How many seeds the scored cells have, "5 to 10 ", "" where all have as many."""
    counts = sorted(set(tidy_frame.loc[tidy_frame["seeds"] > 0, "seeds"]))
    return f"{counts[0]} to {counts[-1]} " if len(counts) > 1 else ""
