"""What methods see under a protocol: features.npy, and the affinity's card affinity.json."""

from workflow.scripts import _job


def work(options):
    import numpy as np

    from datasets import affinity, inputs
    from datasets.splits import Split
    from workflow.data import read_labels
    from workflow.files import filled, write_json

    settings = options.settings
    items = np.load(f"{options.dataset}/items.npy", mmap_mode="r")
    split = Split.load(f"{options.folder}/split.npz")
    with filled(options.folder) as folder:
        inputs.write_inputs(items, split.training, folder / "features.npy", **settings["input"])
        features = np.load(folder / "features.npy", mmap_mode="r")
        labels = read_labels(options.dataset)
        made = affinity.make(settings["affinity"], labels, features=features, training=split.training)
        write_json(folder / "affinity.json", made.card())
    _job.log.info("protocol %s: features %s", options.name, features.shape)


if __name__ == "__main__":
    arguments = _job.parser("extract_features")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--folder", required=True)
    _job.run(work, arguments)
