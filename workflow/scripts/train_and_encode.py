"""A protocol to codes: fit a method once per run, encode queries and database, record how."""

import platform
import re
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from workflow.scripts import _job


def work(options):
    settings = options.settings
    from methods.base import DATABASE_LABELS
    from methods.base.catalogue import load_class
    from workflow.stages.checkpoints import checkpoint_path, decided_by, git_commit
    from workflow.stages.protocol_data import ProtocolData
    from workflow.stages.run_records import run_title

    method_class = load_class(settings["class"])
    _job.prepare_training(method_class, options)
    protocol = ProtocolData(
        options.protocol_folder, options.dataset, settings, options.items, options.weights
    )
    decided = decided_by(settings, options.weights, "workflow.scripts.train_and_encode")
    commit = git_commit()
    for name in options.runs:
        bits, seed = map(int, name.split("/"))
        title = run_title(options.protocol, options.method, bits, seed)
        hyperparameters = settings["hyperparameters"][str(bits)]
        record = {
            "protocol": options.protocol,
            "method": options.method,
            "class": settings["class"],
            "bits": bits,
            "seed": seed,
            "fingerprints": protocol.fingerprints,
            "threads": options.threads,
            "git_commit": commit,
            "log": options.log,
        }
        with _job.named(title):
            method = method_class(bits=bits, seed=seed, **hyperparameters)
            decisive = [decided, protocol.fingerprints, name, hyperparameters, settings, options.threads]
            checkpoint = checkpoint_path(f"{options.protocol}/{options.method}/{name}", decisive, "npz")
            progress = _job.Progress(title)
            whole = method.sees == DATABASE_LABELS and settings.get("database_labels", True)
            folder = f"{options.folder}/{name}"
            more = {key: settings.get(key, False) for key in ("raw_scores", "estimates")}
            record = _run(method, protocol, whole, folder, record, progress, checkpoint, more)
        outcome = record["reason"] or f"{record['seconds']:.1f} s, {record['peak_memory_mb']:.0f} MB"
        _job.log.info("%s: %s", title, outcome)


def _run(method, protocol, whole, folder, record, progress, checkpoint, more):
    """Fit, encode, and write the files of one run; its run.json's content.

    whole: learn from the database; more: whether codes.npz also has what the bits of the queries are signs of
    ("raw_scores") and what distances are estimated from ("estimates"), for methods that know them.
    """
    from methods.base import Refusal, no_exit
    from tiebench.files import filled, write_json, write_npz
    from workflow.stages.checkpoints import remove_checkpoint, versions
    from workflow.stages.protocol_data import append_json_line
    from workflow.stages.run_records import no_codes

    clock = _Clock(method, record["threads"])
    record = record | {"hyperparameters": method.hyperparameters(), "status": "done", "reason": None}
    codes = no_codes(method.bits)
    _forget_peak_memory()
    with filled(folder) as writing:
        collapse = _Collapse(progress.title)
        with (writing / "training.jsonl").open("w") as lines:

            def report(entry):
                append_json_line(lines, entry)
                progress(entry)
                collapse(entry)
                if entry.get("warning"):
                    _job.log.warning("%s: %s", progress.title, entry["warning"])

            rows = protocol.split.database if whole else protocol.split.training
            training_set = protocol.training_set(rows, method.supervision, log=report, checkpoint=checkpoint)
            try:
                with no_exit(record["method"]):
                    with clock("fit"):
                        method.fit(training_set)
                    with clock("encode"):
                        codes |= _encoded(method, protocol, whole, record["method"], more)
                    method.save(writing)
                    record["unused_bits"] = method.unused_bits()
            except Refusal as refusal:
                record |= {"status": "refused", "reason": " ".join(str(refusal).split())}
                (writing / "model.npz").write_bytes(b"")
        write_npz(writing / "codes.npz", **codes, bits=method.bits)
        record |= {
            "collapsed_epoch": collapse.epoch,
            "ended_epoch": collapse.ended,
            "seconds": sum(clock.seconds.values()),
            "seconds_by_part": clock.seconds,
            "peak_memory_mb": _peak_memory_mb(),
            "versions": versions(),
            "device": _device_name(record["hyperparameters"]),
        }
        write_json(writing / "run.json", record)
    remove_checkpoint(checkpoint)
    return record


def _encoded(method, protocol, whole, name, more):
    """Arrays of codes.npz. whole, more: as of `_run`; name: of the method."""
    import numpy as np

    from methods.base import check_codes, check_raw_scores
    from methods.base.estimates import EstimatedHashing
    from workflow.stages.protocol_data import Rows

    items = {part: Rows(protocol.items, getattr(protocol.split, part)) for part in ("query", "database")}
    found: dict[str, np.ndarray] = {}
    for part, of_part in items.items():
        made = method.learned_codes() if whole and part == "database" else None
        function = "encode" if made is None else "learned_codes"
        made = method.encode(of_part) if made is None else made
        found[part] = np.packbits(check_codes(made, len(of_part), method.bits, name, function), axis=1)
    if more["raw_scores"] and (made := method.raw_scores(items["query"])) is not None:
        found["raw_query"] = check_raw_scores(made, len(items["query"]), method.bits, name)
    if more["estimates"] and isinstance(method, EstimatedHashing):
        found["estimate_query"] = method.query_vectors(items["query"])
        found["estimate_factors"] = method.item_factors(items["database"])
    return found


class _Collapse:
    """The epoch since which the codes of a training are collapsed, None if they are not, and the one that it
    ended after because of that, or None; says so at once."""

    def __init__(self, title):
        self.title, self.epoch, self.ended = title, None, None

    def __call__(self, entry):
        if entry.get("epoch") is None:
            return
        reason = entry.get("collapsed")
        if reason and self.epoch is None:
            self.epoch = entry["epoch"]
            _job.log.warning("%s: the codes collapsed in epoch %d: %s", self.title, self.epoch, reason)
        elif not reason and self.epoch is not None:
            _job.log.info("%s: the codes recovered in epoch %d", self.title, entry["epoch"])
            self.epoch = None
        if reason := entry.get("ended"):
            self.ended = entry["epoch"]
            _job.log.warning("%s: ended after epoch %d: %s", self.title, self.ended, reason)


class _Clock:
    """Seconds of named parts of a run: of the processor where one thread of one does the work, since they are
    the same beside other work; otherwise those that pass."""

    def __init__(self, method, threads):
        alone = threads == 1 and getattr(method, "device", "cpu") == "cpu"
        self.now, self.seconds = time.process_time if alone else time.perf_counter, {}

    @contextmanager
    def __call__(self, part):
        started = self.now()
        try:
            yield
        finally:
            self.seconds[part] = self.now() - started


def _template(options):
    """What a job of this class imports, told without an import of it: deep methods have a device."""
    deep = any("device" in given for given in options.settings["hyperparameters"].values())
    return "torch" if deep else "kernels"


def _forget_peak_memory():
    """Reset the peak memory of this process, if the system can: each run of a process has its own."""
    with suppress(OSError):  # no Linux, or not allowed: the peak of all runs so far is recorded then
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_mb():
    """Peak of the resident memory since `_forget_peak_memory`; what the process held before is part of it."""
    import resource

    with suppress(OSError):  # no Linux: what getrusage says follows
        found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
        if found:
            return int(found[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _device_name(hyperparameters):
    wanted = hyperparameters.get("device", "cpu")
    if wanted != "cpu" and "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        return sys.modules["torch"].cuda.get_device_name()
    return f"cpu ({platform.machine()})"


if __name__ == "__main__":
    arguments = _job.parser("train_and_encode")
    arguments.add_argument("--protocol", required=True)
    _job.add_protocol(arguments, trains=True)
    arguments.add_argument("--method", required=True)
    _job.add_runs(arguments)
    _job.run(work, arguments, _template)
