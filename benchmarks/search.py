"""A search of hyper-parameters: its trials beside a bare loop of the same training steps."""

import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch

from benchmarks import class_items
from benchmarks.report import progress
from benchmarks.timing import agree
from datasets.affinity.class_ import SameClass
from methods.base.catalogue import load_class
from methods.base.deep import shuffled_batches
from tiebench import relaxed
from workflow.stages.protocol_data import ProtocolData
from workflow.tuning.search import Evaluated, search
from workflow.tuning.spaces import draw_trials
from workflow.tuning.validation import partition, validation_score

METHOD, BITS, TRIALS = "talr_ap", 48, 24
SHARES = {"fit": 0.8, "query": 0.05}
ITEMS, FEATURES, CLASSES = 5000, 1280, 10  # CIFAR-10 setting 1 on features of a MobileNetV2
GIVEN = {"epochs": 15, "batch_size": 128}


class Made(ProtocolData):
    """A protocol of made features, all of which are its training set and its database."""

    def __init__(self, items):
        drawn = class_items.made(items, FEATURES, CLASSES)
        self.items, self.labels = drawn.vectors, drawn.classes
        every = np.arange(items)
        self.split = SimpleNamespace(training=every, database=every)
        self.affinity = SameClass(self.labels)
        self.network = self.weights = None


def run(report, quick):
    """Print the ratio of processor seconds."""
    torch.set_num_threads(1)
    items, trials = (1000, 4) if quick else (ITEMS, TRIALS)
    report.write(
        "## A search of hyper-parameters",
        f"{trials} trials of {METHOD}, {BITS} bits, {GIVEN['epochs']} epochs, on {SHARES['fit']:.0%} of "
        f"{items:,} items of {FEATURES:,} made features, scored on the others. The bare loop is of plain "
        "PyTorch with the library's loss: the same batches and steps from the same weights, no validation. "
        "Seconds are the processor's; trial and loop take turns.",
    )
    progress(f"search: {trials} trials")
    ours, bare = seconds(Made(items), trials)
    rows = (("the search", ours), ("the bare loop", bare))
    report.rows(
        ["what", "processor seconds", "a trial"],
        [(what, f"{spent:.1f}", f"{spent / trials:.2f}") for what, spent in rows],
    )
    quantity = f"{trials} trials of a search: seconds of a bare loop of their steps over theirs"
    report.target(quantity, "at least 0.9", bare / ours)
    what = f"a trial of a search, {METHOD}, {GIVEN['epochs']} epochs on {SHARES['fit'] * items:,.0f} items"
    report.wait(what, f"{ours / trials:.1f} s of a processor")


def seconds(protocol, count):
    """Processor seconds of a search of so many trials, and of a bare loop of their steps."""
    method_class, spent = load_class(METHOD), {"search": 0.0, "loop": 0.0}
    values = method_class(bits=BITS, **GIVEN).hyperparameters()
    trials = draw_trials([method_class.space], values, count, 0)

    def score(settings, repeat):
        begun = time.process_time()
        bare_loop(protocol, values | settings)
        spent["loop"] += time.process_time() - begun
        return validation_score(method_class, protocol, BITS, GIVEN | settings, "ap", SHARES, repeat)

    check(method_class, protocol, values)  # compiles, and allocates
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        search(trials, Evaluated(Path(folder, "trials.jsonl"), score), lambda record: None, [1])
        spent["search"] = time.process_time() - begun - spent["loop"]
    return spent["search"], spent["loop"]


def check(method_class, protocol, values):
    """Raise `Disagreement` unless the bare loop ends with the weights of the method."""
    values = values | {"epochs": 2}
    method = method_class(**values)
    method.fit(protocol.training_set(fitted(protocol)))
    weights = [parameter.detach() for parameter in method.network.parameters()]
    for one, other in zip(weights, bare_loop(protocol, values), strict=True):
        agree("weights of the bare loop", other.detach(), one)


def fitted(protocol):
    """Rows of the items that a trial is fitted on: as of `validation_score` of the first partition."""
    return partition(len(protocol.items), SHARES, (0, 0, 1))[0]


def bare_loop(protocol, values):
    """What a user would write: the parameters after training on the items that a trial is fitted on."""
    rows = fitted(protocol)
    items, labels = torch.from_numpy(protocol.items[rows]), torch.from_numpy(protocol.labels[rows])
    torch.manual_seed(0)
    layer = torch.nn.Linear(FEATURES, BITS)
    torch.nn.init.normal_(layer.weight, std=(2 / FEATURES) ** 0.5)
    torch.nn.init.zeros_(layer.bias)
    rate, momentum, decay = (values[name] for name in ("learning_rate", "momentum", "weight_decay"))
    optimiser = torch.optim.SGD(layer.parameters(), rate, momentum=momentum, weight_decay=decay)
    for epoch in range(values["epochs"]):
        for places in shuffled_batches(len(items), values["batch_size"], (0, epoch)):
            batch = torch.from_numpy(places)
            codes = torch.tanh(values["tanh_scale"] * layer(items[batch]))
            affinity = labels[batch][:, None] == labels[batch]
            loss = -relaxed.average_precision(codes, affinity, values["bins"] or BITS).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return layer.parameters()
