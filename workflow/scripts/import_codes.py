"""Codes that another program made: checked against the split, and written as those of a run."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from datasets.splits import Split
    from tiebench.files import read_json, read_result_array, sha256
    from workflow.configuration import external_codes
    from workflow.stages.protocol_data import read_labels
    from workflow.stages.run_records import no_codes, run_title, write_untrained

    settings, (name,) = options.settings, options.runs
    bits, seed = map(int, name.split("/"))
    title, codes = run_title(options.protocol, options.method, bits, seed), no_codes(bits)
    reason = external_codes.absence(settings)
    record = {
        "protocol": options.protocol,
        "method": options.method,
        "class": None,
        "bits": bits,
        "seed": seed,
        "status": "missing" if reason else "done",
        "reason": reason,
        "external": {"file": settings["file"]},
        "fingerprints": {
            "dataset": read_json(Path(options.dataset, "dataset.json"))["fingerprint"],
            "split": read_json(Path(options.protocol_folder, "split.json"))["fingerprint"],
        },
        "hyperparameters": {},
        "log": options.log,
    }
    with _job.named(title):
        if reason is None:
            split = Split.load(Path(options.protocol_folder, "split.npz"))
            ids = Path(options.dataset, "ids.npy")
            codes, checked_by = external_codes.read(
                settings["file"],
                bits,
                split,
                read_labels(options.dataset),
                read_result_array(ids) if ids.is_file() else None,
                f"protocol {options.protocol}",
            )
            record["external"] |= {
                "sha256": sha256(settings["file"]),
                "checked_by": checked_by,
            }
    write_untrained(f"{options.folder}/{name}", record, codes | {"bits": bits})
    _job.log.info("%s: %s", title, reason or f"imported, checked by {' and '.join(checked_by)}")


if __name__ == "__main__":
    arguments = _job.parser("import_codes")
    arguments.add_argument("--protocol", required=True)
    _job.add_protocol(arguments)
    arguments.add_argument("--method", required=True)
    _job.add_runs(arguments)
    _job.run(work, arguments)
