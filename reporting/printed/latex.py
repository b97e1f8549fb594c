"""A table as LaTeX, with rules of the booktabs package."""

import math
import re
import textwrap

from reporting.printed.cells import Cell, Cells
from reporting.printed.marks import as_published
from reporting.tables.model import Group
from reporting.tables.titles import UNCODED_TITLE, family_title
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
# Points of a page and of a column of LaTeX's `article` in two columns; what conferences ask for is wider.
PAGE, COLUMN = 469, 229
SEPARATION = 2  # points at each side of a column of the table
# Of commands, those that print nothing themselves.
STYLE = re.compile(r"\\(?:textbf|underline|emph|scriptsize|textsuperscript|mathrm)|[{}$_]")


def escape_latex(text: str) -> str:
    """Text in which no character has a meaning to LaTeX; line breaks become spaces."""
    return "".join(LATEX_SPECIAL.get(character, character) for character in " ".join(text.split()))


def to_latex(printed: Cells, digits: int = 3) -> str:
    """A table as a complete LaTeX `table` environment that needs only the booktabs package.

    It is `table*` where it does not fit a column. Panels of as many groups as fit a page are stacked in one
    tabular, each with a \\multicolumn header per group. Scores have `digits` decimals and, in small type, one
    standard deviation where there are several seeds, and the published value in parentheses where the table
    asks for it; the best of a column is bold, the second underlined; a hole is an en dash with a note below.
    Where methods were compared, marks say what is open between a score and the best of its column.
    """
    table = printed.table
    # The caption says what they are ranked by.
    uncoded_heading = f"\\emph{{{UNCODED_TITLE.partition(' (')[0]}}}"
    headings = ["Method", *[uncoded_heading] * (printed.uncoded(table.groups) is not None)]
    for _, rows in printed.rows(table.groups, table.rows):
        headings += [escape_latex(row.heading) for row in rows]
    scores = max(_points(_latex_cell(cell, digits)) for cell in printed.of.values())

    def points(group: Group) -> float:
        widths = (max(scores, _points(f"{bits} bits")) + 2 * SEPARATION for bits in group.bits)
        title = max(map(_points, _latex_title(group)))
        return max(sum(widths), 1.15 * title + 2 * SEPARATION)  # bold letters are wider

    beside = max(map(_points, headings))
    laid_out = table.panels(PAGE - beside, points)
    width = max(sum(len(group.bits) for group in groups) for groups, _ in laid_out)
    widest = max(sum(map(points, groups)) for groups, _ in laid_out)
    environment = "table" if beside + widest <= COLUMN else "table*"  # over both columns of a paper
    caption = escape_latex(table.heading).rstrip(".") + "."
    if table.description:
        caption += " " + escape_latex(table.description)
    caption += " " + escape_latex(printed.legend)
    lines = [
        f"\\begin{{{environment}}}[t]",
        r"\centering",
        r"\small",
        f"\\setlength{{\\tabcolsep}}{{{SEPARATION}pt}}",
        f"\\caption{{{caption}}}",
        f"\\label{{tab:{re.sub('[^A-Za-z0-9]+', '-', table.name)}}}",
        f"\\begin{{tabular}}{{@{{}}l{'c' * width}@{{}}}}",
        r"\toprule",
    ]
    for index, (groups, methods) in enumerate(laid_out):
        if index:
            lines.append(r"\midrule")
        lines += _latex_header(groups, width)
        for number, (family, rows) in enumerate(printed.rows(groups, methods)):
            if family:
                lines += [r"\addlinespace"] * (number > 0)
                lines.append(
                    f"\\multicolumn{{{width + 1}}}{{@{{}}l}}{{\\emph{{{family_title(family)}}}}} \\\\"
                )
            for row in rows:
                texts = [_latex_cell(cell, digits) for cell in row.cells]
                lines.append(_latex_row([escape_latex(row.heading), *texts], width))
        if uncoded := printed.uncoded(groups):
            texts = [_latex_cell(cell, digits) for cell in uncoded.cells]
            lines += [r"\addlinespace", _latex_row([uncoded_heading, *texts], width)]
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
        lines = _latex_title(group)
        title = r" \\ ".join(lines)
        if len(lines) > 1:
            title = f"\\shortstack{{{title}}}"
        names.append(f"\\multicolumn{{{len(group.bits)}}}{{c}}{{{title}}}")
        rules.append(f"\\cmidrule(lr){{{start}-{end}}}")
        bits += [f"{count} bits" for count in group.bits]
        start = end + 1
    return [_latex_row(names, None), " ".join(rules), _latex_row(bits, width), r"\midrule"]


def _latex_title(group: Group) -> list[str]:
    """The title of a group and its metric, in lines."""
    name, subscript = metric_label(group.metric)
    metric = escape_latex(name) + (f"$_\\mathrm{{{subscript}}}$" if subscript else "")
    # As narrow as its columns: a longer line would widen the last of them.
    room = 10 * len(group.bits)
    lines = textwrap.wrap(group.title, room, break_long_words=False) or [""]
    titles = [f"\\textbf{{{escape_latex(line)}}}" for line in lines]
    if len(lines) == 1 and len(f"{lines[0]}, {name}") <= room:
        return [f"{titles[0]}, {metric}"]
    return [*titles[:-1], f"{titles[-1]},", metric]


def _points(text: str) -> float:
    """About how wide a cell or a heading is in \\small type; what follows a thin space is smaller."""
    parts = re.sub(r"\\[A-Za-z]+", "M", STYLE.sub("", text)).split(r"\,")
    wide, *small = (
        sum(6.4 if one.isupper() else 5.0 if one.isdigit() else 4.1 for one in part) for part in parts
    )
    return wide + sum(1.5 + 0.75 * one for one in small)


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
