"""Columns of a generated table: what a marker asks for, checked, with defaults."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from reporting.leaderboard import Board
from reporting.leaderboard.boards import Boards, fold_title
from reporting.leaderboard.settings import as_bits, check_keys
from reporting.printed.health import PRINTED
from reporting.printed.markdown import metric_name
from reporting.tables.titles import EN_DASH
from tiebench.messages import did_you_mean


class Shown(NamedTuple):
    """What a column shows: its heading, "" for its name or what it has of its own; its decimals by default;
    what a cell says where all of it is missing."""

    heading: str = ""
    decimals: int = 3
    missing: str = EN_DASH


SHOWN = {
    "score": Shown(),
    "range": Shown(),
    "published": Shown("published {bits}", missing="not printed"),
    "difference": Shown("difference {bits}"),
    "folds": Shown(),
    "mean_of_folds": Shown("mean of folds"),
    "deviation": Shown("standard deviation"),
    "fit_seconds": Shown("fit s", 1, "not timed"),
    "encode_seconds": Shown("encode s", 1, "not timed"),
    "peak_memory": Shown("peak MB", 0),
    "health": Shown(),
    "search": Shown(),
}
# What `of` names: of the health of codes, as printed tables show it, and of the searches that chose
# hyper-parameters: heading and decimals.
OF = {
    "health": {column: (heading, decimals) for heading, _, column, decimals in PRINTED},
    "search": {"trials": ("trials", 0), "minutes": ("core minutes", 1), "ends": ("at ends of axes", 0)},
}
SCORES = ("score", "range", "published", "difference", "folds", "mean_of_folds", "deviation")
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
    "methods": list,
    "protocols": list,
}


@dataclass(frozen=True)
class Column:
    """A printed column.

    show: one of SHOWN, a single fold as "score"; protocol: or fold; board: the protocol that it belongs to;
    bits: one, or several that stand in one cell; highest: whether one value stands for all of them, the
    largest, or of differences the one that is farthest from 0;
    of: which value of the codes' health, or of a search; over: folds or protocols whose mean or standard
    deviation is shown; methods: the only rows that have the column, () for all.
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
    over: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


def parse(given: Any, defaults: Mapping, boards: Boards) -> list[Column]:
    """The columns that a marker's `columns` ask for.

    defaults: the marker's protocol, metric and bits, its layout and spread if it has them. Raises ValueError,
    one line with the nearest name, for what is unknown or has another form.
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
    others = entry.setdefault("protocols", [])
    if (entry["show"] == "deviation") != (len(others) > 1):
        raise ValueError("protocols, two at least, are what a column deviation is over")
    entry["protocol"] = others[0] if others else entry.get("protocol")
    if entry["protocol"] is None:
        raise ValueError("a column needs a protocol: give it, or one for all columns")
    board = boards[entry["protocol"]]
    entry["bits"] = as_bits(entry.get("bits") or board.bits)
    if entry["show"] in SCORES:
        for protocol in others or [entry["protocol"]]:
            boards.check(protocol, entry["metric"], entry["bits"])
    own = SHOWN[entry["show"]].decimals
    if entry["show"] in OF:
        of_codes = [name.removeprefix("health.") for name in board.runs[0] if name.startswith("health.")]
        values = of_codes if entry["show"] == "health" else [*OF["search"]]
        if entry["of"] not in values:
            near = did_you_mean(entry["of"], values)[1:]
            raise ValueError(f"unknown {entry['show']} {entry['of']!r}: `of` is{near}")
        own = _of(entry)[1]
    if entry["show"] in ("folds", "mean_of_folds") and not board.folds:
        raise ValueError(f"{board.protocol} has no folds")
    return {"decimals": own} | entry


def _expanded(entry: Mapping, board: Board, kinds: Iterable[tuple[str, str]]) -> list[Column]:
    """The printed columns of an entry: one for each code length and fold, unless they are joined."""
    plain = {key: entry[key] for key in ("metric", "decimals", "spread", "of")} | {"board": board.protocol}
    plain |= {"methods": tuple(entry.get("methods", ()))}
    lengths = [(bits,) for bits in entry["bits"]] if entry["layout"] == "columns" else [tuple(entry["bits"])]
    plain |= {"highest": entry["layout"] == "highest"}
    plain |= {"over": tuple(board.folds if entry["show"] == "mean_of_folds" else entry["protocols"])}
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
    if show in OF:
        return _of(entry)[0] + (", {bits} bits" if several and entry["layout"] == "columns" else "")
    name = metric_name(entry["metric"])
    if show == "range":
        return f"worst\N{EN DASH}best {name}, {{bits}} bits"
    if show != "score":
        return SHOWN[show].heading or show
    if entry["layout"] == "joined":
        return f"{name} {{bits}}"
    words = [board.about["title"]] if len({protocol for protocol, _ in kinds}) > 1 else []
    words += [name] if len({metric for _, metric in kinds}) > 1 else []
    return ", ".join([*words, "{bits} bits"])


def _of(entry: Mapping) -> tuple[str, int]:
    """Heading and decimals of what a column's `of` names."""
    return OF[entry["show"]].get(entry["of"], (entry["of"].replace("_", " "), 1))
