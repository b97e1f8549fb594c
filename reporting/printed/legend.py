"""What marks and small figures of a table mean, in sentences."""

import re
from collections.abc import Iterable

import pandas as pd

from reporting.frames import filled_marks, rows_of
from reporting.tables.model import Table
from reporting.tables.runs import AS_GIVEN, NOTHING_TO_CHOOSE, ScoreCell
from reporting.tables.titles import (
    BOUND,
    COLLAPSED,
    DAGGER,
    EARLIER,
    EXTERNAL,
    FAMILIES,
    FILLED,
    LEADERBOARD,
    TRAINING_SET,
    UNCODED,
    UNCODED_TITLE,
)

# Of rows that take no part in what is best and second.
NOT_RANKED = "; neither best nor second"
# What `workflow.configuration.hyperparameters.budget_words` writes, and published files have.
RULE = re.compile(
    r"(?P<trials>\d+) trials(?P<candidates>, the given ones)?(?: and up to (?P<more>\d+) more)?"
    r"(?:, on (?P<parts>[\d/]+) parts?)?(?P<again>(?:, the best \d+ again on \d+%)*)"
    r"(?:, with (?P<settings>.+?))?(?P<work>(?:, [\w ]+ up to [\d.e+]+)*)(?:, (?P<seconds>[\d.]+) s)?"
)


def printed_legend(tidy_frame: pd.DataFrame, table: Table, signs: str, decided: str = "") -> str:
    """What marks and small figures of a printed table mean, in sentences.

    signs: of `signs_legend`; decided: what the marks of `columns.cell_marks` mean.
    """
    words = ["Best in bold, second underlined.", seeds_sentence(tidy_frame, table), signs]
    if table.print_published and tidy_frame["published"].notna().any():
        notes = (f"; {methods}: {note}" for methods, note in remarks(table, set(rows_of(tidy_frame))))
        words.append(f"In parentheses: as published{''.join(notes)}.")
    return " ".join(filter(None, [*words, decided]))


def remarks(table: Table, shown: Iterable[ScoreCell]) -> list[tuple[str, str]]:
    """(methods, note) for the notes that published values of some of these cells carry."""
    methods_of: dict[str, dict[str, None]] = {}
    for cell, (_, _, note) in table.published_values.items():
        if note and cell in shown:
            methods_of.setdefault(note, {})[table.method_title(cell[2])] = None
    return [(", ".join(methods), note) for note, methods in methods_of.items()]


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
    if not any(table.style(method).external for method in methods):
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
    others = [name for name in table.settings if table.has_other_labels(name)]
    shown = ", ".join(map(table.protocol_title, others))
    only = f", only on {shown}" if shown and len(others) < len(table.settings) else ""
    return f"{DAGGER} Learns from {' or '.join(more)} besides the training set{only}{ranked}." if more else ""


def earlier_sentence(table: Table, methods: Iterable[str]) -> str:
    """What the two bars mean, for the methods that have them; "" where none has."""
    titles: dict[str, list[str]] = {}
    for method in dict.fromkeys(methods):
        if differs := table.style(method).earlier:
            titles.setdefault(differs, []).append(table.method_title(method))
    named = "; ".join(f"{', '.join(of)}: {differs}" for differs, of in titles.items())
    return f"{EARLIER} Run with an earlier implementation ({named})." if named else ""


def uncoded_sentence(tidy_frame: pd.DataFrame) -> str:
    """What the row of the features themselves is; "" for a table without it."""
    if not (tidy_frame["status"] == UNCODED).any():
        return ""
    return f"{UNCODED_TITLE}: ranked by the features themselves, no code{NOT_RANKED}."


def bounds_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """What baselines are; "" for a table without any."""
    if all(table.family(method) != BOUND for method in tidy_frame["method"]):
        return ""
    return f"{FAMILIES[BOUND]}: codes of a linear classifier trained on the same features{NOT_RANKED}."


def seeds_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """What follows a mean, in words; "" where every cell has one seed at most."""
    if not (tidy_frame["seeds"] > 1).any():
        return ""
    words = f"{spread_words(tidy_frame, table)} over", seed_counts(tidy_frame), "seeds."
    return " ".join(filter(None, words))


def spread_words(tidy_frame: pd.DataFrame, table: Table) -> str:
    """What a score with ± is: of folds the ± is that of their mean, which varies less than a fold does."""
    scored = tidy_frame.loc[tidy_frame["seeds"] > 0, "protocol"].unique()
    folds = {len(table.folds.get(protocol, ())) for protocol in scored}
    if len(folds) != 1 or not max(folds):
        return "Mean ± standard deviation"
    return f"Mean of {folds.pop()} folds ± its standard deviation"


def seed_counts(tidy_frame: pd.DataFrame) -> str:
    """How many seeds the scored cells have, "5 to 10", "" where all have as many."""
    counts = sorted(set(tidy_frame.loc[tidy_frame["seeds"] > 0, "seeds"]))
    return f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else ""


def collapse_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """What the mark of collapsed codes means, and which runs it stands for; "" for a table without any."""
    rows = tidy_frame[tidy_frame["collapsed"] > 0].drop_duplicates(["protocol", "method", "bits"])
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    words: dict[str, dict[str, list[str]]] = {}
    for row in rows.itertuples():
        where = f", on {table.protocol_title(row.protocol)}" if several else ""
        somewhere = " in some fold" if table.folds.get(row.protocol) else ""
        seeds = f", {row.collapsed} of {row.seeds} seeds{somewhere}" if row.seeds > 1 else somewhere
        cells = words.setdefault(table.method_title(row.method), {})
        cells.setdefault(f"{seeds}{where}", []).append(str(row.bits))
    methods: dict[str, list[str]] = {}
    for name, cells in words.items():
        text = "; ".join(f"{', '.join(bits)} bits{rest}" for rest, bits in cells.items())
        methods.setdefault(text, []).append(name)
    named = "; ".join(f"{', '.join(names)} ({cells})" for cells, names in methods.items())
    return f"{COLLAPSED} Collapsed codes, which the mean includes: {named}."


def filled_sentence(tidy_frame: pd.DataFrame) -> str:
    """What the mark of cells from the leaderboard means; "" for a table without any."""
    if not any(filled_marks(tidy_frame)):
        return ""
    counts = sorted(set(tidy_frame.loc[tidy_frame["status"] == LEADERBOARD, "seeds"]))
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    words = f"of {seeds} seed{'' if counts == [1] else 's'}, not run here"
    return f"{FILLED} From the leaderboard, {words}."


def in_words(budget: str) -> str:
    """A budget as a reader is told it; one of another form is unchanged."""
    if budget == AS_GIVEN:
        return "default settings, no search"
    found = RULE.fullmatch(budget)
    if found is None:
        return budget
    words = f"{found['trials']} trials" + ", given candidates" * bool(found["candidates"])
    words += f" and up to {found['more']} further" if found["more"] else ""
    words += f", at most {found['seconds']} s each" if found["seconds"] else ""
    if parts := found["parts"]:
        words += f", on {parts.replace('/', ', then ')} part{'' if parts == '1' else 's'} of the training set"
    words += found["again"].replace(" again on ", " again fitted on ") + found["work"]
    return words + (f", with {found['settings']}" if found["settings"] else "")


def _beside(first: str, words: str) -> str:
    """A budget in words after another one: what it has less, or more, where the rest is the same."""
    one, other = first.split(", "), words.split(", ")
    less, more = ([part for part in of if part not in rest] for of, rest in ((one, other), (other, one)))
    if [part for part in one if part in other] != [part for part in other if part in one] or (less and more):
        return words
    if less:
        return f"without {', '.join(part.removeprefix('with ') for part in less)}"
    return f"also {', '.join(more)}"


def budget_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """Which rows of a protocol had other budgets, one sentence; "" where all of them had the same.

    The budget of most rows comes first, without their names. Rows of which nothing can be chosen and uncoded
    features are left out; a protocol is named where a method had another budget on another.
    """
    rows = tidy_frame[tidy_frame["mean"].notna() & ~tidy_frame["budget"].isin(["", NOTHING_TO_CHOOSE])]
    rows = rows.drop_duplicates(["protocol", "method", "bits"])
    everywhere = rows.groupby("method")["budget"].nunique() == 1
    rows = rows[rows.groupby("protocol")["budget"].transform("nunique") > 1]
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    names: dict[str, dict[str, None]] = {}
    for (protocol, method), of in rows.groupby(["protocol", "method"], sort=False):
        where = f" on {table.protocol_title(protocol)}" if several and not everywhere[method] else ""
        for budget, cells in of.groupby("budget", sort=False):
            bits = f" ({', '.join(map(str, cells['bits']))} bits)" if len(cells) < len(of) else ""
            names.setdefault(budget, {})[table.method_title(method) + where + bits] = None
    largest = max(names, key=lambda budget: len(names[budget]))
    others = [
        f"{_beside(in_words(largest), in_words(budget))}, for {', '.join(of)}"
        for budget, of in names.items()
        if budget != largest
    ]
    return f"Unequal hyper-parameter search: {'; '.join([in_words(largest), *others])}."
