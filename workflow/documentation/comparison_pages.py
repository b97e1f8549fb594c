"""The page of a protocol that compares two of its methods: data for the script, and a table without it."""

import json
import math
from collections.abc import Mapping

from reporting.leaderboard import pairs, standings
from reporting.tables.titles import EN_DASH, UNCODED, family_title
from tiebench.metrics import label, resolve
from tiebench.paired import ENOUGH_RUNS, LEVEL, TOO_FEW, Difference
from workflow.documentation.leaderboard_parts import Protocol, Rows, cell, column, document, html, score

DIGITS = 6  # significant: the script shows three decimals, and rounding twice must not show


def comparison_page(protocol: Protocol, method_pages: Mapping[str, str]) -> str:
    board, found = protocol.board, protocol.standings
    columns = {
        bits: pairs.pairs(board, protocol.table, found.metric, bits, protocol.folder) for bits in found.bits
    }
    rows = Rows(method_pages, protocol.table)
    known = [row for row in found.rows if row.method != UNCODED]
    parts = [
        f"# Compare two methods: {protocol.title}",
        f"Choose two methods and a code length. The [leaderboard]({protocol.name}.md) has all scores, "
        f"[compare your codes](../../docs/compare-your-codes.md) does this for codes of your own.",
        html("compare", {"choices": known, "bits": found.bits, "data": _data(protocol, columns)}),
        "## How to read it",
        "The difference of two methods over the same queries has an interval and a p value over queries and "
        "runs together, with each method's own variances ([verdicts](../../docs/verdicts.md)). With fewer "
        f"than {ENOUGH_RUNS} runs of a method that varies there is no p value: *{TOO_FEW}*. *p* "
        "is right for two methods that were chosen before their scores were seen. *Adjusted* is Holm's "
        "correction over all pairs of methods with a rank at this code length: use it for methods that were "
        "chosen from the table. No p value says that two methods are equal.",
        "## Against the best",
    ]
    for bits in found.bits:
        best = found.best(bits)
        if best:
            parts += [
                f"### {bits} bits",
                html("table", _against(protocol, columns[bits], bits, best[0][0], rows)),
            ]
    return document(*parts)


def _against(protocol: Protocol, compared: Mapping, bits: int, best: standings.Row, rows: Rows) -> dict:
    """Every method minus the best, for readers without a script."""
    found = protocol.standings
    differences = pairs.against(compared, best.method, [row.method for row in found.rows])
    body = []
    scored = [row for row in found.rows if bits in row.cells and row.method != UNCODED]
    sign = -1 if resolve(found.metric)[0].higher_is_better else 1
    for row in sorted(
        scored, key=lambda one: (math.isnan(one.cells[bits].mean), sign * one.cells[bits].mean)
    ):
        texts = [cell(EN_DASH, "")] * 4
        if row.method == best.method:
            texts[0] = cell("best", "0")
        elif row.method in differences:
            pair = differences[row.method]
            of = pair.found
            texts = [cell(_signed(of.mean), f"{of.mean:.6g}"), _interval(of), _p(of), _p(of, pair.p_adjusted)]
        body.append(rows.row(row, [score(row.cells[bits]), *texts]))
    columns = [column("Method"), column(label(found.metric)), column("difference"), column("95% interval"),
               column("p", smallest=True), column("adjusted p", smallest=True)]  # fmt: skip
    caption = f"Every method minus {best.title} at {bits} bits"
    return {"id": f"against-{bits}", "caption": caption, "columns": columns, "rows": body}


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def _interval(of: Difference) -> dict:
    if math.isnan(of.low):
        return cell(EN_DASH, "")
    return cell(f"{_signed(of.low)} to {_signed(of.high)}", f"{of.low:.6g}")


def _p(of: Difference, adjusted: float | None = None) -> dict:
    """The p value of a difference, as it is or adjusted."""
    value = of.p if adjusted is None else adjusted
    if math.isnan(value):
        return cell(EN_DASH if of.enough or adjusted is not None else TOO_FEW, "")
    text = "< 0.001" if value < 0.001 else "1" if value >= 0.9995 else f"{value:.3f}"
    return cell(text, f"{value:.3g}")


def _data(protocol: Protocol, columns: Mapping[int, Mapping]) -> str:
    """What the script shows of two methods, as JSON that may stand in a <script>.

    methods: [name, title, loss]; lengths: bits -> {"cells": of each method [mean, std, seeds, rank, seconds
    of training, of encoding] or null, "pairs": of each two methods, (0, 1), (0, 2), ..., (1, 2), ...,
    [difference, low, high, p, p adjusted, over what] or null}. Every number is computed here.
    """
    found = protocol.standings
    rows = [row for row in found.rows if row.method != UNCODED]
    lengths = {}
    for bits, of in columns.items():
        cells = [_cell_data(row.cells.get(bits)) for row in rows]
        compared = []
        for place, one in enumerate(rows):
            others = pairs.against(of, one.method, [row.method for row in rows[place + 1 :]])
            for other in rows[place + 1 :]:
                pair = others.get(other.method)
                compared.append(_pair_data(pairs.reversed_pair(pair)) if pair else None)
        lengths[str(bits)] = {"cells": cells, "pairs": compared}
    data = {
        "metric": label(found.metric),
        "level": LEVEL,
        "competitors": {str(bits): count for bits, count in found.competitors.items()},
        "methods": [[row.method, row.heading, family_title(row.family)] for row in rows],
        "lengths": lengths,
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _cell_data(cell: standings.Cell | None) -> list | None:
    if cell is None or math.isnan(cell.mean):
        return None
    return [
        *(_short(cell.mean), _short(cell.std), cell.seeds, cell.rank),
        *(_short(cell.fit), _short(cell.encode)),
    ]


def _short(value: float) -> float | int | None:
    """A number to DIGITS digits, whole ones as int; None for what is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _pair_data(pair: pairs.Pair) -> list:
    of = pair.found
    numbers = (of.mean, of.low, of.high, of.p, pair.p_adjusted)
    return [*map(_short, numbers), pair.over]
