"""What the forms in which papers, released code and this suite differ do to AP, on parts of a training set.

The figures of docs/differences.md come from here. Queries and database of the protocol are never used: each
form is fitted on 4,000 of the 5,000 training items of CIFAR-10 setting 1, and 250 others are the queries of
the remaining 750, as in a search of hyper-parameters.
"""

import itertools
import statistics
from dataclasses import dataclass, field

import torch

import tiebench
from benchmarks.class_items import FILE, Items, find, read
from benchmarks.report import progress
from methods.base.catalogue import load_class
from workflow.tuning.validation import partition

SHARES = {"fit": 0.8, "query": 0.05}  # of the training set
PARTITIONS = 3
QUICK_EPOCHS = 5


@dataclass(frozen=True)
class Comparison:
    """Forms of one method beside the one that is used here: hyper-parameters that differ from `settings`.

    bits: code lengths; rates: factors of the learning rate, the best of which each form has (chosen on a
    partition of its own), for forms whose losses are of different scales; against_fit: the queries are
    compared with the learned codes of the part that is fitted, or with `encode`'s where there are none.
    """

    method: str
    forms: tuple
    settings: dict = field(default_factory=dict)
    bits: tuple = (12, 48)
    rates: tuple = (1,)
    against_fit: bool = False


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
_SPREAD = {"centres": "spread_hadamard"}
_SMALL_WEIGHTS = {"initial_deviation": 0.01}
_HSWD = tuple({"quantiser": "hswd", "quantiser_weight": weight} for weight in (0.01, 0.1, 1.0))
_DHN = {"normed": True, "similarity_scale": 10.0, "quantisation": 0.0, "batch_size": 256}
_DSDH = {"balance": "sum", "eta": 55.0, "mu": 1.0, "nu": 0.1, "sweeps": 10}
_FIRST_ROWS = {"centres": "hadamard"}
COMPARISONS = (
    Comparison("csq", (_SPREAD,), bits=(16, 64)),
    Comparison("csq", (_SPREAD,)),
    Comparison("fsdh", (_FIRST_ROWS, _FIRST_ROWS | {"ridge": 1e-6}), bits=(16, 64)),
    Comparison("sdc", ({"orthogonal": True},), bits=(16, 64)),
    Comparison("orthohash", ({"scale": 8.0}, {"codes": "spread_hadamard"}, {"codes": "separated"})),
    Comparison("dhn", ({"released": True}, {"released": True} | _DHN), rates=_RATES),
    Comparison("dch", ({"released": True, "gamma": 20.0, "quantisation": 0.0},), rates=_RATES),
    Comparison("hashnet", ({"released_gradient": True},), {"learning_rate": 0.5, "epochs": 60}, rates=_RATES),
    Comparison("hashnet", (_SMALL_WEIGHTS,), {"learning_rate": 0.5, "epochs": 60}),
    Comparison("dtsh", (_SMALL_WEIGHTS,), {"learning_rate": 0.5, "epochs": 50}),
    Comparison(
        "dpsh",
        ({"eta": 20.0, "learning_rate": 2.5}, _SMALL_WEIGHTS, *_HSWD),
        {"learning_rate": 5.0, "epochs": 40},
    ),
    Comparison("talr_ap", _HSWD, TALR),
    Comparison("dsdh", ({"eta": 0.02}, _DSDH, _DSDH | {"codes_of": "batch"}), {"epochs": 50}),
    Comparison("sdh", ({"sigma": 0.4},)),
    Comparison("fsdh", ({"sigma": 0.4},)),
    Comparison("hyp2", ({"proxy_lr_multiplier": 1.0}, {"proxy_lr_multiplier": 2.0})),
    Comparison("mdsh", ({"centres": "separated"},), {"epochs": 15}),
    Comparison("ksh", ({"training_items": 2000},)),
    Comparison("bre", ({"tolerance": 2e-5},), {"tolerance": 0.0}),
    Comparison("adsh", ({"asymmetric": False},), {"epochs": 60}, against_fit=True),
)


def run(report, quick):
    """Print the table: nothing here is a time."""
    torch.set_num_threads(1)
    everything, split = read(find())
    items = Items(everything.vectors[split.training], everything.classes[split.training])
    partitions = 1 if quick else PARTITIONS
    report.write(
        "## Differences from papers and released code",
        f"{FILE}, {len(items.classes)} training items of CIFAR-10 setting 1: AP of validation queries with "
        "the form used here, and what another form adds to it, with its standard deviation over partitions; "
        f"means over {partitions} partition{'s' if partitions > 1 else ''}, linear hash layers."
        + (f" {QUICK_EPOCHS} epochs at most, which tells nothing of the forms." if quick else ""),
    )
    rows = [row for one in COMPARISONS for row in table_rows(one, items, partitions, quick)]
    report.rows(
        ["method", "other form", "bits", "AP here", "AP with it, less that"], rows, keep="differences"
    )


def table_rows(comparison, items, partitions, quick=False):
    """Rows of the table: of each other form and code length."""
    rows = []
    for bits, change in itertools.product(comparison.bits, ({}, *comparison.forms)):
        settings = comparison.settings | change
        if quick:
            own = settings.get("epochs", getattr(load_class(comparison.method), "epochs", 0))
            settings |= {"epochs": min(own, QUICK_EPOCHS)} if own else {}
        rate = chosen_rate(comparison, settings, bits, items, partitions) if not quick else None
        settings |= {} if rate is None else {"learning_rate": rate}
        scores = [validation_ap(comparison, settings, bits, items, number) for number in range(partitions)]
        if not change:
            base = scores
            continue
        form = ", ".join(f"{name}: {str(value).lower()}" for name, value in change.items())
        found = difference(scores, base)
        progress(f"{comparison.method}, {form}, {bits} bits, learning rate {rate}: {found}")
        rows.append([f"`{comparison.method}`", f"`{form}`", bits, f"{statistics.mean(base):.3f}", found])
    return rows


def difference(scores, base):
    """Mean and standard deviation of the differences of scores from `base`, pair by pair."""
    differences = [one - other for one, other in zip(scores, base, strict=True)]
    spread = f" ± {statistics.stdev(differences):.3f}" if len(differences) > 1 else ""
    return f"{statistics.mean(differences):+.3f}{spread}".replace("-", "−")


def chosen_rate(comparison, settings, bits, items, number):
    """The best learning rate of a form on one partition, or None where there is nothing to choose."""
    if len(comparison.rates) < 2:
        return None
    rate = settings.get("learning_rate", getattr(load_class(comparison.method), "learning_rate", None))
    tried = [
        (
            validation_ap(comparison, settings | {"learning_rate": rate * factor}, bits, items, number),
            rate * factor,
        )
        for factor in comparison.rates
    ]
    return max(tried)[1]


def validation_ap(comparison, settings, bits, items, number):
    """AP of one form, fitted on a part of the training items, on partition `number`."""
    fit, query, database = partition(len(items.classes), SHARES, (number, 1))
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
