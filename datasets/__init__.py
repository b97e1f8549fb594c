"""Datasets: loaders, kinds of split and kinds of affinity, one file each, found by themselves.

A file of `datasets/loaders/` is a loader, a file of `datasets/splits/` a kind of split, a
file of `datasets/affinity/` a kind of affinity. Names that start with an underscore are helpers. Nothing is
registered; docs/add-a-dataset.md and docs/add-a-protocol.md describe what such a file defines.
"""


def loader_kinds() -> dict:
    """Name -> `datasets.loaders.Loader`, sorted by name. Raises ValueError for one that is not complete."""
    from datasets import loaders

    return loaders.kinds()


def split_kinds() -> dict:
    """Name -> `datasets.splits.SplitKind`, sorted by name. Raises ValueError for one that is not complete."""
    from datasets import splits

    return splits.kinds()


def affinity_kinds() -> dict:
    """Name -> subclass of `datasets.affinity.Affinity`, sorted by name. Raises ValueError for a
    file that does not define exactly one."""
    from datasets import affinity

    return affinity.kinds()
