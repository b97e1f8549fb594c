"""First calls, which need a fresh process: python -m benchmarks.probe TASK [FILE]; prints one JSON object.

FILE is an .npz of codes and labels, as `tiebench score` takes it.
"""

import json
import sys
import time

from benchmarks import commands


def run(task, *arguments, **variables):
    """Run a task of `TASKS` in a fresh process, with these variables of the environment."""
    return json.loads(commands.python("benchmarks.probe", task, *arguments, **variables))


def pause(measured):
    """Seconds that the first call of a task takes longer than the second."""
    first, second = measured["calls"]
    return max(first - second, 0)


def score(path):
    import numpy as np

    started = time.perf_counter()
    from tiebench.affinities import EqualLabels
    from tiebench.scoring import score_codes

    imported = time.perf_counter() - started
    with np.load(path) as arrays:
        arrays = {name: arrays[name] for name in arrays.files}

    def call():
        affinity = EqualLabels(arrays["query_labels"], arrays["database_labels"])
        score_codes(arrays["query"], arrays["database"], int(arrays["bits"]), affinity)

    return {"import": imported, "calls": _seconds(call), "peak": commands.peak_bytes()}


def score_without_numba(path):
    sys.modules["numba"] = None  # found by no import: as if it were not installed
    return score(path)


def loss():
    started = time.perf_counter()
    import torch

    torch.set_num_threads(1)
    with_torch = time.perf_counter()
    from tiebench.losses import relaxed

    imported = time.perf_counter() - with_torch
    codes = torch.tanh(torch.randn(256, 48)).requires_grad_()
    classes = torch.randint(0, 10, (256,))
    affinity = (classes[:, None] == classes).long()
    calls = _seconds(lambda: relaxed.average_precision(codes, affinity, 48).mean().backward())
    return {"torch": with_torch - started, "import": imported, "calls": calls}


def _seconds(call):
    """Of two calls."""
    found = []
    for _ in range(2):
        began = time.perf_counter()
        call()
        found.append(time.perf_counter() - began)
    return found


TASKS = {"score": score, "score_without_numba": score_without_numba, "loss": loss}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))
