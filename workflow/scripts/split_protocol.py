"""A dataset to a protocol's split: split.npz and its metadata, split.json."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from datasets import splits
    from datasets.inputs import duplicates
    from tiebench.files import filled, read_result_array, write_json
    from workflow.stages.protocol_data import read_description

    settings = options.settings
    description = read_description(options.dataset)
    split = splits.draw(settings["split"], description, settings["seed"])
    with filled(options.folder) as folder:
        split.save(folder / "split.npz")
        metadata = split.metadata() | {"split": settings["split"], "seed": settings["seed"]}
        items = read_result_array(Path(options.dataset, "items.npy"), True)
        found = {
            part: len(duplicates(items, split.query, getattr(split, part)))
            for part in ("database", "training")
        }
        metadata["queries_with_a_duplicate"] = found
        write_json(folder / "split.json", metadata)
    for part, count in found.items():
        if count:
            _job.log.warning(
                "protocol %s: %d of %d queries have an exact duplicate in the %s",
                options.name,
                count,
                len(split.query),
                {"training": "training set"}.get(part, part),
            )
    _job.log.info(
        "protocol %s: %d queries, %d database items, %d training items",
        options.name,
        len(split.query),
        len(split.database),
        len(split.training),
    )


if __name__ == "__main__":
    arguments = _job.parser("split_protocol")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--dataset", required=True, help="folder of the dataset")
    arguments.add_argument("--folder", required=True)
    _job.run(work, arguments)
