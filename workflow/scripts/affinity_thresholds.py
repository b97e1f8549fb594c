"""A protocol's affinity: its card affinity.json, with the thresholds of distances."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from datasets.affinity import Affinity
    from datasets.splits import Split
    from tiebench.files import write_json

    split = Split.load(options.split)
    protocol = Path(options.output).parent
    made = Affinity.load(options.settings["affinity"], options.dataset, protocol, split, measure=True)
    write_json(options.output, made.metadata())
    _job.log.info("protocol %s: affinity %s", options.name, made.kind)


if __name__ == "__main__":
    arguments = _job.parser("affinity_thresholds")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--split", required=True)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
