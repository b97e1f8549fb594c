"""Measurements that need a fresh process: python -m benchmarks.probe TASK FILE; prints one JSON object.

FILE is an .npz that `save` wrote. The caller sets NUMBA_CACHE_DIR and the thread variables.
"""

import json
import os
import sys
import time

from benchmarks import commands

TASKS = ("first-score", "first-loss")


def save(path, codes):
    """Write codes for `run`."""
    import numpy as np

    np.savez(
        path,
        bits=codes.bits,
        query=codes.query,
        database=codes.database,
        query_labels=codes.query_labels,
        database_labels=codes.database_labels,
    )


def run(task, path, cache=None):
    """Run a task in a fresh process. cache: a folder for compiled kernels instead of the usual place."""
    environment = os.environ | ({} if cache is None else {"NUMBA_CACHE_DIR": str(cache)})
    return json.loads(
        commands.python(commands.ROOT, "benchmarks.probe", task, path, environment=environment).text
    )


def pause(measured):
    """Seconds that the first call of a task takes longer than the second."""
    first, second = measured["calls"]
    return max(first - second, 0)


def _evaluation(path):
    import numpy as np

    started = time.perf_counter()
    from tiebench.affinities import EqualLabels, SharedLabels
    from tiebench.scoring import score_codes

    imported = time.perf_counter()
    with np.load(path) as arrays:
        arrays = {name: arrays[name] for name in arrays.files}
    kind = SharedLabels if arrays["query_labels"].ndim == 2 else EqualLabels

    def call():
        began = time.perf_counter()
        affinity = kind(arrays["query_labels"], arrays["database_labels"])
        score_codes(arrays["query"], arrays["database"], int(arrays["bits"]), affinity)
        return time.perf_counter() - began

    calls = [call() for _ in range(2)]
    return {"import": imported - started, "calls": calls, "peak": commands.peak_bytes()}


def _loss():
    started = time.perf_counter()
    import torch

    torch.set_num_threads(1)
    with_torch = time.perf_counter()
    from tiebench.losses import relaxed

    imported = time.perf_counter()
    codes = torch.tanh(torch.randn(256, 48)).requires_grad_()
    classes = torch.randint(0, 10, (256,))
    affinity = (classes[:, None] == classes).long()

    def call():
        began = time.perf_counter()
        relaxed.average_precision(codes, affinity, 48).mean().backward()
        return time.perf_counter() - began

    calls = [call() for _ in range(2)]
    return {"torch": with_torch - started, "import": imported - with_torch, "calls": calls}


if __name__ == "__main__":
    chosen, file = sys.argv[1:]
    if chosen not in TASKS:
        sys.exit(f"benchmarks.probe: no task {chosen!r}; there are {', '.join(TASKS)}")
    print(json.dumps(_loss() if chosen == "first-loss" else _evaluation(file)))
