"""What methods see under a protocol: features.npy."""

from workflow.scripts import _job


def work(options):
    from datasets import inputs
    from datasets.splits import Split
    from tiebench.files import read_result_array, replaced

    items = read_result_array(options.items, True)
    split = Split.load(options.split)
    with replaced(options.output) as path:
        inputs.write_inputs(items, split.training, path, **options.settings["input"])
    _job.log.info("protocol %s: features of %d items", options.name, len(items))


if __name__ == "__main__":
    arguments = _job.parser("normalise_features")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--items", required=True, help=".npy file of the items, or of their features")
    arguments.add_argument("--split", required=True)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
