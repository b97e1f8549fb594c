"""The configuration that makes a file of features a dataset, a protocol and a table."""

import re
from pathlib import Path

import numpy as np
import yaml

from datasets.loaders import features_file

MOST_QUERIES, MOST_TRAINING = 1000, 5000
NEIGHBOURS = 10


def configuration(path: Path) -> str:
    """YAML of the file at `path`, to be pasted and edited.

    Raises as `datasets.loaders.features_file.describe`.
    """
    path = Path(path).absolute()
    described = features_file.describe([path])
    name = re.sub(r"\W+", "_", path.stem.lower(), flags=re.ASCII).strip("_") or "features"
    name = name if _quoted(name) == name else f"features_{name}"  # of digits alone, or a word of YAML
    affinity, split = "{kind: class}", _split(described)
    if described.labels is None:
        affinity = f"{{kind: neighbours, k: {min(NEIGHBOURS, max(1, described.items // 10))}}}"
    # Methods that learn from nothing but the vectors serve every protocol.
    return f"""\
datasets:
  {name}:
    loader: features_file
    sources: [{{file: {_quoted(str(path))}}}]
protocols:
  {name}:
    dataset: {name}
    split: {split}
    affinity: {affinity}
tables:
  {name}:
    methods: [lsh, itq]
    blocks: [{{protocol: {name}, metric: ap, bits: [16, 32]}}]
"""


def _split(described):
    given = described.given_split
    if given is not None and np.ptp(given):  # of one part, the queries would be the database
        parts, sizes = np.unique(given, return_counts=True)
        names = described.split_names
        words = [
            _quoted(str(parts[place] if names is None else names[parts[place]]))
            for place in np.argsort(sizes)
        ]
        return f"{{kind: given, query: {words[0]}, database: {words[-1]}, training: all}}"
    smallest = 0 if described.labels is None else np.unique(described.labels, return_counts=True)[1].min()
    if smallest < 2:  # no query and training item of each class
        return f"{{kind: random, {_sizes(described.items)}}}"
    return f"{{kind: per_class, {_sizes(smallest)}}}"


def _sizes(items):
    """Queries and training items, of all items or of the smallest class."""
    query, training = max(1, min(MOST_QUERIES, items // 10)), max(1, min(MOST_TRAINING, items // 2))
    return f"query: {query}, training: {training}"


def _quoted(text):
    """A YAML scalar that is read as this text."""
    plain = re.fullmatch(r"[A-Za-z/_][\w./-]*", text) and yaml.safe_load(text) == text
    return text if plain else "'" + text.replace("'", "''") + "'"
