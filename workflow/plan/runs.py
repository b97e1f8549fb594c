"""The plan: from the configuration to the inputs, settings, priorities and resources of every job.

Rules only call it (workflow/rules/common.smk turns its functions into input functions). Functions take
names, as the wildcards of the rules have them, and return paths relative to the working directory, or
settings that are plain JSON. Nothing here imports Snakemake, and the only thing written are the files of
`write_settings`. Every mistake is a ConfigurationError of one line.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import NamedTuple

from reporting import leaderboard
from reporting.tables.model import Table, method_seeds
from reporting.tables.runs import AS_GIVEN, ELSEWHERE, NOTHING_TO_CHOOSE
from tiebench.files import write_text
from workflow.configuration import leaderboard_rows
from workflow.configuration.hyperparameters import budget_words, hyperparameters, search_of, trained_as
from workflow.plan.data import DataPlan, pick

SETTINGS = Path(".snakemake/tiebench/settings")
CODE = Path(".snakemake/tiebench/code")
LOCK = Path(".snakemake/tiebench/lock")

DATASET_FILES = ("items.npy", "labels.npy", "given_split.npy", "dataset.json")
SPLIT_FILES = ("split.npz", "split.json")
TRAINED = ("codes.npz", "model.npz", "training.jsonl", "run.json")
SCORED = ("scores.json", "per_query.npz")
TABLE_ENDINGS = (".csv", ".tidy.csv", ".statistics.csv", ".claims.csv", ".health.csv", ".md", ".tex", ".json")
FIGURE_ENDINGS = (".pdf", ".svg", ".png")

NAME = "[a-z0-9_]+"


class Cell(NamedTuple):
    """A cell of a table: what its runs, one per seed, are made of."""

    protocol: str
    method: str
    bits: int


def write_settings(settings, folder=SETTINGS):
    """Write settings to a file that is named for its content, unless it exists; its path."""
    text = json.dumps(settings, sort_keys=True, indent=1) + "\n"
    path = Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json")
    if not path.is_file():
        # Another process may plan in this folder, and `write_text` is for files that have one writer.
        own = path.with_name(f"{os.getpid()}.{path.name}")
        write_text(own, text)
        own.replace(path)
    return str(path)


def one_of(names):
    """Pattern that matches these names and nothing else; no names: nothing at all."""
    return "|".join(map(re.escape, names)) or "(?!)"


def runs_of(files):
    """<bits>/<seed> of each run that the output files of a job belong to."""
    return list(dict.fromkeys("/".join(Path(file).parts[-3:-1]) for file in files))


def _scripts(name):
    """An adapter that reads codes, and what opens its files."""
    return [f"workflow.scripts.{name}", "workflow.stages.protocol_data", "workflow.stages.run_records"]


def _strings(value):
    """All strings anywhere in a structure of lists and mappings, without keys."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        value = value.values()
    return set().union(*map(_strings, value)) if hasattr(value, "__iter__") else set()


class Plan(DataPlan):
    """What is to be made, and of what. configuration: a `workflow.configuration.merged.Configuration`."""

    cached = (
        *DataPlan.cached,
        "cells",
        "refusal",
        "served_cells",
        "trained_cells",
        "end_to_end",
        "table_settings",
        "asked",
    )

    # -- tables --------------------------------------------------------------------------------------------

    def cells(self, table):
        """All cells of a table, in its order, including those that are refused."""
        entry = self.entry("tables", table)
        found: dict[Cell, None] = {}
        for block in entry["blocks"]:
            for method in block.get("methods") or entry["methods"]:
                for bits in block["bits"]:
                    found[Cell(block["protocol"], method, bits)] = None
        return tuple(found)

    def refusal(self, cell):
        """Why there will be no run of a cell, or None: it is skipped, or its method cannot serve it."""
        protocol = self["protocols"][cell.protocol]
        if {cell.protocol, protocol["dataset"]} & set(self["skip"]):
            return "skipped"
        about, kind = self.configuration.metadata(cell.method), self.affinity_kind(cell.protocol)
        if about.supervision != "none" and kind.said.of_queries_only:
            relevance = f"{cell.protocol} has affinities of queries with the database only"
            return f"{cell.method} learns from affinities or labels, and {relevance}"
        if about.supervision == "labels" and kind.said.from_features:
            return f"{cell.method} learns from labels, and {cell.protocol} has affinities from distances only"
        if about.supervision == "labels" and not about.several_labels and "classes" not in kind.said.labels:
            return f"{cell.method} has no form for items with several labels"
        return None

    def served_cells(self, table):
        """The cells of a table that get runs; the others get their reason in the table."""
        return tuple(cell for cell in self.cells(table) if self.refusal(cell) is None)

    def trained_cells(self, table):
        """The cells that a table's runs belong to: `served_cells`, one for each fold of their protocols."""
        return tuple(
            cell._replace(protocol=protocol)
            for cell in self.served_cells(table)
            for protocol in self.configuration.members(cell.protocol)
        )

    def runs(self, table):
        """(protocol, method, bits, seed) of every run of a table."""
        entry = self.entry("tables", table)
        return [
            (*cell, seed)
            for cell in self.trained_cells(table)
            for seed in method_seeds(entry["seeds"], entry["fewer_seeds"], cell.method)
        ]

    def table_runs(self, table, names):
        """These files of every run of a table."""
        folders = ["results/runs/{}/{}/{}/{}".format(*run) for run in self.runs(table)]
        return [f"{folder}/{name}" for name in names for folder in folders]

    def protocol_settings(self, protocol):
        """What reporting knows of a protocol: what makes its scores comparable, whether the classes of its
        queries are unseen, the training items per class where the split gives such a number, or None; and
        which labels alone decide its affinity, "equal" classes, the number of "shared" labels or "any" shared
        label, or None; and the protocol whose codes it has, if it trains nothing itself."""
        entry, kind = self.entry("protocols", protocol), self.split_kind(protocol)
        size = entry["split"].get("training") if kind.said.training_per_class else None
        size = size if isinstance(size, int) else None
        chosen = pick(entry, "dataset", "split", *leaderboard.SETTINGS)
        known = {"unseen": kind.said.unseen, "training_per_class": size}
        if entry["codes_of"] is not None:
            known["codes_of"] = entry["codes_of"]
        return chosen | known | {"label_affinity": self.affinity_kind(protocol).said.decided_by_labels}

    def table_settings(self, table):
        """What reporting is given of a table: its entry, styles of its methods, titles, published figures,
        claims, the cells that are refused, and those that it takes from the leaderboard."""
        given = self.entry("tables", table)
        entry = dict(leaderboard_rows.with_rows(given), name=table)
        titles = {name: settings.get("title", name) for name, settings in self["protocols"].items()}
        entry["blocks"] = [{"title": titles[block["protocol"]]} | block for block in entry["blocks"]]
        metadata = {method: self.configuration.metadata(method) for method in given["methods"]}
        entry["styles"] = {
            method: {key: getattr(about, key) for key in leaderboard.STYLE}
            for method, about in metadata.items()
        }
        for method in set(given["methods"]) & set(self.configuration.external_methods()):
            entry["styles"][method]["external"] = True
        entry["styles"] |= leaderboard_rows.styles(self.configuration, given)
        entry["families"] = {method: style["family"] for method, style in entry["styles"].items()}
        claims = [self["claims"][source] for source in entry["claims"]]
        others = _strings(claims) & {*self.configuration.files, *self["methods"]} - set(entry["styles"])
        entry["titles"] = {method: self.configuration.metadata(method).title for method in sorted(others)}
        asked = list(dict.fromkeys(block["protocol"] for block in entry["blocks"]))
        named = {*asked, *(self.entry("protocols", name)["codes_of"] for name in asked)} | _strings(claims)
        entry["protocols"] = {name: title for name, title in titles.items() if name in named}
        entry["folds"] = {
            name: self.configuration.folds[name] for name in asked if name in self.configuration.folds
        }
        entry["settings"] = {name: self.protocol_settings(name) for name in asked}
        entry["budgets"] = [
            of._asdict() | self.budget(of)
            for cell in self.cells(table)
            for name in dict.fromkeys((cell.protocol, *self.configuration.members(cell.protocol)))
            for of in [cell._replace(protocol=name)]
        ]
        reasons = {cell: self.refusal(cell) for cell in self.cells(table)}
        refused = [cell._asdict() | {"reason": reason} for cell, reason in reasons.items() if reason]
        published = [self.published(source, asked) for source in entry["published"]]
        settings = {"table": entry, "published": published, "refused": refused, "claims": claims}
        filled = leaderboard_rows.filled(self.configuration, given, claims)
        settings |= {} if filled is None else {"filled": filled}
        return settings | {"uncoded": self.uncoded_protocols(table)}

    def asked(self, table):
        """The table that reporting makes of `table_settings`."""
        return Table.from_json(self.table_settings(table))

    def published(self, source, protocols):
        """What a paper prints; of these protocols also what it prints for those that they name as
        `published_of`, unless it has their own."""
        paper = self["published"][source]
        own = {
            (value["protocol"], value["metric"], value["method"], value["bits"]) for value in paper["values"]
        }
        further = [
            value | {"protocol": name}
            for name in protocols
            for value in paper["values"]
            if value["protocol"] == self["protocols"][name]["published_of"]
            and (name, value["metric"], value["method"], value["bits"]) not in own
        ]
        return paper | {"values": [*paper["values"], *further]}

    # -- features without codes ----------------------------------------------------------------------------

    def uncoded_protocols(self, table):
        """Protocols of a table whose features are scored themselves: none unless it asks for that."""
        entry = self.entry("tables", table)
        if not entry["uncoded"]:
            return []
        names = dict.fromkeys(block["protocol"] for block in entry["blocks"])
        return [name for name in names if not {name, self["protocols"][name]["dataset"]} & set(self["skip"])]

    def uncoded_files(self, table):
        names = [fold for name in self.uncoded_protocols(table) for fold in self.configuration.members(name)]
        return [f"results/uncoded/{protocol}.json" for protocol in names]

    def uncoded_code(self, protocol):
        code = self.code(*_scripts("score_uncoded"), "workflow.stages.uncoded", "workflow.stages.transfer")
        return code | self.affinity_code(protocol)

    # -- runs ----------------------------------------------------------------------------------------------

    def together(self, protocol, bits):
        """Code lengths that belong to a job with `bits`: the protocol's list if it is on it, or it alone."""
        listed = self.entry("protocols", protocol)["runs_per_job"]["bits"]
        return tuple(sorted(listed)) if bits in listed else (bits,)

    def protocols_in_parts(self):
        """Protocols whose databases are scored in parts."""
        return [name for name, settings in self["protocols"].items() if settings["database_parts"] > 1]

    def protocols_of_codes(self):
        """Protocols whose runs have the codes of another protocol's."""
        return [name for name, settings in self["protocols"].items() if settings["codes_of"] is not None]

    def taken_run(self, protocol, method, bits, seed):
        """The files of the run whose codes a run has, of a protocol with `codes_of`."""
        other, length = trained_as(self.configuration, protocol, bits)
        return [f"results/runs/{other}/{method}/{length}/{seed}/{name}" for name in ("codes.npz", "run.json")]

    def taken_split(self, protocol):
        return f"resources/protocols/{self.entry('protocols', protocol)['codes_of']}/split.npz"

    def hyperparameters(self, cell, tuned=True):
        """The method's hyper-parameters for a cell; tuned: False leaves out what searches chose."""
        chosen = hyperparameters(self.configuration, cell.protocol, cell.method, cell.bits, tuned)
        if "device" in self.configuration.metadata(cell.method).parameters:
            chosen["device"] = self["device"]
        return chosen

    def budget(self, cell):
        """The trials that a cell's settings had, and what the search was allowed in words. Of a protocol of
        several folds: of the fold with the most trials, and of each."""
        if cell.method in self.configuration.external_methods():
            return {"trials": 1, "budget": ELSEWHERE}
        names = self.configuration.members(cell.protocol)
        searches = [search_of(self.configuration, name, cell.method, cell.bits) for name in names]
        words = dict.fromkeys(
            AS_GIVEN if search is None else budget_words(search, cell.method) for search in searches
        )
        if not any(self.configuration.metadata(cell.method).spaces):
            words = dict.fromkeys([NOTHING_TO_CHOOSE])
        trials = max(1 if search is None else search["tried"] for search in searches)
        return {"trials": trials, "budget": "; ".join(words)}

    def end_to_end(self, protocol, method):
        """The network that a method trains end to end on images under a protocol, or None."""
        network = self.entry("protocols", protocol)["end_to_end"]
        return network if network is not None and self.configuration.metadata(method).end_to_end else None

    def run_items(self, protocol, method):
        """What a run learns from and encodes: features, or the images if a network is trained."""
        if self.end_to_end(protocol, method) is None:
            return f"resources/protocols/{protocol}/features.npy"
        return self.dataset_items(protocol)

    def run_weights(self, protocol, method):
        """Weights of the network that a run trains, in a list that is empty if it trains none."""
        network = self.end_to_end(protocol, method)
        return [] if network is None else self.network_weights(network)

    def run_check(self, protocol, method):
        """The check of these weights; empty if there are none."""
        network = self.end_to_end(protocol, method)
        return [] if network is None else self.network_check(network)

    def run_code(self, protocol, method):
        """The adapter, the method's own file, what it imports, the network that it trains, and the affinity:
        an edit of a method reruns no other."""
        return self.code("workflow.scripts.train_and_encode") | self.learning_code(protocol, method)

    def learning_code(self, protocol, method):
        """`run_code` without the adapter: that of a search is another."""
        network = self.end_to_end(protocol, method)
        modules = [] if network is None else self._network_modules(network)
        opened = "workflow.stages.protocol_data"
        code = self.code(opened, f"methods.{self.configuration.class_of(method)}", *modules)
        return code | self.affinity_code(protocol)

    def score_code(self, protocol):
        more = ["workflow.stages.transfer"] if self.entry("protocols", protocol)["transfer"] else []
        more += ["tiebench.rankings.ap_at_k", "tiebench.diagnostics"]
        code = self.code(*_scripts("score_codes"), "tiebench.scoring", "tiebench.counting.popcount", *more)
        if self._other_rankings(protocol):
            code = code | self.code("workflow.stages.other_rankings")
        return code | self.affinity_code(protocol)

    def merged_code(self, protocol):
        return self.score_code(protocol) | self.code(*_scripts("score_parts"), "tiebench.counting.parts")

    def part_code(self, protocol):
        code = self.code(*_scripts("count_part"), "tiebench.counting.parts", "tiebench.counting.popcount")
        return code | self.affinity_code(protocol)

    def learning(self, protocol, method):
        """What training and tuning need to know of a method under a protocol."""
        network = self.end_to_end(protocol, method)
        return {
            "class": self.configuration.class_of(method),
            "affinity": self.entry("protocols", protocol)["affinity"],
            "network": network and pick(self["networks"][network], "architecture", "options"),
        }

    def run_settings(self, protocol, method, bits=None, together=None):
        """What a run is trained with: hyper-parameters of each code length of its job.

        Also of lengths that no table asks for: a job whose group shrinks keeps its settings.
        """
        lengths = together or self.together(protocol, int(bits))
        entry = self.entry("protocols", protocol)
        asked = {"raw_scores": "asymmetric", "estimates": "estimated"}
        more = {key: True for key, option in asked.items() if entry[option]}
        chosen = {length: self.hyperparameters(Cell(protocol, method, length)) for length in lengths}
        hidden = {"database_labels": False} if self.split_kind(protocol).said.unseen else {}
        return self.learning(protocol, method) | hidden | more | {"hyperparameters": chosen}

    def training_priority(self, method, runs, bits=0):
        """All code lengths of a job together, if its method learns from affinities or labels.

        Long jobs start first, and two cores end together.
        """
        if method not in self.configuration.methods_known():
            return 0
        if self.configuration.metadata(method).supervision == "none":
            return 0
        return sum(int(run.partition("/")[0].format(bits=bits)) for run in runs)

    def gpus(self, method):
        """GPUs of a job: one for a method that uses a device, so that the others run beside it."""
        if self["device"] == "cpu" or method not in self.configuration.methods_known():
            return 0
        return int("device" in self.configuration.metadata(method).parameters)

    def score_settings(self, protocol):
        entry = self.entry("protocols", protocol)
        more = {"transfer": True} if entry["transfer"] else {}
        return pick(entry, "affinity", "at", "ap_at_normaliser") | more | self._other_rankings(protocol)

    def _other_rankings(self, protocol):
        """What a protocol asks for besides rankings by Hamming distance."""
        entry = self.entry("protocols", protocol)
        return {key: entry[key] for key in ("asymmetric", "estimated", "rescore", "orders") if entry[key]}

    def score_files(self, protocol):
        """What scoring reads besides codes and labels: the affinity, and features if codes are rescored."""
        rescored = "rescore" in self._other_rankings(protocol)
        features = [f"resources/protocols/{protocol}/features.npy"] * rescored
        return list(dict.fromkeys([*self.affinity_files(protocol), *features]))

    def database_parts(self, protocol):
        return self.entry("protocols", protocol)["database_parts"]

    def part_files(self, protocol, method, bits, seed):
        parts = range(1, self.database_parts(protocol) + 1)
        return [f"results/runs/{protocol}/{method}/{bits}/{seed}/parts/{part}.npz" for part in parts]
