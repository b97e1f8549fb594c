"""What the page shows of runs: each with its settings and costs, versions, fingerprints."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from reporting.page.templates import plain
from reporting.tables.model import Group, Table
from reporting.tables.runs import KEY, NO_RECORD, Results, Run
from reporting.tables.titles import LEADERBOARD


def shown_runs(table: Table, results: Results) -> dict:
    """What the template shows of the runs of a table."""
    runs = _rows(table, results)
    return {
        "settings": _settings(runs),
        "logs": _logs(runs),
        "runs": runs,
        "metrics": list(dict.fromkeys(metric for run in runs for metric, _ in run["scores"])),
        "done": sum(run["status"] == "done" for run in runs),
        "asked": sum(run["here"] for run in runs),
        "made_with": _made_with(runs),
        "fingerprints": _fingerprints(runs),
    }


def _rows(table: Table, results: Results) -> list[dict]:
    """Every run that the table asks for, once, in its order; one that was not recorded is missing."""
    rows = []
    for cell, asking in table.cells.items():
        runs = results.cell(*cell)
        for seed in table.cell_seeds(cell[1], runs):
            run = runs.get(seed) or Run(*cell, seed, status="missing", reason=NO_RECORD)
            rows.append(_row(table, run, asking))
    return rows


def _row(table: Table, run: Run, asking: Sequence[Group]) -> dict:
    status, reason = run.status, run.reason
    if run.from_leaderboard and status == "done":
        status, reason = LEADERBOARD, "not run here"
    folder = ""
    if status == "done" and not run.folds:  # the runs of folds are in folders of their own
        folder = "/".join(quote(str(part), safe="") for part in ("runs", *run.cell, run.seed))
    return {key: getattr(run, key) for key in KEY} | {
        "title": asking[0].title,
        "name": table.method_title(run.method),
        "here": not run.from_leaderboard,
        "status": status,
        "reason": reason,
        "scores": [
            (metric, score)
            for metric in dict.fromkeys(group.metric for group in asking)
            if (score := run.score(metric)) is not None
        ],
        "numbers": [
            _number(run.fit_seconds),
            _number(run.encode_seconds),
            _number(run.peak_memory_mb, whole=True),
        ],
        "hyperparameters": sorted((name, plain(value)) for name, value in run.hyperparameters.items()),
        "folder": folder,
        "log": quote(run.log.removeprefix("results/")),
        "run": run,
    }


def _number(value: float | None, whole: bool = False) -> str:
    """Four significant digits, or none after the point: a number that a script can sort by; "" for None."""
    if value is None:
        return ""
    return f"{value:.0f}" if whole or abs(value) >= 1000 else f"{value:.4g}" if abs(value) >= 1e-4 else "0"


def _settings(runs: Iterable[dict]) -> list[dict]:
    """Distinct hyper-parameters of runs, besides seeds and code lengths, which the rows of runs have:
    [{number, name, bits, values}], of a method and of all its code lengths that have them.

    Each run that has such gets the number of its own as "settings", the others None.
    """
    found: dict[tuple, dict] = {}
    for run in runs:
        values = tuple(pair for pair in run["hyperparameters"] if pair[0] not in ("bits", "seed"))
        run["settings"] = None
        if run["status"] == "done" and values:
            entry = found.setdefault(
                (run["method"], values),
                {"number": len(found) + 1, "name": run["name"], "bits": [], "values": values},
            )
            entry["bits"] += [run["bits"]] * (run["bits"] not in entry["bits"])
            run["settings"] = entry["number"]
    return list(found.values())


def _logs(runs: Sequence[dict]) -> list[str]:
    """The logs that several runs share, as runs of one job do.

    Each of these runs gets the number of its own as "shared_log", from 1; the others None.
    """
    counts = Counter(run["log"] for run in runs if run["log"])
    shared = {log: number for number, log in enumerate((log for log in counts if counts[log] > 1), start=1)}
    for run in runs:
        run["shared_log"] = shared.get(run["log"])
    return list(shared)


def _made_with(runs: Iterable[Mapping]) -> list[tuple[tuple, int]]:
    """Distinct (git commit, device, versions) of the runs that are done, and how many used each."""

    def made(run: Run) -> tuple:
        versions = tuple(sorted((name, plain(text)) for name, text in run.versions.items()))
        return plain(run.git_commit or "unknown"), plain(run.device or "unknown"), versions

    return list(Counter(made(run["run"]) for run in runs if run["status"] == "done").items())


def _fingerprints(runs: Iterable[Mapping]) -> list[tuple[str, ...]]:
    """Distinct fingerprints by protocol: [(protocol, title, dataset, split, seeds)]."""
    seeds_of: dict[tuple, dict[int, None]] = {}
    for run in runs:
        if run["status"] == "done":
            prints = run["run"].fingerprints
            key = (run["protocol"], run["title"])
            key += tuple(plain(prints.get(name) or "unknown") for name in ("dataset", "split"))
            seeds_of.setdefault(key, {})[run["seed"]] = None
    return [(*key, ", ".join(map(str, sorted(seeds)))) for key, seeds in seeds_of.items()]
