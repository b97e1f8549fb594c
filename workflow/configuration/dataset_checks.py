"""Checks of a protocol that read its dataset: whether split, affinity and input fit labels and shapes."""

from pathlib import Path

from tiebench.messages import one_line
from workflow.configuration import source_checks
from workflow.errors import ConfigurationError


def check(configuration, protocol):
    """Raise ConfigurationError if a protocol's split, affinity or input does not fit its dataset.

    Until the dataset's sources are there, there is nothing to compare with, and no error.
    """
    from datasets import affinity, inputs, loaders, splits

    entry = configuration["protocols"][protocol]
    dataset = configuration["datasets"][entry["dataset"]]
    if not configuration.sources.has_dataset(entry["dataset"]):
        return
    sources = [Path(configuration.sources.locate(source).path) for source in dataset["sources"]]
    try:
        description = _describe(loaders.KIND.named(dataset["loader"]).load(), sources, dataset)
        splits.check(entry["split"], description)
        affinity.check(entry["affinity"], description)
        if entry["transfer"] and description.label_kind != "classes":
            raise ValueError(
                f"transfer needs labels: classes, the dataset has labels: {description.label_kind}"
            )
        inputs.check(entry["input"]["kind"], description.kind)
        if entry["end_to_end"] is not None and description.kind != "images":
            raise ValueError("end_to_end needs a dataset of images, these are vectors")
    except (ValueError, OSError) as error:
        where = f"protocol {protocol} on dataset {entry['dataset']}"
        raise ConfigurationError(f"{where}: {one_line(error)}") from error


def _describe(loader, sources, dataset):
    try:
        return loader.describe(sources, **dataset["options"])
    except (ValueError, OSError):
        for path, source in zip(sources, dataset["sources"]):
            source_checks.check(path, source)  # a wrong checksum explains better why a file cannot be read
        raise
