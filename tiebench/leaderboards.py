"""Leaderboards: scores of many methods under one protocol, in files that are small enough to keep in git.

`python -m reporting publish` of the suite writes them, with further files. All are read by this module. What
`load` takes of each protocol:

* <protocol>.tidy.csv: one row per (protocol, metric, method, bits), the mean over seeds and its spread;
* <protocol>.provenance.json: what made the scores; which queries and which database they are of;
* <protocol>.per_query.npz, and .per_query.2.npz and so on where one would be large: scores of each query.
"""

import csv
import hashlib
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tiebench import files
from tiebench.messages import did_you_mean

TIDY, PROVENANCE, PER_QUERY = ".tidy.csv", ".provenance.json", ".per_query.npz"
# Rows of this status are the features themselves, those of this family bounds: neither competes.
UNCODED, BOUND = "uncoded", "bound"
_COLUMNS = ("protocol", "metric", "method", "bits", "seeds", "mean", "std", "ci_low", "ci_high", "status")


@dataclass(frozen=True)
class Row:
    """One cell: a method at a code length. Numbers are NaN where there are none.

    Parameters
    ----------
    mean, std, low, high : float
        Over `seeds` seeds: std with n - 1 in its denominator, low and high the 95% Student interval of the
        mean.
    collapsed : int
        Of how many seeds the codes collapsed.
    competes : bool
        False for a bound and for the features themselves.
    """

    metric: str
    method: str
    title: str
    bits: int
    seeds: int
    mean: float
    std: float
    low: float
    high: float
    collapsed: int = 0
    competes: bool = True


@dataclass(frozen=True, eq=False)
class Leaderboard:
    """What is published of one protocol, or of one fold of it.

    Parameters
    ----------
    protocol, title : str
        Its name and how it is written.
    rows : tuple of `Row`
        Of scored cells, in the order of the file.
    settings : mapping
        Of the protocol, as far as the file says.
    identity : mapping
        Of `query_identity.describe`, {} where nothing is known.
    per_query : mapping
        (metric, method, bits) -> float32 (n, Q), a row a seed in ascending order, or (Q,), the mean over
        seeds.
    queries : int64 (Q,) or None
        Row numbers of the queries in the dataset, None if unknown.
    folds : tuple of str
        Names, if the protocol has several, each with queries and a database of its own.
    """

    protocol: str
    title: str
    rows: tuple[Row, ...]
    settings: Mapping = field(default_factory=dict)
    identity: Mapping = field(default_factory=dict)
    per_query: Mapping[tuple[str, str, int], np.ndarray] = field(default_factory=dict)
    queries: np.ndarray | None = None
    folds: tuple[str, ...] = ()


def rate_words(collapsed: int, seeds: int, folds: bool = False) -> str:
    """Of how many seeds of a cell codes collapsed, "1 of 10 seeds collapsed"; "" for none.

    folds: whether a seed has a run in each of several folds, of which one is enough.
    """
    where = " in some fold" * folds
    return f"{collapsed} of {seeds} seed{'s' * (seeds != 1)} collapsed{where}" if collapsed else ""


def find(folder: str | Path | None = None) -> Path:
    """The folder of leaderboards: `folder`, else `leaderboard` here, else that of the checkout.

    Raises
    ------
    ValueError
        One line that names the folders, where there is none.
    """
    if folder is not None:
        if not Path(folder).is_dir():
            raise ValueError(f"{folder} is not a folder; --leaderboard names the folder of *{PROVENANCE}")
        return Path(folder)
    places = [Path("leaderboard"), Path(__file__).parents[1] / "leaderboard"]
    for place in places:
        if place.is_dir():
            return place
    looked = " nor ".join(str(place) for place in places)
    raise ValueError(f"there is no leaderboard: neither {looked} exists; name one by --leaderboard FOLDER")


def cell_key(metric: str, method: str, bits: int) -> str:
    """The name of the scores of a cell in <protocol>.per_query.npz."""
    return f"{metric}/{method}/{bits}"


def cell_of(key: str) -> tuple[str, str, int]:
    """(metric, method, bits) of a `cell_key`."""
    metric, method, bits = key.split("/")
    return metric, method, int(bits)


def stems(folder: str | Path) -> list[str]:
    """What the names of a folder's files begin with, sorted: its protocols, without folds."""
    return sorted(path.name.removesuffix(PROVENANCE) for path in Path(folder).glob(f"*{PROVENANCE}"))


def read_provenance(protocol: str, folder: str | Path) -> dict[str, Any]:
    """The provenance of a protocol.

    Raises
    ------
    ValueError
        One line, for an unknown protocol or a damaged file.
    """
    path = Path(folder, f"{protocol}{PROVENANCE}")
    if not path.is_file():
        raise ValueError(f"{folder} has no protocol {protocol!r}{did_you_mean(protocol, stems(folder))}")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: invalid JSON ({error})") from error
    plain = isinstance(about, dict) and about.get("protocol") == protocol
    kinds = {"sha256": dict, "settings": dict, "methods": dict, "members": list, "fingerprints": list}
    plain = plain and all(isinstance(about.get(key) or kind(), kind) for key, kind in kinds.items())
    listed = [*(about.get("members") or []), *(about.get("fingerprints") or [])] if plain else [None]
    if not all(isinstance(one, dict) and isinstance(one.get("protocol"), str) for one in listed):
        raise ValueError(f"{path} is not the provenance of {protocol}; publish it again")
    return about


def verified(path: Path, about: Mapping) -> bytes:
    """The bytes of a file whose sha256 is that of its provenance.

    Raises
    ------
    ValueError
        For any other file.
    """
    content = path.read_bytes()
    if (about.get("sha256") or {}).get(path.name) != hashlib.sha256(content).hexdigest():
        provenance = path.with_name(f"{about['protocol']}{PROVENANCE}")
        raise ValueError(f"{path} is not the file that {provenance} describes; publish it again")
    return content


def read_rows(path: Path, about: Mapping) -> list[dict[str, str]]:
    """Rows of a .csv file of a protocol, column -> text; [] where the provenance says that there is none.

    Raises ValueError for another file than it describes.
    """
    if path.name not in (about.get("sha256") or {}):
        return []
    return list(csv.DictReader(io.StringIO(verified(path, about).decode())))


def per_query_name(protocol: str, part: int) -> str:
    """The name of the file with the scores of each query, or of its second, third … part."""
    return f"{protocol}{PER_QUERY}" if part == 1 else f"{protocol}.per_query.{part}.npz"


def per_query_files(about: Mapping) -> list[str]:
    """Names of the files with scores of each query that a provenance describes."""
    known: Mapping = about.get("sha256") or {}
    found: list[str] = []
    while (name := per_query_name(about["protocol"], len(found) + 1)) in known:
        found.append(name)
    return found


def read_per_query(folder: str | Path, about: Mapping) -> dict[str, np.ndarray]:
    """Scores of each query of a protocol, all parts.

    Returns
    -------
    dict
        `cell_key` -> float32 (n, Q), a row a seed in ascending order, or (Q,) where all seeds have the same,
        or where their mean is all that is kept; "query" -> int64 (Q,), row numbers of the queries in the
        dataset. Empty where the provenance says that there is no such file.

    Raises
    ------
    ValueError
        For another file than the provenance describes.
    """
    return {key: scores for part in per_query_parts(folder, about) for key, scores in part.items()}


def per_query_parts(folder: str | Path, about: Mapping) -> list[dict[str, np.ndarray]]:
    """What `read_per_query` returns, by file; raises the same."""
    paths = [Path(folder, name) for name in per_query_files(about)]
    for path in paths:
        verified(path, about)
    return [files.read_npz(path) for path in paths]


def scores_of_queries(folder: str | Path, about: Mapping) -> dict[tuple[str, int], dict[str, np.ndarray]]:
    """(method, bits) -> metric -> float64 (n, Q) or (Q,), of `read_per_query`."""
    found: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    for key, scores in read_per_query(folder, about).items():
        if key != "query":
            metric, method, bits = cell_of(key)
            found.setdefault((method, bits), {})[metric] = scores.astype(np.float64)
    return found


def load(protocol: str, folder: str | Path) -> Leaderboard:
    """A protocol, or a fold of one, of a folder of leaderboards.

    Raises
    ------
    ValueError
        One line, for an unknown protocol (with the nearest name) and for files that do not belong together.
    OSError
        For a file that cannot be read.
    """
    holds = protocols(folder)
    if protocol not in holds:
        raise ValueError(f"{folder} has no protocol {protocol!r}{did_you_mean(protocol, sorted(holds))}")
    stem = holds[protocol]
    about = read_provenance(stem, folder)
    tidy = Path(folder, f"{stem}{TIDY}")
    rows = tuple(_rows(tidy, read_rows(tidy, about), protocol, about.get("methods") or {}))
    members = _members(about)
    names = [one["protocol"] for one in members]
    arrays = read_per_query(folder, about)
    title = about.get("title") or stem
    if protocol in names and len(names) > 1:  # arrays hold one fold after the other
        place = names.index(protocol)
        title = f"{title}, fold {place + 1}"
        begin, end = np.cumsum([0, *(one.get("queries", 0) for one in members)])[place : place + 2]
        arrays = {name: values[..., begin:end] for name, values in arrays.items()}
    queries = arrays.pop("query", None)
    return Leaderboard(
        protocol=protocol,
        title=title,
        rows=rows,
        settings=about.get("settings") or {},
        identity=members[names.index(protocol)] if protocol in names else {},
        per_query={cell_of(name): values for name, values in arrays.items()},
        queries=queries,
        folds=() if protocol in names else tuple(names),
    )


def protocols(folder: str | Path) -> dict[str, str]:
    """Protocols of a folder of leaderboards, their folds too -> the name of their files."""
    found: dict[str, str] = {}
    for stem in stems(folder):
        found[stem] = stem
        members = _members(read_provenance(stem, folder))
        found |= {one["protocol"]: stem for one in members}
    return found


def _members(about):
    """What is known of the protocol, or of each of its folds: of earlier versions' files the names alone."""
    names = dict.fromkeys(one["protocol"] for one in about.get("fingerprints") or [])
    return about.get("members") or [{"protocol": name} for name in names]


def _rows(path, lines, protocol, methods):
    missing = [name for name in _COLUMNS if not lines or name not in lines[0]]
    if missing:
        raise ValueError(f"{path} lacks the columns {', '.join(missing)}; publish it again")
    for number, line in enumerate(lines, start=2):
        if line["protocol"] != protocol or not line["mean"]:
            continue
        about, method = methods.get(line["method"]) or {}, line["method"]
        try:
            yield Row(
                metric=line["metric"],
                method=method,
                title=about.get("title") or ("Uncoded features" if method == UNCODED else method),
                bits=int(line["bits"]),
                seeds=int(line["seeds"]),
                mean=float(line["mean"]),
                std=_number(line["std"]),
                low=_number(line["ci_low"]),
                high=_number(line["ci_high"]),
                collapsed=int(line.get("collapsed") or 0),
                competes=line["status"] != UNCODED and about.get("family") != BOUND,
            )
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}; publish it again") from error


def _number(text):
    return float(text) if text else math.nan
