"""A protocol to codes: fit a method once per seed, encode queries and database, record how."""

from workflow.scripts import _job


def work(options):
    settings = options.settings
    import numpy as np

    from methods._base import Refusal
    from methods._catalogue import load_class
    from workflow.data import Protocol, append_json_line
    from workflow.files import filled, write_json

    method_class = load_class(options.method)
    if hasattr(method_class, "device"):
        import torch

        torch.set_num_threads(options.threads)
    protocol = Protocol(options.protocol_folder, options.dataset, settings)
    for seed in options.seeds:
        run = f"{options.protocol}/{options.method}/{options.bits} bits/seed {seed}"
        method = method_class(bits=options.bits, seed=seed, **settings["hyperparameters"])
        progress = _job.Progress(run)
        clock = _Clock()
        record = {
            "protocol": options.protocol,
            "method": options.method,
            "bits": options.bits,
            "seed": seed,
            "hyperparameters": method.hyperparameters(),
            "fingerprints": protocol.fingerprints,
            "threads": options.threads,
            "status": "done",
            "reason": None,
        }
        with filled(f"{options.runs}/{seed}") as folder:
            empty = np.zeros((0, -(-options.bits // 8)), np.uint8)
            codes = {"query": empty, "database": empty}
            with (folder / "training.jsonl").open("w") as lines:

                def report(entry, lines=lines, progress=progress):
                    append_json_line(lines, entry)
                    progress(entry)

                try:
                    with clock("fit"):
                        method.fit(protocol.training_set(report))
                    with clock("encode"):
                        for part in codes:
                            rows = getattr(protocol.split, part)
                            codes[part] = np.packbits(method.encode(_Rows(protocol.features, rows)), axis=1)
                    method.save(folder)
                except Refusal as refusal:
                    record |= {"status": "refused", "reason": " ".join(str(refusal).split())}
                    (folder / "model.npz").write_bytes(b"")
            with (folder / "codes.npz").open("wb") as file:
                np.savez(file, **codes, bits=options.bits)
            record |= _provenance(settings, clock)
            write_json(folder / "run.json", record)
        outcome = record["reason"] or f"{record['seconds']:.1f} s, {record['peak_memory_mb']:.0f} MB"
        _job.log.info("%s: %s", run, outcome)


class _Rows:
    """Rows of a memory-mapped array, read when sliced: a database is never copied whole."""

    def __init__(self, items, rows):
        self.items, self.rows = items, rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, part):
        return self.items[self.rows[part]]


class _Clock:
    """Seconds of named parts of a run."""

    def __init__(self):
        self.seconds = {}

    def __call__(self, part):
        from contextlib import contextmanager
        from time import perf_counter

        @contextmanager
        def timed():
            started = perf_counter()
            try:
                yield
            finally:
                self.seconds[part] = perf_counter() - started

        return timed()


def _provenance(settings, clock):
    import platform
    import resource
    import sys
    from importlib.metadata import version

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    versions = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    if "torch" in sys.modules:
        versions["torch"] = sys.modules["torch"].__version__
    return {
        "seconds": sum(clock.seconds.values()),
        "seconds_by_part": clock.seconds,
        "peak_memory_mb": peak / (2**20 if sys.platform == "darwin" else 2**10),
        "versions": {"python": platform.python_version(), **versions},
        "device": _device_name(settings),
        "git_commit": settings["git_commit"] if "git_commit" in settings else _git_commit(),
    }


def _device_name(settings):
    import platform
    import sys

    wanted = settings["hyperparameters"].get("device", "cpu")
    if wanted != "cpu" and "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        return sys.modules["torch"].cuda.get_device_name()
    return f"cpu ({platform.machine()})"


def _git_commit():
    """Commit of the checkout, with '+' if it has changes; None outside of one."""
    import subprocess
    from pathlib import Path

    git = ["git", "-C", str(Path(__file__).parents[2])]
    try:
        commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run([*git, "status", "--porcelain"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit.stdout.strip() + ("+" if changes.stdout.strip() else "")


if __name__ == "__main__":
    arguments = _job.parser("train_and_encode")
    arguments.add_argument("--protocol", required=True)
    arguments.add_argument("--protocol-folder", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--method", required=True)
    arguments.add_argument("--bits", type=int, required=True)
    arguments.add_argument("--seeds", type=int, nargs="+", required=True)
    arguments.add_argument("--runs", required=True, help="folder that holds one folder per seed")
    _job.run(work, arguments)
