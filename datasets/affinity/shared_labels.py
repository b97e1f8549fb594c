"""The number of labels that two items have in common."""

from datasets.affinity._multi_hot import SharedLabelsAffinity


class SharedLabels(SharedLabelsAffinity):
    """See the module."""

    decided_by_labels = "shared"
