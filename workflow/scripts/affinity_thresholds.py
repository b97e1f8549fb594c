"""A protocol's affinity: its card affinity.json, with the thresholds of distances."""

from workflow.scripts import _job


def work(options):
    from datasets import affinity
    from datasets.splits import Split
    from tiebench.files import read_array, write_json
    from workflow.protocol_data import read_labels

    features = read_array(options.features[0], True) if options.features else None
    made = affinity.make(
        options.settings["affinity"],
        read_labels(options.dataset),
        features=features,
        training=Split.load(options.split).training,
    )
    write_json(options.output, made.card())
    _job.log.info("protocol %s: affinity %s", options.name, made.kind)


if __name__ == "__main__":
    arguments = _job.parser("affinity_thresholds")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--features", nargs="*", default=[], help="for affinities from distances")
    arguments.add_argument("--split", required=True)
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
