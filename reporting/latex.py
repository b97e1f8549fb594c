"""A table as LaTeX, with rules of the booktabs package."""

import math
import re
import textwrap
from collections.abc import Mapping

import pandas as pd

from reporting.collapsed import COLLAPSED, collapsed_cells
from reporting.filled import FILLED, filled_marks
from reporting.frames import uncoded_in
from reporting.layout import Panel, by_family, panels
from reporting.printing import as_published, cell_values, legend, marks, notes
from reporting.statistics import cell_marks, marks_legend
from reporting.titles import UNCODED, UNCODED_TITLE, family_title, row_title
from tiebench.metrics import label as metric_label

LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "±": r"$\pm$",
    "×": r"$\times$",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "¶": r"\P{}",
    "§": r"\S{}",
    "‖": r"$\|$",
}


def escape_latex(text: str) -> str:
    """Text in which no character has a meaning to LaTeX; line breaks become spaces."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in " ".join(text.split()))


def to_latex(
    tidy_frame: pd.DataFrame,
    table: Mapping,
    digits: int = 3,
    max_columns: int | None = None,
    environment: str | None = None,
    compared: pd.DataFrame | None = None,
) -> str:
    """A table as a complete LaTeX `table` environment that needs only the booktabs package.

    Panels of at most `max_columns` columns of scores, by default as many as fit a page, are stacked in one
    tabular, each with a \\multicolumn header per group. Scores have `digits` decimals and, in small type, one
    standard deviation where there are several seeds, and the published value in parentheses where the table
    asks for it; the best of a column is bold, the second underlined; a hole is an en dash with a note below.
    compared: of `statistics.comparisons`; with it, marks say what is open between a score and the best of its
    column. environment: "table", or "table*" over both columns of a paper; by default what the width needs.
    """
    mark = marks(tidy_frame, table)
    open_of = {} if compared is None else cell_marks(compared)
    reasons, note_of = notes(tidy_frame, table)
    values, collapsed = cell_values(tidy_frame, table), collapsed_cells(tidy_frame)
    whole, filled = filled_marks(tidy_frame)
    crowded = any(not math.isnan(std) and not math.isnan(printed) for _, std, printed in values.values())
    if max_columns is None:
        max_columns = 4 if crowded else 8
    laid_out = panels(table, max_columns)
    width = max(sum(len(group.bits) for group in panel.groups) for panel in laid_out)
    environment = environment or ("table*" if width > 4 or crowded else "table")
    caption = escape_latex(table.get("title") or table["name"]).rstrip(".") + "."
    if table.get("description"):
        caption += " " + escape_latex(table["description"])
    caption += " " + escape_latex(
        legend(tidy_frame, table, "" if compared is None else marks_legend(compared))
    )
    lines = [
        f"\\begin{{{environment}}}[t]",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table['name'])}}}",
        f"\\begin{{tabular}}{{l{'c' * width}}}",
        r"\toprule",
    ]
    for index, panel in enumerate(laid_out):
        if index:
            lines.append(r"\midrule")
        lines += _latex_header(panel, width)
        for number, (family, methods) in enumerate(by_family(table, panel.methods)):
            if family:
                lines += [r"\addlinespace"] * (number > 0)
                lines.append(f"\\multicolumn{{{width + 1}}}{{l}}{{\\emph{{{family_title(family)}}}}} \\\\")
            for method in methods:
                row = [escape_latex(row_title(table, method) + FILLED * (method in whole))]
                for group in panel.groups:
                    for bits in group.bits:
                        cell = (group.protocol, group.metric, method, bits)
                        note = escape_latex(COLLAPSED * (cell in collapsed) + FILLED * (cell in filled))
                        note += open_of.get(cell, "") + note_of.get(cell, "")
                        row.append(_latex_cell(values.get(cell), digits, mark.get(cell), note))
                lines.append(_latex_row(row, width))
        if uncoded_in(tidy_frame, panel.groups):
            row = [f"\\emph{{{escape_latex(UNCODED_TITLE)}}}"]
            for group in panel.groups:
                cells = [(group.protocol, group.metric, UNCODED, bits) for bits in group.bits]
                row += [_latex_cell(values.get(cell), digits, None, None) for cell in cells]
            lines += [r"\addlinespace", _latex_row(row, width)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if reasons:
        lines.append(r"\par\smallskip\footnotesize\raggedright")
        for note in reasons:
            words = escape_latex(f"{note.cells} – {note.reason}").rstrip(".")
            lines.append(f"\\textsuperscript{{{note.mark}}}~{words}.\\par")
    lines.append(f"\\end{{{environment}}}")
    return "\n".join(lines) + "\n"


def _latex_header(panel: Panel, width: int) -> list[str]:
    names, rules, bits, start = [""], [], ["Method"], 2
    for group in panel.groups:
        end = start + len(group.bits) - 1
        name, subscript = metric_label(group.metric)
        metric = escape_latex(name) + (f"$_\\mathrm{{{subscript}}}$" if subscript else "")
        # As narrow as its columns: a longer line would widen the last of them.
        lines = textwrap.wrap(group.title, 13 * len(group.bits), break_long_words=False)
        title = r" \\ ".join(f"\\textbf{{{escape_latex(line)}}}" for line in lines) + f", {metric}"
        if len(lines) > 1:
            title = f"\\shortstack{{{title}}}"
        names.append(f"\\multicolumn{{{len(group.bits)}}}{{c}}{{{title}}}")
        rules.append(f"\\cmidrule(lr){{{start}-{end}}}")
        bits += [f"{count} bits" for count in group.bits]
        start = end + 1
    return [_latex_row(names, None), " ".join(rules), _latex_row(bits, width), r"\midrule"]


def _latex_row(row: list[str], width: int | None) -> str:
    padding = [""] * (0 if width is None else width + 1 - len(row))
    return " & ".join(row + padding).rstrip() + r" \\"


def _latex_cell(
    value: tuple[float, float, float] | None, digits: int, mark: str | None, note: str | None
) -> str:
    if value is None:
        return ""
    mean, std, published = value
    text = "--" if math.isnan(mean) else f"{mean:.{digits}f}"
    text = {"best": f"\\textbf{{{text}}}", "second": f"\\underline{{{text}}}"}.get(mark, text)
    if not math.isnan(std):
        text += f"\\,{{\\scriptsize$\\pm${_short(f'{std:.{digits}f}')}}}"
    if not math.isnan(published):
        text += f"\\,{{\\scriptsize({_short(as_published(published))})}}"
    return text + (f"\\textsuperscript{{{note}}}" if note else "")


def _short(number: str) -> str:
    """Without the zero before the point: eight columns do not fit on a page with it."""
    return number.removeprefix("0")
