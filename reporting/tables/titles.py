"""How metrics, families of methods, bounds and other rows are written for people.

Titles of methods and protocols come with a table (`reporting.tables.model`): reporting itself knows none of
them.
"""

# What a method's loss compares: items with classes, or pairs, triplets or lists of items; unsupervised
# methods have no such loss. Baselines are what hashing has to beat.
FAMILIES = {
    "unsupervised": "Unsupervised",
    "classwise": "Classes",
    "pointwise": "Pairs",
    "pairwise": "Triplets",
    "listwise": "Lists",
    "external": "Codes of other programs",
    "bound": "Baselines",
}
BOUND = "bound"


# What a method's training sees, unless its style says more.
TRAINING_SET = "training set"
EN_DASH = "–"
DAGGER = "†"
EXTERNAL = "¶"
EARLIER = "‖"
# Of scores: some of their runs have collapsed codes; they are from the leaderboard.
COLLAPSED = "‡"
FILLED = "§"

# The row of the features themselves, which no method encoded.
UNCODED = "uncoded"
UNCODED_TITLE = "Uncoded features (cosine)"

# What records of runs that were not made here have as their "source", and the status of their cells.
LEADERBOARD = "leaderboard"

# What the names of the ends of ranges over tie orders end in: they are no scores of their own.
RANGE = ("_min", "_max")


def metric_title(metric: str) -> str:
    """A metric in plain text: "AP_T", "NDCG_T", "Recall@100"."""
    from tiebench.metrics import label  # here: runs are read where nothing has loaded NumPy

    return "_".join(filter(None, label(metric)))


def family_title(family: str) -> str:
    """The title of a family of methods: "pointwise" is "Pairs"; an unknown one is unchanged."""
    return FAMILIES.get(family, family)
