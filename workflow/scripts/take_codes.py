"""The codes of another protocol's run, or their first bits, written as those of a run."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from datasets.splits import Split
    from tiebench.files import read_json, read_result_npz
    from workflow.stages.run_records import run_title, write_untrained
    from workflow.stages.taken_codes import prefix, taken

    run = read_json(Path(options.run, "run.json"))
    title = run_title(options.protocol, run["method"], options.bits, run["seed"])
    ours, theirs = (Split.load(Path(folder, "split.npz")) for folder in (options.ours, options.theirs))
    with _job.named(title):
        found = read_result_npz(Path(options.run, "codes.npz"))
        codes = taken(found, theirs, ours, run["protocol"])
        if options.bits != run["bits"]:
            codes = prefix(codes, options.bits)
    # What the codes cost, and what they were learnt with, is that run's.
    record = run | {
        "protocol": options.protocol,
        "codes_of": run["protocol"],
        "fingerprints": run["fingerprints"]
        | {"split": read_json(Path(options.ours, "split.json"))["fingerprint"]},
    }
    if options.bits != run["bits"]:
        # Which bits are constant by design the run does not say: of its first none is excused.
        record |= {"bits": options.bits, "prefix_of": run["bits"], "unused_bits": 0}
    write_untrained(options.output, record, codes)
    _job.log.info("%s: %s", title, run["reason"] or f"the codes of {run['protocol']}")


if __name__ == "__main__":
    arguments = _job.parser("take_codes")
    arguments.add_argument("--run", required=True, help="folder of the run whose codes are taken")
    arguments.add_argument("--theirs", required=True, help="folder of its protocol")
    arguments.add_argument("--protocol", required=True)
    arguments.add_argument(
        "--bits", type=int, required=True, help="code length of the run: so many first bits"
    )
    arguments.add_argument("--ours", required=True, help="folder of the protocol")
    arguments.add_argument("--output", required=True, help="folder of the run")
    _job.run(work, arguments)
