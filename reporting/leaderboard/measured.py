"""Tables of what benchmarks measured, from the files that `python -m benchmarks NAME --record` writes.

A file of benchmarks/results/ has `command`, `date`, `machine` and `versions`, which pages leave out, and
`tables`: name -> `head` and `rows`, whose cells are Markdown.
"""

import string
from collections.abc import Mapping
from pathlib import Path

from reporting.leaderboard.settings import check_keys, paragraph, read_yaml
from reporting.printed.markdown import markdown_table
from tiebench.messages import did_you_mean

KEYS = {"measured": str, "table": str, "columns": list}


def render(settings: Mapping, folder: Path) -> str:
    """One table of a file, or of all files of a folder that have it, and where and when it was measured.

    settings: of the marker, see generated-parts.md. folder: of the page, to which the path is relative.
    Raises ValueError, one line with the nearest name, for settings that are unknown or do not fit.
    """
    check_keys(settings, KEYS, "a table of measurements")
    name, path = settings.get("table", ""), folder / settings.get("measured", "")
    paths = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    files = [read_yaml(one) for one in paths]
    for one, file in zip(paths, files):
        if not (isinstance(file, dict) and {"command", "date", "machine", "tables"} <= file.keys()):
            raise ValueError(
                f"{one} is no file of measurements: python -m benchmarks NAME --record writes one"
            )
    known = {table for file in files for table in file["tables"]}
    if name not in known:
        raise ValueError(f"{settings['measured']} has no table {name!r}{did_you_mean(name, known)}")
    rows: list[dict[str, str]] = []
    places: dict[str, str] = {}  # where and when -> the letter that stands for it
    for file in files:
        if name not in file["tables"]:
            continue
        place = f"{file['machine']}; {file['date']}."
        letter = places.setdefault(place, string.ascii_lowercase[len(places)])
        for row in file["tables"][name]["rows"]:
            cells = dict(zip(file["tables"][name]["head"], row, strict=True))
            more = {"command": f"`{file['command']}`", "on": letter} if path.is_dir() else {}
            rows.append(cells | more | cells)  # a row may have a command of its own
    columns = settings.get("columns") or list(rows[0])
    for column in columns:
        if wrong := [row for row in rows if column not in row]:
            raise ValueError(f"table {name} has no column {column!r}{did_you_mean(column, wrong[0])}")
    if path.is_dir():
        note = " ".join(f"{letter}: {place}" for place, letter in places.items())
    else:
        note = f"`{files[0]['command']}`: {place}"
    table = markdown_table(columns, [[row[column] for column in columns] for row in rows])
    return f"{table}\n\n{paragraph(note)}"
