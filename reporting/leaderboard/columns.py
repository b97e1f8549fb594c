"""Columns of a generated table: what a marker asks for, checked, with defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reporting.leaderboard import Board
from reporting.leaderboard.boards import Boards, fold_title
from reporting.printed.health import PRINTED
from tiebench.messages import did_you_mean, shorten
from tiebench.metrics import label

# What a column shows, and its decimals by default; None: those of the table.
SHOWN = {
    "score": None,
    "range": None,
    "published": None,
    "difference": None,
    "folds": None,
    "mean_of_folds": None,
    "fit_seconds": 1,
    "encode_seconds": 1,
    "peak_memory": 0,
    "health": None,
    "family": None,
    "sees": None,
    "seeds": None,
    "trials": None,
    "best_trial": None,
}
# Of the health of codes that printed tables show: heading and decimals.
HEALTH = {column: (heading, decimals) for heading, _, column, decimals in PRINTED}
SCORES = ("score", "range", "published", "difference", "folds", "mean_of_folds")
OF_METHODS = ("family", "sees")
# How the code lengths of an entry are laid out: a column each, in one column, or the highest of them (of
# differences, that which is farthest from 0).
LAYOUTS = ("columns", "joined", "highest")
KEYS = {
    "show": str,
    "protocol": str,
    "metric": str,
    "bits": (int, list),
    "layout": str,
    "heading": str,
    "decimals": int,
    "spread": bool,
    "of": str,
    "where": dict,
    "methods": list,
}
HEADINGS = {
    "published": "published {bits}",
    "difference": "difference {bits}",
    "mean_of_folds": "mean of folds",
    "fit_seconds": "fit s",
    "encode_seconds": "encode s",
    "peak_memory": "peak MB",
    "best_trial": "best trial {bits}",
}


@dataclass(frozen=True)
class Column:
    """A printed column.

    show: one of SHOWN, a single fold as "score"; protocol: or fold; board: the protocol that it belongs to;
    bits: one, or several that stand in one cell; highest: whether one value stands for all of them, the
    largest, or of differences the one that is farthest from 0;
    of: which value of the codes' health; folds: those whose mean is shown; where: settings that trials of a
    search must have; methods: the only rows that have the column, () for all.
    """

    show: str
    board: str
    protocol: str
    metric: str
    bits: tuple[int, ...]
    heading: str
    decimals: int
    spread: bool = True
    highest: bool = False
    of: str = ""
    folds: tuple[str, ...] = ()
    where: tuple[tuple[str, Any], ...] = ()
    methods: tuple[str, ...] = ()

    def concerns(self, method: str) -> bool:
        return not self.methods or method in self.methods


def parse(given: Any, defaults: Mapping, boards: Boards) -> list[Column]:
    """The columns that a marker's `columns` ask for.

    defaults: the marker's protocol, metric, bits and decimals. Raises ValueError, one line with the nearest
    name, for what is unknown or has another form.
    """
    if not isinstance(given, list) or not given:
        raise ValueError("columns must be a list")
    entries = [_entry(one, defaults, boards) for one in given]
    kinds = {(entry["protocol"], entry["metric"]) for entry in entries if entry["show"] == "score"}
    found = []
    for entry in entries:
        found += _expanded(entry, boards[entry["protocol"]], kinds)
    return found


def _entry(given: Any, defaults: Mapping, boards: Boards) -> dict:
    entry: dict[str, Any] = {"show": given} if isinstance(given, str) else given
    check_keys(entry, KEYS, "a column")
    entry = {"show": "score", "layout": "columns", "spread": True, "of": "", **defaults, **entry}
    for key, known in (("show", SHOWN), ("layout", LAYOUTS)):
        if entry[key] not in known:
            raise ValueError(f"unknown {key} {entry[key]!r} of a column{did_you_mean(entry[key], known)}")
    if entry.get("protocol") is None:
        raise ValueError("a column needs a protocol: give it, or one for all columns")
    board = boards[entry["protocol"]]
    entry["bits"] = as_bits(entry.get("bits") or board.bits)
    if entry["show"] in SCORES:
        boards.check(entry["protocol"], entry["metric"], entry["bits"])
    if entry["show"] == "health":
        of_codes = [name.removeprefix("health.") for name in board.runs[0] if name.startswith("health.")]
        if entry["of"] not in of_codes:
            near = did_you_mean(entry["of"], of_codes)[1:]
            raise ValueError(f"unknown health {entry['of']!r}: `of` is{near}")
    if entry["show"] == "best_trial":
        _check_trials(entry, boards)
    elif "where" in entry:
        raise ValueError("only the column best_trial takes where")
    if entry["show"] in ("folds", "mean_of_folds") and not board.folds:
        raise ValueError(f"{board.protocol} has no folds")
    own = HEALTH.get(entry["of"], ("", 1))[1] if entry["show"] == "health" else SHOWN[entry["show"]]
    if own is not None and not (isinstance(given, dict) and "decimals" in given):
        entry["decimals"] = own
    return entry


def _check_trials(entry: Mapping, boards: Boards) -> None:
    """Raise ValueError for lengths that no search was made for, and for settings that no trial has."""
    found = boards.trials(entry["protocol"])
    for bits in entry["bits"]:
        trials = [trial for cell, trials in found.items() if cell[2] == bits for trial in trials]
        if not trials:
            known = ", ".join(map(str, sorted({cell[2] for cell in found}))) or "none"
            raise ValueError(
                f"the leaderboard of {entry['protocol']} has no trials at {bits} bits; it has: {known}"
            )
        for key, value in entry.get("where", {}).items():
            if not any(trial.settings.get(key) == value for trial in trials):
                raise ValueError(f"no trial of {entry['protocol']} at {bits} bits has {key} {value!r}")


def _expanded(entry: Mapping, board: Board, kinds: Iterable[tuple[str, str]]) -> list[Column]:
    """The printed columns of an entry: one for each code length and fold, unless they are joined."""
    plain = {key: entry[key] for key in ("metric", "decimals", "spread", "of")} | {"board": board.protocol}
    plain |= {"where": tuple(entry.get("where", {}).items()), "methods": tuple(entry.get("methods", ()))}
    if entry["show"] in OF_METHODS:
        heading = entry.get("heading") or entry["show"]
        return [Column(entry["show"], protocol=board.protocol, bits=(), heading=heading, **plain)]
    lengths = [(bits,) for bits in entry["bits"]] if entry["layout"] == "columns" else [tuple(entry["bits"])]
    plain |= {"highest": entry["layout"] == "highest"}
    plain |= {"folds": tuple(board.folds) if entry["show"] == "mean_of_folds" else ()}
    found = []
    for bits in lengths:
        for protocol in board.folds if entry["show"] == "folds" else [board.protocol]:
            show = "score" if entry["show"] == "folds" else entry["show"]
            heading = entry.get("heading") or _heading(entry, board, protocol, kinds)
            heading = heading.replace("{bits}", " / ".join(map(str, bits)))
            found.append(Column(show, protocol=protocol, bits=bits, heading=heading, **plain))
    return found


def _heading(entry: Mapping, board: Board, protocol: str, kinds: Iterable[tuple[str, str]]) -> str:
    """What a column is called by default: what distinguishes it from the other columns of scores."""
    show, several = entry["show"], len(entry["bits"]) > 1
    if show == "folds":
        return fold_title(board, protocol) + (", {bits} bits" if several else "")
    if show == "health":
        return HEALTH.get(entry["of"], (entry["of"].replace("_", " "), 1))[0]
    name = metric_name(entry["metric"])
    if show == "range":
        return f"worst\N{EN DASH}best {name}, {{bits}} bits"
    if show != "score":
        return HEADINGS.get(show, show)
    if entry["layout"] == "joined":
        return f"{name} {{bits}}"
    words = [board.about["title"]] if len({protocol for protocol, _ in kinds}) > 1 else []
    words += [name] if len({metric for _, metric in kinds}) > 1 else []
    return ", ".join([*words, "{bits} bits"])


def metric_name(metric: str) -> str:
    """The display name of a metric in Markdown."""
    name, subscript = label(metric)
    return f"{name}<sub>{subscript}</sub>" if subscript else name


# -- checks that tables and figures share ---------------------------------------------------------


def check_keys(given: Any, known: Mapping, what: str) -> None:
    """Raise ValueError for settings that are no mapping, an unknown key, or a value of another type."""
    if not isinstance(given, dict):
        raise ValueError(f"{what} must be a mapping, not {shorten(repr(given))}")
    for key, value in given.items():
        if key not in known:
            raise ValueError(f"unknown key {key!r} of {what}{did_you_mean(key, known)}")
        kinds = known[key] if isinstance(known[key], tuple) else (known[key],)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(f"{key} of {what} must be of type {names}, not {shorten(repr(value))}")


def as_bits(value: Any) -> list[int]:
    """Code lengths from one number or a list."""
    bits = value if isinstance(value, list) else [value]
    if not bits or not all(isinstance(one, int) and not isinstance(one, bool) for one in bits):
        raise ValueError(f"bits must be a number or a list of numbers, not {shorten(repr(value))}")
    return bits


def listed(value: str | list) -> list:
    """One name, or a list of them, as a list."""
    return value if isinstance(value, list) else [value]
