"""1 for two items with at least one label in common, else 0."""

from datasets.affinity._multi_hot import SharedLabelsAffinity


class SharedLabel(SharedLabelsAffinity):
    """See the module."""

    decided_by_labels = "any"
