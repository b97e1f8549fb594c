"""A CUDA device: scoring, losses and end-to-end training there, beside one core and beside plain PyTorch."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from threading import BrokenBarrierError

import torch

from benchmarks import evaluation_peers, loss_peers, losses, synthetic, training
from benchmarks.commands import Failed
from benchmarks.report import duration, progress, rounded
from benchmarks.timing import Disagreement, interleave
from tiebench import score

BITS = 48
SHAPES = (synthetic.CIFAR10_S1, synthetic.IMAGENET100)
BATCHES = (64, 256, 1024)
CASES = (
    training.Case("efficientnet_lite0", {"image_size": 64, "batch_norm": "frozen"}, 64),
    training.Case("vgg_f"),
)
PROCESSES, SECONDS = 12, 10
SORTED = 1000  # queries that are sorted at once


def run(report, quick):
    """Print all tables. Raises `Failed` without a CUDA device."""
    if not torch.cuda.is_available():
        raise Failed("gpu: there is no CUDA device here")
    torch.set_num_threads(1)
    device = torch.device("cuda")
    report.place = f"one {torch.cuda.get_device_name()}, {report.place}"
    report.write(f"## On {torch.cuda.get_device_name()}, beside one core")
    progress("gpu: scoring")
    scoring(report, device, SHAPES[:1] if quick else SHAPES, 3 if quick else 7)
    progress("gpu: losses")
    objectives(report, device, BATCHES[:2] if quick else BATCHES, 3 if quick else 11)
    progress("gpu: training")
    trainings(report, device, CASES[:1] if quick else CASES, 2 if quick else PROCESSES, SECONDS)


def scoring(report, device, shapes, rounds):
    """`score` on a device beside one core and beside the distance matrix of PyTorch and its sort."""
    rows = []
    for shape in shapes:
        codes = synthetic.codes(shape, BITS)
        given = (codes.query, codes.database, codes.query_labels, codes.database_labels)
        held = [torch.from_numpy(part).to(device) for part in given]
        signs = [torch.from_numpy(evaluation_peers.signs(part, BITS)).to(device) for part in given[:2]]
        competitors = {
            "core": lambda given=given: score(*given, bits=BITS).means,
            "device": lambda held=held: score(*held, bits=BITS).means,
            "sort": lambda signs=signs, held=held: sorted_average_precision(*signs, *held[2:]),
        }
        found = {name: call() for name, call in competitors.items()}
        low, high = (found["core"][name] for name in ("ap_min", "ap_max"))
        if found["core"] != found["device"] or not low - 1e-5 <= found["sort"] <= high + 1e-5:
            raise Disagreement(f"scores of {shape.name} differ")
        seen = interleave(competitors, rounds)
        size = f"{shape.queries:,} x {shape.items:,}"
        times = [duration(seen[name].median) for name in ("device", "core", "sort")]
        rows.append([f"`score`, every metric, {size}, {BITS} bits", *times])
        report.peer(
            f"`score` on a GPU, {size}, {BITS} bits",
            "torch.cdist and sort there, AP alone",
            seen["sort"].ratio_to(seen["device"]),
        )
    _table(report, rows, "its `cdist` and sort there, AP alone", "scoring")


def sorted_average_precision(query, database, query_labels, database_labels):
    """Mean average precision in the order of a sort of PyTorch: signs float32 (n, b), classes (n,)."""
    total = 0.0
    places = torch.arange(1, len(database) + 1, device=database.device)
    for begin in range(0, len(query), SORTED):
        part = slice(begin, begin + SORTED)
        order = torch.cdist(query[part], database).argsort(dim=1)
        relevant = (query_labels[part, None] == database_labels[order]).float()
        hits = relevant.cumsum(1)
        total += ((hits / places * relevant).sum(1) / hits[:, -1].clamp(min=1)).sum().item()
    return total / len(query)


def objectives(report, device, batches, rounds):
    """AP_s and its gradient: by PyTorch on a device, by kernels on one core, by autograd on the device."""
    rows = []
    for items in batches:
        here = losses.batch(items)
        there = [values.to(device) for values in here]
        competitors = {
            "device": lambda there=there: losses.product(*there, BITS, "ap_s", "torch"),
            "core": lambda here=here: losses.product(*here, BITS, "ap_s", "compiled"),
            "autograd": lambda there=there: loss_peers.autograd(*there, BITS, "ap_s"),
        }
        on_host = {name: lambda call=call: _on_host(call()) for name, call in competitors.items()}
        losses.check(on_host, f"AP_s, M = {items}")
        seen = interleave(competitors, rounds)
        times = [duration(seen[name].median) for name in ("device", "core", "autograd")]
        rows.append([f"AP_s and its gradient, M = {items}, {BITS} bits", *times])
        ours = f"relaxed AP_s and its gradient on a GPU, M = {items}, {BITS} bits"
        report.peer(ours, "plain autograd there", seen["autograd"].ratio_to(seen["device"]))
    _table(report, rows, "plain autograd there", "losses")


def _on_host(result):
    value, gradient = result
    return value, gradient.cpu()


def _table(report, rows, other, keep):
    report.rows(["what", "on the GPU", "on one core", f"PyTorch: {other}"], rows, keep=keep)


def trainings(report, device, cases, processes, seconds):
    """Images a second of TALR-AP beside a bare loop, alone and in several processes that share the device."""
    rows = []
    for case in cases:
        seen = {}
        for name in ("talr_ap", "bare loop"):
            for number in (1, processes):
                progress(f"gpu: {case.name}, {name}, {number} at a time")
                seen[name, number] = images_per_second(name, case, device, number, seconds)
        cells = [
            rounded(seen[name, number]) for number in (1, processes) for name in ("talr_ap", "bare loop")
        ]
        rows.append([f"{case.name} at {case.side} pixels", *cells])
        reached = seen["talr_ap", 1] / seen["bare loop", 1]
        report.target(
            f"{case.name} on a GPU: images/s of TALR-AP over the bare loop", "at least 0.97", reached
        )
    heads = [
        f"{name}, {number} at a time" for number in ("one", processes) for name in ("TALR-AP", "bare loop")
    ]
    report.rows(["images a second", *heads], rows, keep="trainings")


def images_per_second(name, case, device, processes, seconds):
    """Of all processes together, which start counting at the same time. Raises `Failed` if one ends."""
    context = multiprocessing.get_context("spawn")
    shared = context.Barrier(processes)
    with ProcessPoolExecutor(processes, context, initializer=_share, initargs=(shared,)) as pool:
        trainings = [pool.submit(_train, name, case, device.type, seconds) for _ in range(processes)]
    if errors := [error for one in trainings if (error := one.exception())]:
        # Others only say that they waited for the one that ended.
        reason = min(errors, key=lambda error: isinstance(error, BrokenBarrierError))
        raise Failed(f"gpu: a training of {case.name} ended: {type(reason).__name__}: {reason}")
    return sum(one.result() for one in trainings)


def _share(barrier):
    """Of a process: the barrier, which is not sent with a task."""
    global BARRIER
    BARRIER = barrier


def _train(name, case, device_type, seconds):
    """Images a second of trainings of so many seconds, after an epoch that is not counted."""
    try:
        torch.set_num_threads(1)
        device = torch.device(device_type)
        epoch = training.competitors(case, device, [name])[name]
        images, _ = case.sizes(device)
        epoch()
        BARRIER.wait()
        begun, spent, done = time.perf_counter(), 0.0, 0
        while spent < seconds:
            epoch()
            done += images
            spent = time.perf_counter() - begun
        return done / spent
    except Exception:
        BARRIER.abort()
        raise
