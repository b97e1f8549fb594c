"""Summaries over tables of a leaderboard: which tables, as `summary.yaml` of its folder says, and their rows.

See `statistics.summary` for what is computed.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from reporting.leaderboard.boards import Boards, as_table, main_metric
from reporting.leaderboard.settings import check_keys, read_yaml
from reporting.statistics import summary
from reporting.tables.model import Table
from reporting.tables.runs import Results, Run
from tiebench.messages import did_you_mean

FILE = "summary.yaml"
KEYS = {
    "tables": dict,
    "sets": dict,
    "variants": dict,
    "published": str,
    "printed": dict,
    "frontiers": list,
}
OF_ENTRY: dict[str, dict[str, type]] = {
    "tables": {"bits": list, "metric": str},
    "sets": {"title": str, "tables": list},
    "variants": {"of": str, "differs": str},
    "printed": {"title": str, "metric": str},
}
# Sets that are not in the file: all tables, and these with the variants and what a paper prints.
EVERY, ORDERS, VARIANTS = "every", "orders", "orders_and_variants"
# The name of a set, or the protocols of one.
Set = str | Sequence[str]
COSTS = ("fit", "encode", "bits", "search")
COLUMNS = (
    *("statistic", "set", "table", "metric", "method", "other", "bits", "tau"),
    *("value", "low", "high", "p", "tables", "methods", "cost", "front", "over"),
)


@dataclass(frozen=True)
class Plan:
    """What summary.yaml says, in a folder; metric, methods: instead of a table's own, None for those."""

    folder: Path
    said: Mapping[str, Any]
    metric: str | None = None
    methods: Sequence[str] | None = None
    _models: dict[tuple, tuple[Table, Results]] = field(default_factory=dict, repr=False, compare=False)

    def tables(self, name: str) -> list[str]:
        """Protocols of a set. Raises ValueError for an unknown name."""
        known = [*self.said.get("sets", {}), EVERY, ORDERS, VARIANTS]
        if name not in known:
            raise ValueError(f"{FILE} has no set {name!r}{did_you_mean(name, known)}")
        own = self.said.get("sets", {}).get(name)
        variants = list(self.said.get("variants", {})) * (name == VARIANTS)
        return own["tables"] if own else [*self.said["tables"], *variants]

    def block(self, protocol: str, boards: Boards) -> dict[str, Any]:
        """Protocol, metric and bits of a table; of one that does not count those of its board."""
        board, entry = boards[protocol], self.said["tables"].get(protocol)
        metric = self.metric or (entry.get("metric", "ap") if entry else main_metric(board))
        bits = entry["bits"] if entry else board.bits
        boards.check(protocol, metric, bits)
        return {"protocol": protocol, "metric": metric, "bits": bits}

    def model(
        self, name: Set, boards: Boards, needs: Iterable[str] = ("per_query",)
    ) -> tuple[Table, Results]:
        """The table of a set, and what was measured of it, with what a figure NEEDS."""
        asked = name if isinstance(name, str) else tuple(name), tuple(needs)
        if asked not in self._models:
            self._models[asked] = self._model(name, boards, needs)
        return self._models[asked]

    def _model(self, name: Set, boards: Boards, needs: Iterable[str]) -> tuple[Table, Results]:
        protocols = self.tables(name) if isinstance(name, str) else list(name)
        blocks = [self.block(protocol, boards) for protocol in protocols]
        used = [boards[protocol] for protocol in protocols]
        runs = [run for protocol in protocols for run in boards.runs(protocol, needs)]
        if name in (ORDERS, VARIANTS) and self.metric is None and "published" in self.said:
            printed, of_paper = self._printed()
            blocks, runs = blocks + printed, runs + of_paper
        table = as_table(used, blocks, self.methods)
        results = Results.of(table, runs)
        if "trials" in needs:
            return table, results
        # Only methods that are summarised: figures say of which codes collapsed.
        of = summary.blocks_of(table, results)
        if name not in (ORDERS, VARIANTS):
            of = of.paired() if name == EVERY else of.everywhere()
        return table.only(of.methods) if of.methods else table, results

    def _printed(self) -> tuple[list[dict], list[Run]]:
        """What a paper prints, as blocks and runs."""
        path = self.folder / self.said["published"]
        content = read_yaml(path)
        blocks: dict[str, dict] = {}
        runs: list[Run] = []
        for protocol, entry in self.said["printed"].items():
            name, metric = f"{content['source']}:{protocol}", entry.get("metric", "ap")
            of = [one for one in content["values"] if (one["protocol"], one["metric"]) == (protocol, metric)]
            if not of:
                raise ValueError(f"{path} has no {metric} of {protocol!r}, which {FILE} asks for")
            bits = sorted({one["bits"] for one in of})
            blocks[name] = {"protocol": name, "metric": metric, "bits": bits, "title": entry["title"]}
            runs += [
                Run(
                    name, one["method"], one["bits"], 0, metrics={metric: one["value"]}, from_leaderboard=True
                )
                for one in of
            ]
        return list(blocks.values()), runs

    def source(self, name: str, boards: Boards) -> dict:
        """What decides a figure of a set besides its boards."""
        printed = self._printed()[1] if name in (ORDERS, VARIANTS) and "published" in self.said else []
        values = [[run.protocol, run.method, run.bits, *run.metrics.values()] for run in printed]
        blocks = [self.block(protocol, boards) for protocol in self.tables(name)]
        return {"blocks": blocks, "printed": hashlib.sha256(json.dumps(values).encode()).hexdigest()}


@lru_cache(maxsize=1)
def plan_of(boards: Boards) -> Plan:
    """The plan of the folder of these boards, which pages ask for many times."""
    return read(boards.folder)


def read(folder: str | Path, metric: str | None = None, methods: Sequence[str] | None = None) -> Plan:
    """The plan of a folder of leaderboards.

    Raises ValueError, one line with the nearest name, for a file that is missing or is none.
    """
    path = Path(folder, FILE)
    said = read_yaml(path)
    try:
        check_keys(said, KEYS, FILE)
        for part, known in OF_ENTRY.items():
            for name, entry in said.get(part, {}).items():
                check_keys(entry, known, f"{part}, {name}")
        listed = [(name, one) for name, entry in said.get("sets", {}).items() for one in entry["tables"]]
        listed += [("frontiers", one) for one in said.get("frontiers", ())]
        for name, one in listed:
            if one not in said["tables"]:
                raise ValueError(f"{name} has an unknown table {one!r}{did_you_mean(one, said['tables'])}")
    except KeyError as error:
        raise ValueError(f"{path}: the key {error.args[0]} is missing") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return Plan(Path(folder), said, metric, methods)


def _sets(plan: Plan, tables: Sequence[str] | None) -> dict[str, Set]:
    """The sets of methods with scores everywhere, by name: those of the file, or one of these tables."""
    return {"chosen": tables} if tables else {name: name for name in plan.said.get("sets", {})}


def _frontiers(plan: Plan, tables: Sequence[str] | None) -> list[str]:
    return [one for one in plan.said.get("frontiers", ()) if not tables or one in tables]


def rows(plan: Plan, boards: Boards, tables: Sequence[str] | None = None) -> Iterable[dict]:
    """Rows of COLUMNS, statistic after statistic. tables: instead of the plan's sets, one set of these."""
    for name, of in _sets(plan, tables).items():
        say(f"ranks, IQM and profiles: {name}")
        yield from _standing(name, *plan.model(of, boards))
    say("pairs")
    yield from _pairs(*plan.model(tables or EVERY, boards))
    say("orders")
    yield from _orders(*plan.model(tables or VARIANTS, boards, ()))
    for protocol in _frontiers(plan, tables):
        say(f"frontiers: {protocol}")
        yield from frontier_rows(protocol, *plan.model([protocol], boards, ["trials"]))


def write(
    plan: Plan, boards: Boards, results: str | Path, tables: Sequence[str] | None = None
) -> Iterable[Path]:
    """Write summary.csv and the figures into a folder of results; the paths, one after the other."""
    import pandas as pd

    from reporting import figures, frames
    from reporting.drawing.axes import NothingToDraw
    from tiebench import figure_style
    from tiebench.files import write_text

    target = Path(results, "summary.csv")
    write_text(target, frames.to_csv(pd.DataFrame(rows(plan, boards, tables), columns=list(COLUMNS))))
    yield target
    wanted = [(kind, name, of) for kind in ("ranks", "profiles") for name, of in _sets(plan, tables).items()]
    for kind, every in (("improvement", EVERY), ("agreement", ORDERS)):
        wanted.append((kind, "chosen", tables) if tables else (kind, every, every))
    wanted += [("cost", one, [one]) for one in _frontiers(plan, tables)]
    for kind, name, of in wanted:
        say(f"figure {kind}: {name}")
        costs: dict[str, Any] = {"costs": COSTS} if kind == "cost" else {}
        needs = ["trials"] if costs else figures.describe(kind).needs
        try:
            drawn = figures.draw(kind, *plan.model(of, boards, needs), **costs)
        except NothingToDraw as error:
            say(f"not drawn: {error}")
            continue
        for ending in figure_style.KINDS:
            path = Path(results, "figures", f"summary_{kind}_{name}.{ending}")
            figure_style.save(drawn, path)
            yield path


def say(what: str) -> None:
    print(f"summary: {what}", file=sys.stderr, flush=True)


def _standing(name: str, table: Table, results: Results) -> Iterable[dict]:
    blocks = summary.blocks_of(table, results)
    found, plain = summary.standing(blocks), {"set": name, "over": summary.resampled(blocks)}
    for place in found.order:
        of = plain | {"method": found.methods[place]}
        every = of | {"tables": len(blocks), "methods": len(found.methods)}
        for statistic, values in (("rank", found.rank), ("iqm", found.iqm)):
            yield every | {"statistic": statistic} | _interval(values[:, place])
        for block, rank in zip(blocks, found.by_table[:, place].tolist()):
            of_table = {"statistic": "rank_in_table", "table": block.name, "value": rank}
            yield {"set": name, "method": found.methods[place]} | of_table
        for at, tau in enumerate(summary.TAUS.tolist()):
            yield every | {"statistic": "profile", "tau": tau} | _interval(found.profile[:, place, at])


def _pairs(table: Table, results: Results) -> Iterable[dict]:
    blocks = summary.blocks_of(table, results)
    found = summary.improvement(blocks)
    for one, method in enumerate(found.methods):
        for other, against in enumerate(found.methods):
            if found.tables[one, other] >= summary.LEAST_TABLES and one != other:
                yield {
                    "statistic": "probability_above",
                    "method": method,
                    "other": against,
                    "value": float(found.probability[one, other]),
                    "p": float(found.p[one, other]),
                    "tables": int(found.tables[one, other]),
                }


def _orders(table: Table, results: Results) -> Iterable[dict]:
    blocks = summary.blocks_of(table, results)
    for (one, other), (tau, p, number) in summary.agreement(blocks).items():
        pair = {"statistic": "tau_b", "table": blocks[one].name, "other": blocks[other].name}
        yield pair | {"value": tau, "p": p, "methods": number}


def frontier_rows(protocol: str, table: Table, results: Results) -> Iterable[dict]:
    """Rows of COLUMNS, one per cost of COSTS, method and code length of a protocol."""
    from reporting.figures.cost import COSTS as WORDS
    from reporting.figures.cost import front_of, points_of

    (group,) = table.groups
    for cost in COSTS:
        points = points_of(group, cost, results)
        front = set(front_of(table, group.protocol, group.metric, points))
        for method, of in points.items():
            for bits, point in of.items():
                yield {
                    "statistic": "frontier",
                    "table": protocol,
                    "metric": group.metric,
                    "method": method,
                    "other": WORDS[cost],
                    "bits": bits,
                    "value": point[1],
                    "cost": point[0],
                    "front": point in front and table.competes(method, protocol),
                }


def _interval(values) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), values.tolist()))
