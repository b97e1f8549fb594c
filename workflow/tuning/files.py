"""What searches found, as text: the choices for a configuration, and every trial.

A search is what `tune_method` writes: protocol, method, bits, `search` (its rule), `unchanged` (the values
that its trials may change, as the settings have them), `trials` (`workflow.tuning.spaces.Trial` as dicts),
`chosen`, the index of the best one, and `ends`, the axes at whose ends that one lies.
"""

import csv
import io
import json

import yaml

# Keys of a tuning. (Of its candidates, the rule keeps whether there were any.)
RULE = (
    *("trials", "widen", "rungs", "confirm", "work"),
    *("seconds", "metric", "shares", "seed", "trial_settings"),
)
COLUMNS = (
    "protocol",
    "method",
    "bits",
    "trial",
    "origin",
    "partition",
    "fit",
    "settings",
    "score",
    "seconds",
    "rung",
    "status",
    "reason",
    "chosen",
    "ends",
)


class _Flow(dict):
    """A mapping that is written on one line."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True  # each choice can be copied without the others


_Dumper.add_representer(
    _Flow, lambda dumper, data: dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)
)


def choices(name, searches):
    """YAML of what the searches of a tuning chose, as the key `tuned` of a configuration.

    What was chosen at the only code length that was searched applies to all lengths.
    """
    tuned: dict[str, dict[str, _Flow]] = {}
    for search in searches:
        of_method = tuned.setdefault(search["protocol"], {}).setdefault(search["method"], _Flow())
        if "search" not in of_method:
            rule = {key: search["search"].get(key) for key in ("name", *RULE, "candidates")}
            rule = {key: value for key, value in rule.items() if value is not None}
            of_method["search"] = _Flow(rule, tried=_Flow())
        of_method["search"]["tried"][search["bits"]] = _scored(search)
        of_method.setdefault("by_bits", {})[search["bits"]] = search["trials"][search["chosen"]]["settings"]
    for of_method in (one for methods in tuned.values() for one in methods.values()):
        by_bits = of_method.pop("by_bits")
        if len(by_bits) == 1:
            of_method |= next(iter(by_bits.values()))
        else:
            of_method["by_bits"] = {bits: _Flow(chosen) for bits, chosen in by_bits.items()}
    text = yaml.dump({"tuned": tuned}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return f"# Chosen by the tuning {name} on parts of the training sets: docs/tuning.md.\n{text}"


def _scored(search):
    """How many trials of a search have a score: the others were replaced, and are none."""
    least = search["search"]["rungs"][0]
    return sum(
        sum(one["score"] is not None for one in trial["evaluations"]) >= least for trial in search["trials"]
    )


def trials(searches):
    """CSV of all trials of searches: one row for each partition of the training set that one was fitted on.

    `fit` is the share of the items that it was fitted on, `settings` are the values of all hyper-parameters
    that the search may change. `ends` are names, between spaces, in the rows of the chosen trial.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for search in searches:
        rule = search["search"]
        for index, trial in enumerate(search["trials"]):
            parts = [(rule["shares"]["fit"], one) for one in enumerate(trial["evaluations"])]
            for last, evaluations in zip(rule.get("confirm") or (), trial["confirmations"]):
                parts += [(last["fit"], one) for one in enumerate(evaluations)]
            for fit, (partition, evaluation) in parts:
                row = {key: search[key] for key in ("protocol", "method", "bits")} | evaluation
                row |= {"trial": index, "partition": partition, "fit": fit}
                row |= {key: trial[key] for key in ("origin", "rung")}
                row["settings"] = json.dumps(search["unchanged"] | trial["settings"], sort_keys=True)
                chosen = index == search["chosen"]
                writer.writerow(row | {"chosen": chosen, "ends": " ".join(search["ends"] * chosen)})
    return text.getvalue()
