"""A table as Markdown."""

import math
import re
from collections.abc import Mapping

import pandas as pd

from workflow.reporting.frames import EN_DASH, cell_values, groups, marks, notes, seeds_sentence
from workflow.reporting.names import method_name, metric_name


def to_markdown(tidy_frame: pd.DataFrame, table: Mapping, digits: int = 3) -> str:
    """A table as Markdown: title, description, one pipe table per group, notes.

    Scores have `digits` decimals, with +- one standard deviation where there are several seeds; the best of
    a column is bold, the second underlined; a hole is an en dash with a note.
    """
    mark = marks(tidy_frame)
    reasons, note_of = notes(tidy_frame, table)
    values = cell_values(tidy_frame)
    lines = [f"# {_markdown(table.get('title') or table['name'])}", ""]
    if table.get("description"):
        lines += [_markdown(" ".join(table["description"].split())), ""]
    for group in groups(table):
        name, subscript = metric_name(group.metric)
        subscript = f"<sub>{subscript}</sub>" if subscript else ""
        lines += [f"## {_markdown(group.title)}, {_markdown(name)}{subscript}", ""]
        lines += ["| Method | " + " | ".join(f"{bits} bits" for bits in group.bits) + " |"]
        lines += ["|:---|" + "---:|" * len(group.bits)]
        for method in group.methods:
            row = [_markdown(method_name(method))]
            for bits in group.bits:
                cell = (group.protocol, group.metric, method, bits)
                mean, std = values.get(cell, (math.nan, math.nan))
                text = EN_DASH if math.isnan(mean) else f"{mean:.{digits}f}"
                text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>"}.get(mark.get(cell), text)
                text += "" if math.isnan(std) else f" ± {std:.{digits}f}"
                row.append(text + (f" <sup>{note_of[cell]}</sup>" if cell in note_of else ""))
            lines.append("| " + " | ".join(row) + " |")
        lines.append("")
    legend = f"Best in bold, second underlined. {seeds_sentence(tidy_frame)}"
    lines += [legend.strip(), ""]
    for note in reasons:
        lines += [f"<sup>{note.mark}</sup> {_markdown(note.cells)} – {_markdown(note.reason)}", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
