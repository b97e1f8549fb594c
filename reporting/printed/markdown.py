"""A table and the verdicts on claims as Markdown."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from reporting.printed.cells import Cell, Cells
from reporting.printed.marks import Note, as_published
from reporting.tables.titles import EN_DASH, family_title
from tiebench.metrics import label


def to_markdown(printed: Cells, digits: int = 3) -> str:
    """A table as Markdown: title, description, one pipe table per group, notes.

    Scores have `digits` decimals, with +- one standard deviation where there are several seeds, and the
    published value in parentheses where the table asks for it; the best of a column is bold, the second
    underlined; a hole is an en dash with a note. Where methods were compared, marks say what is open between
    a score and the best of its column. A double dagger marks a mean that includes collapsed codes, a section
    sign what is from the leaderboard.
    """
    table = printed.table
    lines = [f"# {escape_markdown(table.heading)}", ""]
    if table.description:
        lines += [escape_markdown(" ".join(table.description.split())), ""]
    for group in table.groups:
        lines += [f"## {escape_markdown(group.title)}, {metric_name(group.metric)}", ""]
        rows = []
        for family, of_family in printed.rows([group], group.methods):
            if family:
                rows.append([f"*{family_title(family)}*{' |' * len(group.bits)}"])
            for row in of_family:
                rows.append([escape_markdown(row.heading), *(_cell(cell, digits) for cell in row.cells)])
        if uncoded := printed.uncoded([group]):
            means = (f"{cell.mean:.{digits}f}" for cell in uncoded.cells if cell)
            rows.append([f"*{uncoded.heading}*", *means])
        heading = ["Method", *(f"{bits} bits" for bits in group.bits)]
        lines += [markdown_table(heading, rows, len(group.bits)), ""]
    lines += [escape_markdown(printed.legend), ""]
    for note in printed.notes:
        lines += [note_line(note), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(cell: Cell | None, digits: int) -> str:
    if cell is None:
        return EN_DASH
    text = f"{cell.mean:.{digits}f}" if cell.known else EN_DASH
    text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>"}.get(cell.rank, text)
    text += "" if math.isnan(cell.std) else f" ± {cell.std:.{digits}f}"
    text += "" if math.isnan(cell.printed) else f" ({as_published(cell.printed)})"
    text += cell.signs + (f" {cell.open}" if cell.open else "")
    return text + (f" <sup>{cell.note}</sup>" if cell.note else "")


def note_line(note: Note) -> str:
    """A note below a table, after its mark."""
    return f"<sup>{note.mark}</sup> {escape_markdown(f'{note.cells} {EN_DASH} {note.reason}')}"


def claims_to_markdown(judged: Iterable[Mapping]) -> str:
    """A section with the verdict on each claim, from what `verdicts.judge` returned; "" if there is none."""
    lines = []
    for judgement in judged:
        said = {key: escape_markdown(judgement[key]) for key in ("claim", "of", "elsewhere", "summary")}
        elsewhere = f" ({said['elsewhere']})" if said["elsewhere"] else ""
        claim = f"{said['claim']} *{said['of']}*{elsewhere}"
        lines.append(f"- **{judgement['verdict']}**: {claim} {EN_DASH} {said['summary']}")
    return "\n".join(["", "## Claims", "", *lines]) + "\n" if lines else ""


def metric_name(metric: str) -> str:
    """The display name of a metric."""
    name, subscript = label(metric)
    return escape_markdown(name) + (f"<sub>{subscript}</sub>" if subscript else "")


def escape_markdown(text: str) -> str:
    """Text in which no character has a meaning to Markdown."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def markdown_table(heading: Sequence[str], rows: Iterable[Sequence[str]], numbers: int | None = None) -> str:
    """A table of cells that are Markdown; columns of numbers are aligned to the right.

    numbers: how many columns, the last ones, these are; None: those whose cells all begin as a number does.
    """
    rows, texts = list(rows), len(heading) - (numbers or 0)
    right = [column >= texts for column in range(len(heading))]
    if numbers is None:
        right = [all(re.match(r"[−+\d–]|$", text) for text in column) for column in zip(*rows)]
    first, *others = (f"| {' | '.join(row)} |" for row in (heading, *rows))
    return "\n".join([first, "|" + "".join("---:|" if one else ":---|" for one in right), *others])
