"""What the page shows of runs: each with its settings and costs, versions, fingerprints."""

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from reporting.filled import is_filled
from reporting.frames import NO_RECORD, by_cell, score_of, seeds_of
from reporting.layout import Group, groups
from reporting.page_words import plain
from reporting.titles import LEADERBOARD, method_title


def run_rows(table: Mapping, records: Iterable[Mapping]) -> list[dict]:
    """Every run that the table asks for, once, in its order; one without a record is missing."""
    found = by_cell(table, records)
    wanted: dict[tuple, list[Group]] = {}
    for group in groups(table):
        for method in group.methods:
            for bits in group.bits:
                wanted.setdefault((group.protocol, method, bits), []).append(group)
    result = []
    for (protocol, method, bits), asking in wanted.items():
        of_cell = found.get((protocol, method, bits), {})
        for seed in seeds_of(table, method, of_cell):
            record = of_cell.get(seed)
            run = (record or {}).get("run") or {}
            parts = run.get("seconds_by_part") or {}
            status = "missing" if record is None else record["status"]
            reason = NO_RECORD if record is None else record.get("reason") or ""
            if is_filled(record) and status == "done":
                status, reason = LEADERBOARD, "not run here"
            scores = [
                (metric, score)
                for metric in dict.fromkeys(group.metric for group in asking)
                if (score := score_of(record, metric)[0]) is not None
            ]
            result.append(
                {
                    "protocol": protocol,
                    "title": asking[0].title,
                    "method": method,
                    "name": method_title(table, method),
                    "bits": bits,
                    "seed": seed,
                    "here": not is_filled(record),
                    "status": status,
                    "reason": reason,
                    "scores": scores,
                    "numbers": [
                        _number(parts.get("fit")),
                        _number(parts.get("encode")),
                        _number(run.get("peak_memory_mb"), whole=True),
                    ],
                    "hyperparameters": sorted(
                        (name, plain(value)) for name, value in (run.get("hyperparameters") or {}).items()
                    ),
                    "folder": "/".join(
                        quote(str(part), safe="") for part in ("runs", protocol, method, bits, seed)
                    )
                    if status == "done" and "folds" not in run  # whose runs are in folders of their own
                    else "",
                    "log": quote(str(run.get("log") or "").removeprefix("results/")),
                    "run": run,
                }
            )
    return result


def _number(value: float | None, whole: bool = False) -> str:
    """Four significant digits, or none after the point: a number that a script can sort by; "" for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if whole or abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 1e-4 else "0"


def settings_of(runs: Iterable[dict]) -> list[dict]:
    """Distinct hyper-parameters of runs, besides seeds and code lengths, which the rows of runs have:
    [{number, name, method, bits, values}], of a method and of all its code lengths that have them.

    Each run that has such gets the number of its own as "settings", the others None.
    """
    found: dict[tuple, dict] = {}
    for run in runs:
        values = tuple(pair for pair in run["hyperparameters"] if pair[0] not in ("bits", "seed"))
        run["settings"] = None
        if run["status"] == "done" and values:
            key = (run["method"], values)
            entry = found.setdefault(
                key,
                {
                    "number": len(found) + 1,
                    "name": run["name"],
                    "method": run["method"],
                    "bits": [],
                    "values": values,
                },
            )
            entry["bits"] += [run["bits"]] * (run["bits"] not in entry["bits"])
            run["settings"] = entry["number"]
    return list(found.values())


def made_with(runs: Iterable[Mapping]) -> list[dict]:
    """Distinct (git commit, device, versions) of the runs that are done, with how many used each."""
    counts: dict[tuple, int] = {}
    for run in runs:
        if run["status"] == "done":
            made = run["run"]
            versions = tuple(
                sorted((name, plain(text)) for name, text in (made.get("versions") or {}).items())
            )
            key = (
                plain(made.get("git_commit") or "unknown"),
                plain(made.get("device") or "unknown"),
                versions,
            )
            counts[key] = counts.get(key, 0) + 1
    return [
        {"commit": commit, "device": device, "versions": versions, "runs": count}
        for (commit, device, versions), count in counts.items()
    ]


def fingerprints(runs: Iterable[Mapping]) -> list[dict]:
    """Distinct fingerprints by protocol: [{protocol, title, dataset, split, seeds}]."""
    seeds_of: dict[tuple, dict[int, None]] = {}
    for run in runs:
        if run["status"] == "done":
            prints = run["run"].get("fingerprints") or {}
            key = (run["protocol"], run["title"])
            key += tuple(plain(prints.get(name) or "unknown") for name in ("dataset", "split"))
            seeds_of.setdefault(key, {})[run["seed"]] = None
    return [
        {
            "protocol": protocol,
            "title": title,
            "dataset": dataset,
            "split": split,
            "seeds": ", ".join(map(str, sorted(seeds))),
        }
        for (protocol, title, dataset, split), seeds in seeds_of.items()
    ]
