"""Tables to the leaderboard: what is written of a protocol, and what is refused."""

import datetime
import hashlib
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

import tiebench
from reporting import frames, leaderboard, published
from reporting.leaderboard import digests, per_query, training_curves, trials
from reporting.leaderboard.training_curves import TRAINING
from reporting.leaderboard.trials import TRIALS
from reporting.records.read import table_results
from reporting.tables.model import Filled, Group, Style, Table
from reporting.tables.runs import Results, Run, other_fingerprint
from reporting.tables.titles import UNCODED
from tiebench import metrics
from tiebench.comparison import base_metric
from tiebench.files import replaced, write_json
from tiebench.leaderboards import PROVENANCE, TIDY
from tiebench.messages import joined

# Rows of the tidy file besides the metrics of the tables; all others are in the file of runs.
ALSO = ("ap", "ap@K", "ndcg", "ndcg@K", "precision@K", "recall@K")
WITH_RANGE = ("ap", "ap@K")  # and the metrics of the tables
CELL = ["protocol", "metric", "method", "bits"]
# Hyper-parameters that the provenance leaves out: names of cells and rows of runs.csv already say them.
EACH_RUN = ("bits", "seed")


@dataclass(frozen=True)
class _Part:
    """What a table has of a protocol: the table's rows, further rows, all runs, and where they are."""

    table: Table
    own: pd.DataFrame
    more: pd.DataFrame
    runs: list[Run]
    results: Path


def publish(
    tables: Sequence[str],
    results: str | Path = "results",
    folder: str | Path = leaderboard.FOLDER,
    replace: bool = False,
    resources: str | Path = "resources",
    say: Callable[[str], object] = print,
    tunings: Sequence[str] = (),
) -> list[Path]:
    """Write the files of every protocol of published tables, and return their paths.

    resources: has the splits and datasets of the runs; say: is given a line on what is not recorded of them.
    tunings: names of searches whose trials are published too, results/tuning/<name>.csv.

    Cells that the files have and the tables do not are kept, unless `replace`, and so are those that the
    files have with the same hyper-parameters and more seeds, of which `say` is told; cells that a table
    itself took from the leaderboard are left as they are. Everything is read and checked before anything is
    written.

    Raises ValueError for a cell that has no score from some of its seeds, for one that two tables give, for
    runs of uncommitted code, where the kept cells were made from another dataset, split or settings, for a
    search in none of the protocols, and where runs have other hyper-parameters than one chose; OSError for a
    file that cannot be read.
    """
    tried = trials.of_tunings(tunings, results)
    found: dict[str, list[published.Published]] = {}
    for one in [published.read(name, results) for name in tables]:
        for protocol in dict.fromkeys(group.protocol for group in one.table.groups):
            found.setdefault(protocol, []).append(one)
    known = {name for of, ones in found.items() for one in ones for name in (of, *one.table.members(of))}
    for name in tunings:
        searched = dict.fromkeys(row["protocol"] for row in tried if row["tuning"] == name)
        if known.isdisjoint(searched):
            raise ValueError(f"tuning {name} searched in {joined(searched)}: publish a table of it, too")
    kept_boards = {
        protocol: leaderboard.read(protocol, folder)
        for protocol in found
        if not replace and Path(folder, f"{protocol}{PROVENANCE}").exists()
    }
    made = {}
    for protocol, of_tables in found.items():
        entries = [_part(one, protocol, Path(results)) for one in of_tables]
        # What methods refuse is added to a board that has runs.
        board = protocol in kept_boards and any(len(part.own) for part in entries)
        if not (board or any(part.runs for part in entries)):
            say(f"{protocol}: left out, no run of it was made here and has a score")
            continue
        _check(protocol, entries)
        if (old := kept_boards.get(protocol)) is not None:
            entries = _without_fewer_seeds(protocol, entries, old, say)
        texts, about = _files(protocol, entries, old, list(tables))
        runs = [run for part in entries for run in part.runs]
        kept, missing = per_query.record(about, runs, old, folder, resources)
        texts |= trials.record(protocol, tried, runs, old, folder)
        texts |= training_curves.record(protocol, runs, old, folder)
        contents = {name: text.encode() for name, text in texts.items()} | kept
        about["sha256"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
        made[protocol] = contents, about
        for line in missing:
            say(line)
    if not made:
        raise ValueError(
            f"nothing to publish: {joined(tables)} have no run that was made here and has a score"
        )
    paths = []
    for contents, about in made.values():
        for name, content in contents.items():
            with replaced(Path(folder, name)) as temporary:
                temporary.write_bytes(content)
            paths.append(Path(folder, name))
        paths.append(Path(folder, f"{about['protocol']}{PROVENANCE}"))
        write_json(paths[-1], about)
        for ending in (".per_query*.npz", TRIALS, TRAINING):  # they may be left out now
            for path in Path(folder).glob(f"{about['protocol']}{ending}"):
                if path.name not in contents:
                    path.unlink()
    return paths


def _part(found: published.Published, protocol: str, results: Path) -> _Part:
    table = found.table
    own = found.tidy[found.tidy["protocol"] == protocol]
    cells = own[["protocol", "method", "bits"]].itertuples(index=False, name=None)
    elsewhere = [cell in table.filled.cells or table.style(cell[1]).external for cell in cells]
    own = own[~np.array(elsewhere, bool)]
    rows, more, runs = [own], [], []
    folds = table.members(protocol)
    for name in dict.fromkeys((protocol, *folds)):
        part = _narrowed(table, protocol, name)
        of_part = table_results(part, results, ["per_query", "training"] if name in folds else ())
        if name != protocol:
            rows.append(frames.tidy(part, of_part))
        further = frames.tidy(replace(part, groups=_more_groups(part.groups, of_part)), of_part)
        more.append(further[further["status"].isin(["done", UNCODED])])
        runs += [run for run in of_part if run.status == "done" and name in folds]
    own, more = (pd.concat(frames, ignore_index=True) for frames in (rows, more))
    return _Part(table, own, more, runs, results)


def _narrowed(table: Table, protocol: str, name: str) -> Table:
    """A table narrowed to one protocol, or to one of its folds; without what was filled, and without codes of
    other programs: nobody can make them again. What papers print stands in the table's own rows."""
    groups = []
    for group in table.groups:
        first = group.bits[0]  # of a block, all code lengths of a method are run here, or none
        methods = [
            method
            for method in group.methods
            if not table.style(method).external and (protocol, method, first) not in table.filled.cells
        ]
        if group.protocol == protocol and methods:
            groups.append(replace(group, protocol=name, methods=tuple(methods)))
    return replace(
        table,
        groups=tuple(groups),
        folds={protocol: tuple(table.members(protocol))} if name == protocol else {},
        sources=(),
        claims=(),
        refused={(name, *cell[1:]): reason for cell, reason in table.refused.items() if cell[0] == protocol},
        uncoded=(name,) if protocol in table.uncoded else (),
        # No scores of other runs, but the fingerprints of their data are compared with those of these runs.
        filled=Filled(fingerprints=table.filled.fingerprints),
    )


def _more_groups(groups: Sequence[Group], results: Results) -> tuple[Group, ...]:
    """Groups of the metrics of ALSO and of ranges, of each cell of `groups`, without what these have."""
    known = dict.fromkeys(name for run in results for name in run.metrics)
    found, taken = [], set()
    for group in groups:
        taken |= {(group.metric, bits, method) for bits in group.bits for method in group.methods}
    for group in groups:
        for name in (name for name in known if _is_shown(name, group.metric)):
            for bits in group.bits:
                rows = tuple(method for method in group.methods if (name, bits, method) not in taken)
                taken |= {(name, bits, method) for method in rows}
                if rows:
                    found.append(replace(group, metric=name, bits=(bits,), methods=rows))
    return tuple(found)


def _is_shown(name: str, own: str) -> bool:
    """Whether a score has rows in the tidy file besides those of a table whose block has the metric `own`."""
    base = base_metric(name)
    try:
        entry = metrics.resolve(base)[0].name
    except ValueError:  # a count, say of queries
        return False
    if base != name:
        return base == own or entry in WITH_RANGE
    return entry in ALSO


def _files(
    protocol: str, parts: Sequence[_Part], old: leaderboard.Board | None, tables: list[str]
) -> tuple[dict[str, str], dict]:
    """Name -> text of the CSV files of a protocol, and its provenance without their sha256."""
    about = _provenance(protocol, parts, tables)
    rows = pd.concat([part.own for part in parts] + [part.more for part in parts], ignore_index=True)
    rows = rows.drop_duplicates(CELL, ignore_index=True)
    made = {
        (*run.cell, run.seed): (leaderboard.run_row(run), part.results) for part in parts for run in part.runs
    }
    runs = [row | {digests.COLUMN: digests.digest(results, row)} for row, results in made.values()]
    if old is not None:
        _check_alike(old, about)
        rows, runs, about = _added(old, rows, runs, about)
    order = {name: place for place, name in enumerate(rows["protocol"].drop_duplicates())}
    rows = rows.sort_values("protocol", key=lambda names: names.map(order), kind="stable")
    texts = {
        f"{protocol}{TIDY}": frames.to_csv(rows),
        f"{protocol}{leaderboard.RUNS}": leaderboard.runs_to_csv(runs),
    }
    about["seeds"], about["runs"] = sorted({run["seed"] for run in runs}), len(runs)
    return texts, about


def _added(old: leaderboard.Board, rows: pd.DataFrame, runs: list[dict], about: dict) -> tuple:
    """What the files hold after new rows and runs: of cells that both have, the new, in the old places."""
    new = set(zip(rows["method"], rows["bits"], strict=True)) - {(UNCODED, bits) for bits in rows["bits"]}
    kept = [(row.method, row.bits) not in new for row in old.tidy.itertuples()]
    rows = pd.concat([old.tidy[kept], rows]).drop_duplicates(CELL, keep="last")
    places = {cell: place for place, cell in enumerate(frames.rows_of(old.tidy))}
    of_rows = [places.get(cell, len(places)) for cell in frames.rows_of(rows)]
    rows = rows.iloc[np.argsort(of_rows, kind="stable")]
    kept_runs = [run for run in old.runs if (run["method"], run["bits"]) not in new]
    merged = dict(about)
    for key in ("tables", "git_commits", "versions", "devices", "threads", "published"):
        merged[key] = _distinct([*old.about[key], *about[key]])
    cells = {_cell_words(run["method"], run["bits"]) for run in kept_runs}
    chosen = {cell: given for cell, given in old.about["hyperparameters"].items() if cell in cells}
    merged["hyperparameters"] = dict(sorted((chosen | about["hyperparameters"]).items()))
    of_protocols: dict[str, list[dict]] = {of["protocol"]: [] for of in old.about["fingerprints"]}
    for of in _distinct([*old.about["fingerprints"], *about["fingerprints"]]):
        of_protocols.setdefault(of["protocol"], []).append(of)
    merged["fingerprints"] = [of for found in of_protocols.values() for of in found]
    merged["methods"] = old.about["methods"] | about["methods"]
    merged["seconds"] = round(old.about["seconds"] + about["seconds"], 1)
    return rows, [*kept_runs, *runs], merged


def _check(protocol: str, parts: Sequence[_Part]) -> None:
    tidy = pd.concat([part.own for part in parts], ignore_index=True)
    for row in tidy[tidy["status"].isin(["partial", "missing"])].itertuples():
        raise ValueError(f"{protocol}: {row.method}, {row.bits} bits is {row.status}: {row.reason}")
    twice = tidy[tidy[CELL].duplicated() & (tidy["method"] != UNCODED)]
    for row in twice.itertuples():
        cell = f"{row.protocol}, {row.metric}, {row.method}, {row.bits} bits"
        raise ValueError(f"{cell} is in two tables; publish one of them")
    seeds: dict[tuple, list[int]] = {}
    for part in parts:
        for method, bits in {(run.method, run.bits) for run in part.runs}:
            own = part.table.method_seeds(method)
            if seeds.setdefault((method, bits), own) != own:
                cell = f"{protocol}, {method}, {bits} bits"
                raise ValueError(f"{cell} has other seeds in another table; publish one of them")


def _without_fewer_seeds(
    protocol: str, parts: Sequence[_Part], old: leaderboard.Board, say: Callable[[str], object]
) -> list[_Part]:
    """The parts without cells that the files have of the same hyper-parameters, from these and more seeds."""
    seeds: dict[tuple[str, int], set[int]] = {}
    for row in old.runs:
        seeds.setdefault((row["method"], row["bits"]), set()).add(row["seed"])
    new: dict[tuple[str, int], list[Run]] = {}
    for run in (run for part in parts for run in part.runs):
        new.setdefault((run.method, run.bits), []).append(run)
    kept = set()
    for cell, runs in new.items():
        words, held = _cell_words(*cell), seeds.get(cell, set())
        given = _hyperparameters(runs)[words]
        fewer = {run.seed for run in runs} < held
        if fewer and old.about["hyperparameters"].get(words) == given:
            kept.add(cell)
            say(f"{protocol}: {words} is kept, which has the same settings and {len(held)} seeds")

    def without(frame: pd.DataFrame) -> pd.DataFrame:
        return frame[~frame.set_index(["method", "bits"]).index.isin(kept)] if kept else frame

    return [
        replace(
            part,
            own=without(part.own),
            more=without(part.more),
            runs=[run for run in part.runs if (run.method, run.bits) not in kept],
        )
        for part in parts
    ]


def _check_alike(old: leaderboard.Board, about: Mapping) -> None:
    """Raise ValueError where the scores of a file and new ones are not of the same protocol."""
    new = {entry["protocol"]: entry for entry in about["fingerprints"]}
    faults = [other_fingerprint(name, new.get(name, {}), of) for name, of in old.fingerprints().items()]
    if fault := next(filter(None, [*faults, leaderboard.other_setting(old, about["settings"])]), None):
        remedy = "publish with --replace to drop the scores that are there"
        raise ValueError(f"{old.protocol}: {fault}; {remedy}")


def _cell_words(method: str, bits: int) -> str:
    return f"{method}, {bits} bits"


def _provenance(protocol: str, parts: Sequence[_Part], tables: list[str]) -> dict:
    """What made the scores: settings, code, versions, machines."""
    table = parts[0].table
    runs = [run for part in parts for run in part.runs]
    commits = _distinct(run.git_commit for run in runs)
    for commit in commits:
        if commit is None or commit.endswith("+"):
            folders = _distinct(f"{run.protocol}/{run.method}" for run in runs if run.git_commit == commit)
            made = f"runs were made by code that no commit has ({commit})"
            again = f"delete {', '.join(folders)} in results/runs/, and run snakemake with -R collect_table"
            raise ValueError(f"{protocol}: {made}; commit it, {again}")
    styles = {method: style for part in parts for method, style in part.table.styles.items()}
    settings = table.settings.get(protocol)
    named = dict.fromkeys(method for part in parts for method in part.own["method"])
    return {
        "protocol": protocol,
        # Its own, not that of a block, which may be the name of a metric.
        "title": table.protocols.get(protocol, protocol),
        "tables": tables,
        "settings": None if settings is None else settings.published,
        "methods": {
            method: {key: getattr(styles.get(method, Style()), key) for key in leaderboard.STYLE}
            for method in named
            if method != UNCODED
        },
        "git_commits": commits,
        "versions": _distinct(run.versions for run in runs),
        "devices": _distinct(run.device for run in runs),
        "threads": _distinct(run.threads for run in runs),
        "fingerprints": _distinct({"protocol": run.protocol, **run.fingerprints} for run in runs),
        "hyperparameters": _hyperparameters(runs),
        "seconds": round(sum(run.seconds or 0.0 for run in runs), 1),
        "published": [
            {
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "tiebench": tiebench.__version__,
                "processor": processor(),
                "tables": tables,
            }
        ],
    }


def _hyperparameters(runs: Iterable[Run]) -> dict[str, list]:
    """Cell in words -> the hyper-parameters of its runs, each once."""
    found: dict[str, list] = {}
    for run in runs:
        of = found.setdefault(_cell_words(run.method, run.bits), [])
        given = {name: value for name, value in run.hyperparameters.items() if name not in EACH_RUN}
        if given not in of:
            of.append(given)
    return found


def _distinct(values: Iterable) -> list:
    found: list = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def processor() -> str:
    """The model of this machine's processor; Linux names it in a file, other systems by `platform`."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
