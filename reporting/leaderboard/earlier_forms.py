"""Rows of the leaderboard that were made by an earlier form of their method: earlier_forms.yaml.

    - methods: [cibhash]
      commits: [8edc5db1dde8089f53c61d840a86c618d9da4298]
      differs: what the form of these commits does otherwise

An entry marks the rows of its methods whose runs are of one of its commits, those of `run.git_commit` in
runs.csv. Rows that are published again have another commit, and no mark.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from reporting.leaderboard.settings import check_keys, read_yaml

FILE = "earlier_forms.yaml"
KEYS = {"methods": list, "commits": list, "differs": str}


def of(runs: Iterable[Mapping], folder: str | Path) -> dict[str, str]:
    """Method -> what differs in the form that made some of its runs, {} for a folder without the file.

    runs: rows of runs.csv. Raises ValueError, one line, for a file of another form.
    """
    made = {(run["method"], run["run.git_commit"]) for run in runs}
    found: dict[str, list[str]] = {}
    for entry in read(folder):
        for method in entry["methods"]:
            if any((method, commit) in made for commit in entry["commits"]):
                found.setdefault(method, []).append(entry["differs"])
    return {method: "; ".join(differs) for method, differs in found.items()}


def read(folder: str | Path) -> list[dict]:
    """The entries of the file, [] where there is none."""
    path = Path(folder, FILE)
    if not path.exists():
        return []
    entries = read_yaml(path)
    if not isinstance(entries, list):
        raise ValueError(f"{path}: must be a list of entries with the keys {', '.join(KEYS)}")
    for number, entry in enumerate(entries, 1):
        check_keys(entry, KEYS, f"{path}: entry {number}")
        if len(entry) < len(KEYS):
            raise ValueError(f"{path}: entry {number} must have the keys {', '.join(KEYS)}")
    return entries
