"""What the forms in which papers, released code and this suite differ do to AP, on parts of a training set.

The figures of docs/differences.md come from here. Queries and database of the protocol are never used: each
form is fitted on 4,000 of the 5,000 training items of CIFAR-10 setting 1, and 250 others are the queries of
the remaining 750, as in a search of hyper-parameters.
"""

import itertools
import statistics
from dataclasses import dataclass, field

import numpy as np
import torch

import tiebench
from benchmarks.class_items import FILE, Items, find, read
from benchmarks.report import progress
from methods.base.catalogue import load_class

FIT, QUERIES = 0.8, 0.05  # shares of the training set
PARTITIONS = 3
QUICK_EPOCHS = 5
HERE = "here"  # the label of a comparison's first form


@dataclass(frozen=True)
class Comparison:
    """Forms of one method: label -> hyper-parameters that differ from `settings`, the default first.

    bits: code lengths; rates: factors of the learning rate, the best of which each form has (chosen on a
    partition of its own), for forms whose losses are of different scales; against_fit: the queries are
    compared with the learned codes of the part that is fitted, or with `encode`'s where there are none.
    """

    method: str
    forms: dict
    settings: dict = field(default_factory=dict)
    bits: tuple = (12, 48)
    rates: tuple = (1,)
    against_fit: bool = False


_DPSH = {"learning_rate": 5.0, "epochs": 40}
_DTSH = {"learning_rate": 0.5, "epochs": 50}
_HASHNET = {"learning_rate": 0.5, "epochs": 60}
TALR = {
    "learning_rate": 0.2,
    "lr_step_size": 20,
    "epochs": 60,
    "batch_size": 128,
    "weight_decay": 1e-3,
    "tanh_scale": 5.0,
    "bins": 12,
}
_RATES = (1 / 3, 1, 3)
_DHN_SCRIPT = {
    "released": True,
    "normed": True,
    "similarity_scale": 10.0,
    "quantisation": 0.0,
    "batch_size": 256,
}
_DSDH_AUTHORS = {"balance": "sum", "eta": 55.0, "mu": 1.0, "nu": 0.1, "sweeps": 10}
_SMALL_WEIGHTS = {"weights of deviation 0.01": {"initial_deviation": 0.01}}
_HSWD = {
    f"HSWD, weight {weight}": {"quantiser": "hswd", "quantiser_weight": weight} for weight in (0.01, 0.1, 1.0)
}
COMPARISONS = (
    Comparison(
        "csq",
        {f"{HERE}, published centres": {}, "spread_hadamard": {"centres": "spread_hadamard"}},
        bits=(16, 64),
    ),
    Comparison(
        "fsdh",
        {
            f"{HERE}, spread_hadamard": {},
            "first rows of Sylvester's matrix": {"centres": "hadamard"},
            "the same, hardly a ridge": {"centres": "hadamard", "ridge": 1e-6},
        },
        bits=(16, 64),
    ),
    Comparison("csq", {f"{HERE}, published centres": {}, "spread_hadamard": {"centres": "spread_hadamard"}}),
    Comparison(
        "orthohash",
        {
            f"{HERE}, scale sqrt(bits), Bernoulli codes": {},
            "scale 8": {"scale": 8.0},
            "spread_hadamard codes": {"codes": "spread_hadamard"},
            "separated codes": {"codes": "separated"},
        },
    ),
    Comparison(
        "dhn",
        {
            f"{HERE}, the paper's": {},
            "released": {"released": True},
            "released, its script's form": _DHN_SCRIPT,
        },
        rates=_RATES,
    ),
    Comparison(
        "dch",
        {
            f"{HERE}, the paper's": {},
            "released": {"released": True, "gamma": 20.0, "quantisation": 0.0},
        },
        rates=_RATES,
    ),
    Comparison(
        "hashnet",
        {
            f"{HERE}, the paper's gradient, weights of deviation sqrt(2 / width)": {},
            "released gradient": {"released_gradient": True},
        },
        _HASHNET,
        rates=_RATES,
    ),
    Comparison("hashnet", {HERE: {}} | _SMALL_WEIGHTS, _HASHNET),
    Comparison("dtsh", {HERE: {}} | _SMALL_WEIGHTS, _DTSH),
    Comparison(
        "dpsh",
        {
            f"{HERE}, the step of the MATLAB code, weights of deviation sqrt(2 / width)": {},
            "the step of the PyTorch codes": {"eta": 20.0, "learning_rate": 2.5},
        }
        | _SMALL_WEIGHTS
        | _HSWD,
        _DPSH,
    ),
    Comparison("talr_ap", {f"{HERE}, no quantiser": {}} | _HSWD, TALR),
    Comparison(
        "dsdh",
        {
            f"{HERE}, all ordered pairs": {},
            "the step of the code that is not the authors'": {"eta": 0.02},
            "the authors' balance, codes of all items": _DSDH_AUTHORS,
            "the authors' balance and codes of the batch": _DSDH_AUTHORS | {"codes_of": "batch"},
        },
        {"epochs": 50},
    ),
    Comparison("sdh", {f"{HERE}, sigma 0.7": {}, "the authors' sigma": {"sigma": 0.4}}),
    Comparison("fsdh", {f"{HERE}, sigma 0.7": {}, "the authors' sigma": {"sigma": 0.4}}),
    Comparison(
        "hyp2",
        {
            f"{HERE}, proxies at 0.1 of the rate": {},
            "the authors', with the head at 0.02": {"proxy_lr_multiplier": 1.0},
            "the authors', with the head at 0.01": {"proxy_lr_multiplier": 2.0},
        },
    ),
    Comparison(
        "mdsh",
        {f"{HERE}, the paper's search": {}, "separated centres": {"centres": "separated"}},
        {"epochs": 15},
    ),
    Comparison("ksh", {f"{HERE}, all items labelled": {}, "2,000 labelled": {"training_items": 2000}}),
    Comparison(
        "bre",
        {f"{HERE}, sweeps until none gains": {}, "tolerance 2e-5": {"tolerance": 2e-5}},
        {"tolerance": 0.0},
    ),
    Comparison(
        "adsh",
        {f"{HERE}, learned codes of the database": {}, "codes of its network": {"asymmetric": False}},
        {"epochs": 60},
        against_fit=True,
    ),
)


def run(report, quick):
    """Print the tables: nothing here is a time."""
    torch.set_num_threads(1)
    report.write("## Differences from papers and released code")
    path = find()
    if path is None:
        report.write(f"Skipped: no {FILE} in the folders of TIEBENCH_RESOURCES.")
        return
    everything, split = read(path)
    items = Items(everything.vectors[split.training], everything.classes[split.training])
    partitions = 1 if quick else PARTITIONS
    report.write(
        f"{FILE}, {len(items.classes)} training items of CIFAR-10 setting 1: AP of validation queries, means "
        f"over {partitions} partition{'s' if partitions > 1 else ''}, linear hash layers. In parentheses: "
        "the difference from the form above it that is used here, and its standard deviation over partitions."
        + (f" {QUICK_EPOCHS} epochs at most, which tells nothing of the forms." if quick else "")
    )
    lengths = {comparison.bits: None for comparison in COMPARISONS}
    for bits in lengths:
        rows = []
        for comparison in COMPARISONS:
            if comparison.bits == bits:
                rows += table_rows(comparison, items, partitions, quick)
        report.rows(["method", "form", *(f"{length} bits" for length in bits)], rows)


def table_rows(comparison, items, partitions, quick=False):
    """Rows of a table: method, form, and per code length AP, with its difference from the first form's."""
    first, seen, rows = next(iter(comparison.forms)), {}, []
    for (label, change), bits in itertools.product(comparison.forms.items(), comparison.bits):
        settings = comparison.settings | change
        if quick:
            own = settings.get("epochs", getattr(load_class(comparison.method), "epochs", 0))
            settings |= {"epochs": min(own, QUICK_EPOCHS)} if own else {}
        rate = chosen_rate(comparison, settings, bits, items, partitions) if not quick else None
        settings |= {} if rate is None else {"learning_rate": rate}
        seen[label, bits] = [
            validation_ap(comparison, settings, bits, items, number) for number in range(partitions)
        ]
        shown = cell(seen[label, bits], seen[first, bits])
        progress(f"{comparison.method}, {label}, {bits} bits, learning rate {rate}: {shown}")
    for label in comparison.forms:
        pairs = [(seen[label, bits], seen[first, bits]) for bits in comparison.bits]
        cells = [cell(*pair) if label != first else f"{statistics.mean(pair[0]):.3f}" for pair in pairs]
        rows.append([comparison.method, label, *cells])
    return rows


def cell(scores, base):
    """Mean of scores, with mean and standard deviation of the differences from `base`, pair by pair."""
    differences = [one - other for one, other in zip(scores, base, strict=True)]
    spread = f" ± {statistics.stdev(differences):.3f}" if len(differences) > 1 else ""
    return f"{statistics.mean(scores):.3f} ({statistics.mean(differences):+.3f}{spread})"


def chosen_rate(comparison, settings, bits, items, partition):
    """The best learning rate of a form on one partition, or None where there is nothing to choose."""
    if len(comparison.rates) < 2:
        return None
    rate = settings.get("learning_rate", getattr(load_class(comparison.method), "learning_rate", None))
    tried = [
        (
            validation_ap(comparison, settings | {"learning_rate": rate * factor}, bits, items, partition),
            rate * factor,
        )
        for factor in comparison.rates
    ]
    return max(tried)[1]


def parts(count, number):
    """Disjoint positions of a training set, `workflow.tuning.search.partition`'s: fit, queries, database."""
    order = np.random.default_rng((number, 1)).permutation(count)
    return np.split(order, np.cumsum([round(count * FIT), round(count * QUERIES)]))


def validation_ap(comparison, settings, bits, items, number):
    """AP of one form, fitted on a part of the training items, on partition `number`."""
    fit, query, database = parts(len(items.classes), number)
    method = load_class(comparison.method)(bits=bits, seed=number, **settings)
    method.fit(items.training_set(fit))
    if comparison.against_fit:
        database = fit
        codes = method.learned_codes()
        codes = method.encode(items.vectors[fit]) if codes is None else codes
    else:
        codes = method.encode(items.vectors[database])
    made = method.encode(items.vectors[query])
    return tiebench.score(made, codes, items.classes[query], items.classes[database]).means["ap"]
