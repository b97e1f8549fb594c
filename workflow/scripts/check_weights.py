"""A network's pretrained weights, compared with what is recorded of them: their sums, kept for later runs."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from tiebench.files import write_json
    from workflow.configuration.source_checks import check

    source = options.settings
    if Path(options.weights).is_dir():
        raise ValueError(f"{options.weights} is a folder: weights are one file")
    found = check(options.weights, source)
    card = {key: found[key] for key in ("bytes", "sha256", "md5") if key in found}
    card |= {"state": source["state"]} if "state" in source else {}
    write_json(options.output, {"file": Path(options.weights).name} | card)
    _job.log.info("network %s: weights of %d bytes", options.name, card["bytes"])


if __name__ == "__main__":
    arguments = _job.parser("check_weights")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--weights", required=True)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
