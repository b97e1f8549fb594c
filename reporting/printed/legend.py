"""What marks and small figures of a table mean, in sentences."""

from collections.abc import Iterable

import pandas as pd

from reporting.frames import filled_marks
from reporting.tables.model import Table
from reporting.tables.runs import NOTHING_TO_CHOOSE
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
NAMED = 4  # of more methods with one budget, the largest group is "all others"


def printed_legend(tidy_frame: pd.DataFrame, table: Table, signs: str, decided: str = "") -> str:
    """What marks and small figures of a printed table mean, in sentences.

    signs: of `signs_legend`; decided: what the marks of `statistics.cell_marks` mean.
    """
    words = ["Best in bold, second underlined.", seeds_sentence(tidy_frame), signs]
    if table.print_published and tidy_frame["published"].notna().any():
        words.append("In parentheses: as published.")
    return " ".join(filter(None, [*words, decided]))


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
    hidden = ", ".join(table.protocol_title(name) for name in table.settings if table.is_unseen(name))
    but = f" (not under {hidden})" if hidden else ""
    return f"{DAGGER} Learns from {' or '.join(more)} besides the training set{but}{ranked}." if more else ""


def earlier_sentence(table: Table, methods: Iterable[str]) -> str:
    """What the two bars mean, for the methods that have them; "" where none has."""
    titles: dict[str, list[str]] = {}
    for method in dict.fromkeys(methods):
        if differs := table.style(method).earlier:
            titles.setdefault(differs, []).append(table.method_title(method))
    named = "; ".join(f"{', '.join(of)}: {differs}" for differs, of in titles.items())
    return f"{EARLIER} Of an earlier form of the method ({named})." if named else ""


def uncoded_sentence(tidy_frame: pd.DataFrame, ranked: str = NOT_RANKED) -> str:
    """What the row of the features themselves is; "" for a table without it."""
    if not (tidy_frame["status"] == UNCODED).any():
        return ""
    return f"{UNCODED_TITLE}: ranked by the features themselves, no code{ranked}."


def bounds_sentence(tidy_frame: pd.DataFrame, table: Table, ranked: str = NOT_RANKED) -> str:
    """What bounds are; "" for a table without any."""
    if all(table.family(method) != BOUND for method in tidy_frame["method"]):
        return ""
    return f"{FAMILIES[BOUND]}: what a plain classifier reaches{ranked}."


def seeds_sentence(tidy_frame: pd.DataFrame) -> str:
    """What follows a mean, in words; "" where every cell has one seed at most."""
    if not (tidy_frame["seeds"] > 1).any():
        return ""
    return " ".join(filter(None, ("Mean ± standard deviation over", seed_counts(tidy_frame), "seeds.")))


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
    words: dict[str, list[str]] = {}
    for row in rows.itertuples():
        where = f" on {table.protocol_title(row.protocol)}" if several else ""
        found = words.setdefault(table.method_title(row.method) + where, [])
        seeds = "" if row.collapsed == row.seeds else f", {row.collapsed} of {row.seeds} seeds"
        found.append(f"{row.bits} bits{seeds}")
    named = "; ".join(f"{name} ({', '.join(cells)})" for name, cells in words.items())
    return f"{COLLAPSED} Collapsed codes, which the mean includes: {named}."


def filled_sentence(tidy_frame: pd.DataFrame) -> str:
    """What the mark of cells from the leaderboard means; "" for a table without any."""
    if not any(filled_marks(tidy_frame)):
        return ""
    counts = sorted(set(tidy_frame.loc[tidy_frame["status"] == LEADERBOARD, "seeds"]))
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    words = f"of {seeds} seed{'' if counts == [1] else 's'}, not run here"
    return f"{FILLED} From the leaderboard, {words}."


def budget_sentence(tidy_frame: pd.DataFrame, table: Table) -> str:
    """Which rows of a protocol had other budgets, one sentence; "" where all of them had the same.

    Rows of which nothing can be chosen and uncoded features are left out.
    """
    rows = tidy_frame[tidy_frame["mean"].notna() & ~tidy_frame["budget"].isin(["", NOTHING_TO_CHOOSE])]
    rows = rows.drop_duplicates(["protocol", "method", "bits"])
    unequal = rows.groupby("protocol")["budget"].transform("nunique") > 1
    rows = rows[unequal]
    if rows.empty:
        return ""
    several = tidy_frame["protocol"].nunique() > 1
    names: dict[str, list[str]] = {}
    for (protocol, method), of in rows.groupby(["protocol", "method"], sort=False):
        where = f" on {table.protocol_title(protocol)}" if several else ""
        for budget, cells in of.groupby("budget", sort=False):
            bits = f" ({', '.join(map(str, cells['bits']))} bits)" if len(cells) < len(of) else ""
            names.setdefault(budget, []).append(table.method_title(method) + where + bits)
    largest = max(names, key=lambda budget: len(names[budget]))
    if len(names[largest]) > NAMED:
        names[largest] = ["all others"]
    words = "; ".join(f"{budget}: {', '.join(of)}" for budget, of in names.items())
    return f"Unequal budgets of hyper-parameters: {words}."
