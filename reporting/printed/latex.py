"""A table as LaTeX, with rules of the booktabs package."""

import math
import re
import textwrap

from reporting.printed.cells import Cell, Cells
from reporting.printed.marks import as_published
from reporting.tables.model import Group
from reporting.tables.titles import family_title
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


def to_latex(printed: Cells, digits: int = 3) -> str:
    """A table as a complete LaTeX `table` environment that needs only the booktabs package.

    Panels of as many columns of scores as fit a page are stacked in one tabular, each with a \\multicolumn
    header per group. Scores have `digits` decimals and, in small type, one standard deviation where there are
    several seeds, and the published value in parentheses where the table asks for it; the best of a column is
    bold, the second underlined; a hole is an en dash with a note below. Where methods were compared, marks
    say what is open between a score and the best of its column.
    """
    table, crowded = printed.table, printed.crowded
    laid_out = table.panels(4 if crowded else 8)
    width = max(sum(len(group.bits) for group in groups) for groups, _ in laid_out)
    environment = "table*" if width > 4 or crowded else "table"  # over both columns of a paper
    caption = escape_latex(table.heading).rstrip(".") + "."
    if table.description:
        caption += " " + escape_latex(table.description)
    caption += " " + escape_latex(printed.legend)
    lines = [
        f"\\begin{{{environment}}}[t]",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{3pt}",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table.name)}}}",
        f"\\begin{{tabular}}{{l{'c' * width}}}",
        r"\toprule",
    ]
    for index, (groups, methods) in enumerate(laid_out):
        if index:
            lines.append(r"\midrule")
        lines += _latex_header(groups, width)
        for number, (family, rows) in enumerate(printed.rows(groups, methods)):
            if family:
                lines += [r"\addlinespace"] * (number > 0)
                lines.append(f"\\multicolumn{{{width + 1}}}{{l}}{{\\emph{{{family_title(family)}}}}} \\\\")
            for row in rows:
                texts = [_latex_cell(cell, digits) for cell in row.cells]
                lines.append(_latex_row([escape_latex(row.heading), *texts], width))
        if uncoded := printed.uncoded(groups):
            texts = [_latex_cell(cell, digits) for cell in uncoded.cells]
            heading = f"\\emph{{{escape_latex(uncoded.heading)}}}"
            lines += [r"\addlinespace", _latex_row([heading, *texts], width)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if printed.notes:
        lines.append(r"\par\smallskip\footnotesize\raggedright")
        for note in printed.notes:
            words = escape_latex(f"{note.cells} – {note.reason}").rstrip(".")
            lines.append(f"\\textsuperscript{{{note.mark}}}~{words}.\\par")
    lines.append(f"\\end{{{environment}}}")
    return "\n".join(lines) + "\n"


def _latex_header(groups: list[Group], width: int) -> list[str]:
    names, rules, bits, start = [""], [], ["Method"], 2
    for group in groups:
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
    text = " & ".join(row + padding).rstrip() + r" \\"
    return "{}" * text.startswith("[") + text  # after the line break of the row before, it would be an option


def _latex_cell(cell: Cell | None, digits: int) -> str:
    if cell is None:
        return ""
    text = f"{cell.mean:.{digits}f}" if cell.known else "--"
    text = {"best": f"\\textbf{{{text}}}", "second": f"\\underline{{{text}}}"}.get(cell.rank, text)
    if not math.isnan(cell.std):
        text += f"\\,{{\\scriptsize$\\pm${_short(f'{cell.std:.{digits}f}')}}}"
    if not math.isnan(cell.printed):
        text += f"\\,{{\\scriptsize({_short(as_published(cell.printed))})}}"
    note = escape_latex(cell.signs) + cell.open + cell.note
    return text + (f"\\textsuperscript{{{note}}}" if note else "")


def _short(number: str) -> str:
    """Without the zero before the point: eight columns do not fit on a page with it."""
    return number.removeprefix("0")
