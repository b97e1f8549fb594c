"""Sources to a dataset: items.npy, labels.npy, given_split.npy and dataset.json."""

from pathlib import Path

from workflow.scripts import _job


def work(options):
    from datasets import loaders
    from datasets.loaders.images import LIST_OF_CORRUPT, CorruptImagesError
    from tiebench.files import filled, write_json, write_text
    from workflow.configuration.source_checks import check

    settings = options.settings
    for source, path in zip(settings["sources"], options.sources):
        check(path, source, Path(options.folder, "sources.json"))
    loader = loaders.KIND.named(settings["loader"]).load()
    listed = Path(options.folder, LIST_OF_CORRUPT)
    listed.unlink(missing_ok=True)
    with filled(options.folder) as folder:
        try:
            description = loader.load([Path(p) for p in options.sources], folder, **settings["options"])
        except CorruptImagesError as error:
            write_text(listed, "\n".join(error.names) + "\n")
            raise ValueError(f"{error}; {listed} lists all") from error
        metadata = description.metadata()
        decisive = [folder / name for name in ("items.npy", "labels.npy", "judgements.npy")]
        metadata["fingerprint"] = fingerprint(path for path in decisive if path.is_file())
        metadata["made_from"] = settings
        write_json(folder / "dataset.json", metadata)
        left = [name for name in ("ids.npy", "judgements.npy") if not (folder / name).is_file()]
    for name in left:  # of an earlier version of the sources
        Path(options.folder, name).unlink(missing_ok=True)
    _job.log.info("dataset %s: %d items of shape %s", options.name, metadata["items"], metadata["item_shape"])


def fingerprint(files):
    """sha256 over files, one after the other."""
    import hashlib

    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


if __name__ == "__main__":
    arguments = _job.parser("load_dataset")
    arguments.add_argument("--name", required=True)
    arguments.add_argument("--sources", nargs="*", default=[])
    arguments.add_argument("--folder", required=True)
    _job.run(work, arguments)
