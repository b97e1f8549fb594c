"""End-to-end training: images per second, beside a bare loop in PyTorch and the network's passes alone."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn.functional import softplus

import networks
from benchmarks.class_items import Items
from benchmarks.report import progress, rounded
from benchmarks.timing import agree, interleave
from methods.base.catalogue import load_class
from networks.base.devices import fast_half
from networks.layers.response_normalisation import response_normalisation

BITS = 48
CLASSES = 10
METHODS = ("talr_ap", "mihash", "dpsh")
NORMALISED = 64  # images


@dataclass(frozen=True)
class Case:
    """A network, and what it is trained on: square images of `side` pixels, `batches` of `batch` on a CPU."""

    architecture: str
    options: dict[str, Any] = field(default_factory=dict)
    side: int = 32
    batch: int = 32
    batches: int = 2

    @property
    def name(self):
        return " ".join([self.architecture, *(str(value) for value in self.options.values())])

    def sizes(self, device):
        """(images of an epoch, batch size)."""
        batch, batches = (256, 8) if device.type == "cuda" else (self.batch, self.batches)
        return batch * batches, batch


CASES = (
    Case("small"),
    Case("efficientnet_lite0", {"image_size": 64, "batch_norm": "trained"}, 64, 128, 3),
    Case("efficientnet_lite0", {"image_size": 64, "batch_norm": "frozen"}, 64, 128, 3),
    Case("mobilenet_v2_keras"),
    Case("vgg_f", batches=4),
)


def run(report, quick):
    """Print all tables."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    on_cpu = device.type == "cpu"
    report.write(
        f"## End-to-end training on {'the CPU, one thread' if on_cpu else torch.cuda.get_device_name()}",
        f"Random weights, {BITS} bits. An epoch reads and prepares images and runs the forward pass, the "
        "loss, the backward pass and the step. The bare loop does so in plain PyTorch, on images in memory, "
        "with a pairwise loss of one line. The network alone runs the forward and the backward pass on "
        "prepared images; the rest of a step of TALR-AP is the share that is not the network. All compute "
        "in 16 bits where a method does: on CUDA; EfficientNet-Lite0 and VGG-F on processors that multiply "
        "bfloat16.",
    )
    rows = []
    for case in CASES[:1] if quick and on_cpu else CASES:
        progress(f"training: {case.name}")
        seen = interleave(competitors(case, device), 3)
        images, _ = case.sizes(device)
        bare, ours = seen["bare loop"], seen["talr_ap"]
        share = 1 - 1 / ours.ratio_to(seen["network alone"])
        reached = 1 / ours.ratio_to(bare)
        single = "–"
        if "float32" in seen:
            ratio = seen["float32"].ratio_to(ours)
            single = f"x{rounded(ratio)}"
        speeds = [rounded(images / seen[name].median) for name in ("network alone", "bare loop", *METHODS)]
        rows.append([case.name, *speeds, rounded(reached), f"{share:.1%}", single])
        report.target(f"{case.name}: images/s of TALR-AP over the bare loop", "at least 0.97", reached)
        speed = f"{speeds[2]} images a second"
        report.wait(f"fine-tuning {case.name} at {case.side} pixels, TALR-AP", speed)
    report.rows(
        [
            "network",
            "alone, images/s",
            "bare loop",
            *("TALR-AP", "MIHash", "DPSH"),
            "TALR-AP over the bare loop",
            "not the network",
            "seconds in float32 over bfloat16",
        ],
        rows,
        keep="networks",
    )
    if on_cpu:
        _report_normalisation(report, 4 if quick else NORMALISED)
    else:
        report.write(f"Peak memory on the device: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB.")


def _report_normalisation(report, images):
    """VGG-F's first response normalisation beside PyTorch's."""
    progress("training: response normalisation")
    title = f"Response normalisation of VGG-F's first maps, {images} images, forward and backward, float32"
    seen = report.compare(title, normalisations(images), 5, "here")
    ours, other = "response normalisation, forward and backward", "torch.nn.LocalResponseNorm"
    report.peer(ours, other, seen["PyTorch's"].ratio_to(seen["here"]))


def normalisations(images):
    """Name -> function that normalises the same maps and differentiates, after a comparison of both."""
    generator = torch.Generator().manual_seed(0)
    shape = (images, 64, 54, 54)
    maps, gradient = (
        torch.randn(shape, generator=generator).contiguous(memory_format=torch.channels_last)
        for _ in range(2)
    )
    maps.mul_(50).requires_grad_()
    theirs = torch.nn.LocalResponseNorm(5, 5e-4, 0.75, 2.0)
    functions = {
        "here": lambda: response_normalisation(maps, 5, 2.0, 1e-4, 0.75),
        "PyTorch's": lambda: theirs(maps),
    }

    def both_ways(function):
        maps.grad = None
        found = function()
        found.backward(gradient)
        return found.detach(), maps.grad

    expected = both_ways(functions["PyTorch's"])
    for one, other in zip(both_ways(functions["here"]), expected, strict=True):
        agree("response normalisation", one, other)
    return {name: lambda function=function: both_ways(function) for name, function in functions.items()}


def competitors(case, device, names=None):
    """Name -> function that trains on as many images as the others. names: the wanted ones, None for all."""
    half = fast_half(device, networks.make(case.architecture, **case.options).bfloat16_on_cpu)
    makers = {method: lambda method=method: _epoch(method, case, device) for method in METHODS}
    if device.type == "cpu" and half is not None:
        makers["float32"] = lambda: _epoch("talr_ap", case, device, mixed_precision=False)
    makers["bare loop"] = lambda: _bare(case, device, half)
    makers["network alone"] = lambda: _alone(case, device, half)
    return {name: make() for name, make in makers.items() if names is None or name in names}


def _images(count, side):
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (count, side, side, 3)).astype(np.uint8), np.arange(count) % CLASSES


def _epoch(name, case, device, **more):
    """A fit of one epoch on images that are read and prepared as in a run, without building the network."""
    count, batch = case.sizes(device)
    network = {"architecture": case.architecture, "options": case.options}
    made = Items(*_images(count, case.side)).training_set(network=network)
    settings = {"epochs": 1, "batch_size": batch, "learning_rate": 0.0, "device": device.type}
    method = load_class(name)(bits=BITS, **settings, **more)
    kept = {}
    build = method.build_network

    def once(item_shape):
        if "network" not in kept:
            kept["network"] = build(item_shape)
        return kept["network"]

    object.__setattr__(method, "build_network", once)
    return lambda: method.fit(made)


def _bare(case, device, half):
    """The loop that a user would write: the same network, arithmetic and steps, and nothing else."""
    count, batch = case.sizes(device)
    images, labels = (torch.from_numpy(values) for values in _images(count, case.side))
    network, layer = _network(case, device)
    parameters = [*network.parameters(), *layer.parameters()]
    optimiser = torch.optim.SGD(parameters, 0.0, momentum=0.9, weight_decay=5e-4)
    labels = labels.to(device)

    def epoch():
        for indices in torch.randperm(count).split(batch):
            pixels = images[indices].to(device).permute(0, 3, 1, 2)
            with torch.autocast(device.type, half, enabled=half is not None):
                outputs = layer(network(network.preprocess(pixels)))
            outputs = outputs.float()
            similar = (labels[indices][:, None] == labels[indices]).float()
            products = outputs @ outputs.t() / 2
            loss = (softplus(products) - similar * products).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        _wait(device)

    return epoch


def _alone(case, device, half):
    """Forward and backward passes of the network with a hash layer, on prepared images."""
    count, batch = case.sizes(device)
    network, layer = _network(case, device)
    # Channels last in memory, as a run reads them.
    prepared = network.preprocess(
        torch.from_numpy(_images(batch, case.side)[0]).to(device).permute(0, 3, 1, 2)
    )

    def epoch():
        for _ in range(count // batch):
            with torch.autocast(device.type, half, enabled=half is not None):
                outputs = layer(network(prepared))
            outputs.float().sum().backward()
            for parameter in [*network.parameters(), *layer.parameters()]:
                parameter.grad = None
        _wait(device)

    return epoch


def _network(case, device):
    network = networks.make(case.architecture, **case.options).to(device).train()
    return network, torch.nn.Linear(network.width, BITS).to(device)


def _wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
