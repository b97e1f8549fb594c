"""End-to-end training: images per second, compared with the network's forward and backward passes alone."""

import numpy as np
import torch

from benchmarks.report import duration, figure, progress
from benchmarks.timing import interleave
from methods._catalogue import load_class
from methods.base import TrainingSet
from networks import catalogue

BITS = 48
CLASSES = 10


def run(report, quick):
    """Print all tables. Returns the summary: rows (figure, reach, seen)."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "the CPU, one thread"
    batch = 256 if device == "cuda" else 32
    report.write(
        f"## End-to-end training on {name}",
        f"Random weights; images of 32 x 32 pixels that the network resizes; batches of {batch}, {BITS} "
        "bits. An epoch reads and resizes images and runs the forward pass, the loss and the backward "
        "pass; the network alone runs the forward and the backward pass on images prepared beforehand. "
        "On CUDA both compute in 16 bits.",
    )
    rows, summary = [], []
    architectures = ("small", "mobilenet_v2_keras", "vgg_f")
    for architecture in architectures[:1] if quick and device == "cpu" else architectures:
        progress(f"training: {architecture}")
        images = 8 * batch if device == "cuda" else 2 * batch
        competitors = {
            method: _epoch(method, architecture, images, batch, device)
            for method in ("talr_ap", "mihash", "dpsh")
        }
        competitors["network alone"] = _alone(architecture, images, batch, device)
        seen = interleave(competitors, 3)
        base = seen["network alone"]
        row = [architecture, f"{figure(images / base.median)}", duration(base.median)]
        for method in list(competitors)[:-1]:
            row.append(f"{figure(images / seen[method].median)} (x{figure(seen[method].ratio_to(base))})")
        rows.append(row)
        ratio = figure(seen["talr_ap"].ratio_to(base))
        summary.append((f"{architecture}: epoch of TALR-AP over the network alone", "as near to 1", ratio))
    report.rows(
        ["network", "alone, images/s", "alone, an epoch", "TALR-AP, images/s", "MIHash", "DPSH"],
        rows,
    )
    if device == "cuda":
        report.write(f"Peak memory on the device: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB.")
    return summary


def _images(count):
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (count, 32, 32, 3)).astype(np.uint8), np.arange(count) % CLASSES


def _epoch(name, architecture, count, batch, device):
    """A fit of one epoch on images that are read and resized as in a run, without building the network."""
    images, labels = _images(count)
    made = TrainingSet(
        images,
        lambda rows, columns: (labels[rows][:, None] == labels[columns]).astype(np.int64),
        labels=labels,
        network={"architecture": architecture, "options": {}},
    )
    method = load_class(name)(bits=BITS, epochs=1, batch_size=batch, device=device, learning_rate=0.0)
    kept = {}
    build = method.build_network

    def once(item_shape):
        if "network" not in kept:
            kept["network"] = build(item_shape)
        return kept["network"]

    object.__setattr__(method, "build_network", once)
    return lambda: method.fit(made)


def _alone(architecture, count, batch, device):
    """Forward and backward passes of the network with a hash layer, on prepared images."""
    network = catalogue.make(architecture).to(device).train()
    layer = torch.nn.Linear(network.width, BITS).to(device)
    # Channels last in memory, as a run reads them.
    images = torch.from_numpy(_images(batch)[0]).to(device).permute(0, 3, 1, 2)
    prepared = network.preprocess(images)
    half = torch.bfloat16 if device == "cuda" and torch.cuda.is_bf16_supported() else torch.float16

    def epoch():
        for _ in range(count // batch):
            with torch.autocast(device, half, enabled=device == "cuda"):
                outputs = layer(network(prepared))
            outputs.float().sum().backward()
            for parameter in [*network.parameters(), *layer.parameters()]:
                parameter.grad = None
        if device == "cuda":
            torch.cuda.synchronize()

    return epoch
