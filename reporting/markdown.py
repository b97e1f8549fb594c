"""A table and the verdicts on claims as Markdown."""

import math
import re
from collections.abc import Iterable, Mapping

import pandas as pd

from reporting.collapsed import COLLAPSED, collapsed_cells
from reporting.filled import FILLED, filled_marks
from reporting.frames import uncoded_in
from reporting.layout import by_family, groups
from reporting.printing import Note, as_published, cell_values, legend, marks, notes
from reporting.statistics import cell_marks, marks_legend
from reporting.titles import EN_DASH, UNCODED, UNCODED_TITLE, family_title, row_title
from tiebench.metrics import label as metric_label


def to_markdown(
    tidy_frame: pd.DataFrame, table: Mapping, digits: int = 3, compared: pd.DataFrame | None = None
) -> str:
    """A table as Markdown: title, description, one pipe table per group, notes.

    Scores have `digits` decimals, with +- one standard deviation where there are several seeds, and the
    published value in parentheses where the table asks for it; the best of a column is bold, the second
    underlined; a hole is an en dash with a note. compared: of `statistics.comparisons`; with it, marks say
    what is open between a score and the best of its column. A double dagger marks a mean that includes
    collapsed codes, a section sign what is from the leaderboard.
    """
    mark = marks(tidy_frame, table)
    open_of = {} if compared is None else cell_marks(compared)
    reasons, note_of = notes(tidy_frame, table)
    values, collapsed = cell_values(tidy_frame, table), collapsed_cells(tidy_frame)
    whole, filled = filled_marks(tidy_frame)
    lines = [f"# {escape_markdown(table.get('title') or table['name'])}", ""]
    if table.get("description"):
        lines += [escape_markdown(" ".join(table["description"].split())), ""]
    for group in groups(table):
        name, subscript = metric_label(group.metric)
        subscript = f"<sub>{subscript}</sub>" if subscript else ""
        lines += [f"## {escape_markdown(group.title)}, {escape_markdown(name)}{subscript}", ""]
        lines += ["| Method | " + " | ".join(f"{bits} bits" for bits in group.bits) + " |"]
        lines += ["|:---|" + "---:|" * len(group.bits)]
        for family, methods in by_family(table, group.methods):
            if family:
                lines.append(f"| *{family_title(family)}* |" + " |" * len(group.bits))
            for method in methods:
                row = [escape_markdown(row_title(table, method)) + FILLED * (method in whole)]
                for bits in group.bits:
                    cell = (group.protocol, group.metric, method, bits)
                    mean, std, published = values.get(cell, (math.nan,) * 3)
                    text = EN_DASH if math.isnan(mean) else f"{mean:.{digits}f}"
                    text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>"}.get(mark.get(cell), text)
                    text += "" if math.isnan(std) else f" ± {std:.{digits}f}"
                    text += "" if math.isnan(published) else f" ({as_published(published)})"
                    text += COLLAPSED * (cell in collapsed) + FILLED * (cell in filled)
                    text += f" {open_of[cell]}" if cell in open_of else ""
                    row.append(text + (f" <sup>{note_of[cell]}</sup>" if cell in note_of else ""))
                lines.append("| " + " | ".join(row) + " |")
        if uncoded_in(tidy_frame, [group]):
            means = (values[group.protocol, group.metric, UNCODED, bits][0] for bits in group.bits)
            row = [f"*{UNCODED_TITLE}*", *(f"{mean:.{digits}f}" for mean in means)]
            lines.append("| " + " | ".join(row) + " |")
        lines.append("")
    lines += [legend(tidy_frame, table, "" if compared is None else marks_legend(compared)), ""]
    for note in reasons:
        lines += [note_line(note), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def note_line(note: Note) -> str:
    """A note below a table, after its mark."""
    return f"<sup>{note.mark}</sup> {escape_markdown(f'{note.cells} {EN_DASH} {note.reason}')}"


def claims_to_markdown(judged: Iterable[Mapping]) -> str:
    """A section with the verdict on each claim, from what `claims.judge` returned; "" if there is none."""
    lines = []
    for judgement in judged:
        said = {key: escape_markdown(judgement[key]) for key in ("claim", "of", "elsewhere", "summary")}
        elsewhere = f" ({said['elsewhere']})" if said["elsewhere"] else ""
        claim = f"{said['claim']} *{said['of']}*{elsewhere}"
        lines.append(f"- **{judgement['verdict']}**: {claim} {EN_DASH} {said['summary']}")
    return "\n".join(["", "## Claims", "", *lines]) + "\n" if lines else ""


def escape_markdown(text: str) -> str:
    """Text in which no character has a meaning to Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)
