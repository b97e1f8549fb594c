"""Cells that a table takes from the leaderboard: their records, how they are marked, what leaves them out."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reporting.titles import LEADERBOARD, UNCODED

if TYPE_CHECKING:  # plans of figures load no pandas
    import pandas as pd

FILLED = "§"
NOT_TESTED = "from the leaderboard: not tested"


def is_filled(record: Mapping | None) -> bool:
    """Whether a record is of a run that was not made here."""
    return (record or {}).get("source") == LEADERBOARD


def filled_records(settings: Mapping, also: Iterable[str] = ()) -> dict[tuple[str, str, int], list[dict]]:
    """(protocol, method, bits) -> records of the cells that a table takes from the leaderboard.

    settings: of a table, whose "filled" holds the records; also: as of `records.table_records`, empty here.
    """
    found: dict[tuple[str, str, int], list[dict]] = {}
    for record in (settings.get("filled") or {}).get("records", ()):
        cell = record["protocol"], record["method"], record["bits"]
        more = {key: [] if key == "training" else {} for key in also}
        found.setdefault(cell, []).append({**record, **more})
    return found


def check_fingerprints(settings: Mapping, protocol: str, run: Mapping) -> None:
    """Raise ValueError, one line, where a run was made with other data than the leaderboard's cells.

    protocol: of the run, or the fold that it belongs to; run: its run.json.
    """
    known = (settings.get("filled") or {}).get("fingerprints", {}).get(protocol, {})
    for what, theirs in known.items():
        ours = (run.get("fingerprints") or {}).get(what, theirs)
        if ours != theirs:
            name = settings["table"]["name"]
            other = f"another {what} here ({ours[:12]}…) than in the leaderboard ({theirs[:12]}…)"
            remedy = "leave out `compare`, and list under `methods` what is to be compared"
            raise ValueError(f"table {name}: {protocol} has {other}, so their rows do not compare; {remedy}")


def tested(records: Iterable[Mapping]) -> list[Mapping]:
    """Records for statistics: those from the leaderboard, without scores per query, count as missing."""
    gone = {"status": "missing", "reason": NOT_TESTED, "metrics": {}}
    return [{**record, **gone} if is_filled(record) else record for record in records]


# -- marks ----------------------------------------------------------------------------------------


def filled_marks(tidy_frame: "pd.DataFrame") -> tuple[set[str], set[tuple[str, str, str, int]]]:
    """Methods all of whose scores are from the leaderboard, and cells from there of the other methods.

    Both are empty for a table that has nothing else: there is nothing to tell them from.
    """
    rows = tidy_frame[tidy_frame["method"] != UNCODED]
    filled = rows[rows["status"] == LEADERBOARD]
    if len(filled) == len(rows):
        return set(), set()
    here = set(rows.loc[rows["status"].isin(["done", "partial"]), "method"])
    mixed = filled[filled["method"].isin(here)]
    cells = mixed[["protocol", "metric", "method", "bits"]].itertuples(index=False, name=None)
    return set(filled["method"]) - here, set(cells)


def filled_sentence(tidy_frame: "pd.DataFrame") -> str:
    """What the mark of cells from the leaderboard means; "" for a table without any."""
    if not any(filled_marks(tidy_frame)):
        return ""
    counts = sorted(set(tidy_frame.loc[tidy_frame["status"] == LEADERBOARD, "seeds"]))
    seeds = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    words = f"of {seeds} seed{'' if counts == [1] else 's'}, not run here and not part of tests"
    return f"{FILLED} From the leaderboard, {words}."


def filled_methods(table: Mapping, records: Iterable[Mapping]) -> list[str]:
    """Methods with scores from the leaderboard, in the table's order; [] where all are from there."""
    records = list(records)
    if all(map(is_filled, records)):
        return []
    found = {record["method"] for record in records if is_filled(record) and record["status"] == "done"}
    return [method for method in table["methods"] if method in found]
