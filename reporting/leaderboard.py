"""Scores that ship with the repository: leaderboard/<protocol>.tidy.csv, and where they come from beside it.

Each row of the CSV file is a cell in the form of `frames.tidy`. A protocol of several folds has rows of its
own, over the queries of all folds, then those of each fold under the fold's name.
"""

import datetime
import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

import tiebench
from reporting import frames, published
from reporting.folds import members
from reporting.records import table_records, uncoded_scores
from reporting.titles import UNCODED, protocol_title
from tiebench.files import write_json, write_text

ENDINGS = (".tidy.csv", ".provenance.json")


def publish(
    tables: Sequence[str], results: str | Path = "results", folder: str | Path = "leaderboard"
) -> list[Path]:
    """Write both files of every protocol of published tables, and return their paths.

    Everything is read and checked before anything is written. Raises ValueError for a cell that has no score
    from some of its seeds, for one that two tables give, and for runs of uncommitted code; OSError for a file
    that cannot be read.
    """
    parts: dict[str, list] = {}
    titles: dict[str, str] = {}
    for name in tables:
        found = published.read(name, results)
        for protocol in dict.fromkeys(block["protocol"] for block in found.table["blocks"]):
            titles[protocol] = protocol_title(found.table, protocol)
            parts.setdefault(protocol, []).append((found, *_of_protocol(found, protocol, Path(results))))
    made = {}
    for protocol, entries in parts.items():
        tidy = pd.concat([rows for _, rows, _ in entries], ignore_index=True)
        _check(protocol, tidy)
        text = frames.to_csv(tidy)
        runs = [run for *_, of in entries for run in of]
        about = {"protocol": protocol, "title": titles[protocol], "tables": list(tables)}
        about |= _provenance(protocol, entries[0][0].table, runs)
        about["sha256"] = hashlib.sha256(text.encode()).hexdigest()
        made[protocol] = text, about
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    for protocol, (text, about) in made.items():
        csv, provenance = (Path(folder, f"{protocol}{ending}") for ending in ENDINGS)
        write_text(csv, text)
        write_json(provenance, about)
        paths += [csv, provenance]
    return paths


def read(protocol: str, folder: str | Path = "leaderboard") -> tuple[pd.DataFrame, dict]:
    """Rows and provenance of a protocol. Raises ValueError where the two files do not belong together."""
    csv, provenance = (Path(folder, f"{protocol}{ending}") for ending in ENDINGS)
    text, about = csv.read_text(encoding="utf-8"), json.loads(provenance.read_text(encoding="utf-8"))
    if about.get("sha256") != hashlib.sha256(text.encode()).hexdigest():
        raise ValueError(f"{csv} is not the file that {provenance} describes; publish it again")
    return frames.from_csv(text), about


def _of_protocol(found, protocol: str, results: Path) -> tuple[pd.DataFrame, list[dict]]:
    """The rows of a protocol in a published table, then those of its folds, and the run.json of all runs."""
    tidy, folds = found.tidy, members(found.table, protocol)
    rows, runs = [tidy[tidy["protocol"] == protocol]], []
    for fold in folds:
        blocks = [
            {**block, "protocol": fold} for block in found.table["blocks"] if block["protocol"] == protocol
        ]
        table = {**found.table, "blocks": blocks, "folds": {}}
        refused = [
            {**cell, "protocol": fold} for cell in found.settings["refused"] if cell["protocol"] == protocol
        ]
        settings = {**found.settings, "table": table, "refused": refused}
        settings["uncoded"] = [fold] if protocol in found.settings["uncoded"] else []
        records = table_records(settings, results / "runs")
        runs += [record["run"] for record in records if record["status"] == "done"]
        if fold != protocol:
            rows.append(frames.tidy(table, records, (), uncoded_scores(settings, results)))
    return pd.concat(rows, ignore_index=True), runs


def _check(protocol: str, tidy: pd.DataFrame) -> None:
    for row in tidy[tidy["status"].isin(["partial", "missing"])].itertuples():
        raise ValueError(f"{protocol}: {row.method}, {row.bits} bits is {row.status}: {row.reason}")
    cells = tidy[["protocol", "metric", "method", "bits"]]
    twice = cells[cells.duplicated() & (tidy["method"] != UNCODED)]
    for row in twice.itertuples():
        cell = f"{row.protocol}, {row.metric}, {row.method}, {row.bits} bits"
        raise ValueError(f"{cell} is in two tables; publish one of them")


def _provenance(protocol: str, table: Mapping, runs: Sequence[Mapping]) -> dict:
    """What made the scores: settings, code, versions, machines."""
    commits = _distinct(run.get("git_commit") for run in runs)
    for commit in commits:
        if commit is None or commit.endswith("+"):
            made = f"runs were made by code that no commit has ({commit})"
            raise ValueError(f"{protocol}: {made}; commit it, and run them again")
    hyperparameters: dict[str, list] = {}
    for run in runs:
        of = hyperparameters.setdefault(f"{run['method']}, {run['bits']} bits", [])
        if run["hyperparameters"] not in of:
            of.append(run["hyperparameters"])
    return {
        "settings": (table.get("settings") or {}).get(protocol),
        "seeds": table["seeds"],
        "runs": len(runs),
        "git_commits": commits,
        "versions": _distinct(run.get("versions") for run in runs),
        "devices": _distinct(run.get("device") for run in runs),
        "threads": _distinct(run.get("threads") for run in runs),
        "fingerprints": _distinct({"protocol": run["protocol"]} | run["fingerprints"] for run in runs),
        "hyperparameters": hyperparameters,
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "published": {
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "tiebench": tiebench.__version__,
            "processor": _processor(),
        },
    }


def _distinct(values: Iterable) -> list:
    found: list = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _processor() -> str:
    """The model of this machine's processor; Linux names it in a file, other systems by `platform`."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
