"""The page of a protocol that compares two of its methods: data for the script, and a table without it."""

import functools
import json
import math
from collections.abc import Mapping

from reporting.leaderboard import pairs
from reporting.leaderboard.per_query import with_scores
from reporting.page.scores import column, plain
from reporting.page.words import probability, signed
from reporting.tables.runs import PARTS, collapsed_runs
from reporting.tables.titles import EN_DASH, UNCODED, family_title
from tiebench.leaderboards import rate_words
from tiebench.metrics import label
from tiebench.paired import ENOUGH_RUNS, LEVEL, TOO_FEW
from workflow.documentation.leaderboard_parts import Column, Protocol, document, html

DIGITS = 6  # significant: the script shows three decimals, and rounding twice must not show


def comparison_page(protocol: Protocol, method_pages: Mapping[str, str]) -> str:
    runs = with_scores(protocol.board, protocol.folder)
    columns = {
        bits: pairs.pairs(protocol.board, protocol.table, protocol.main.metric, bits, runs)
        for bits in protocol.main.bits
    }
    choices = [(name, protocol.table.method_title(name)) for name in protocol.methods() if name != UNCODED]
    parts = [
        f"# Compare two methods: {protocol.title}",
        f"Choose two methods and a code length. The [leaderboard]({protocol.name}.md) has all scores, "
        f"[compare your codes](../../docs/compare-your-codes.md) does this for codes of your own.",
        html("compare", {"choices": choices, "bits": list(columns), "data": _data(protocol, columns)}),
        "## How to read it",
        "The difference of two methods over the same queries has an interval and a p value over queries and "
        "runs together, with each method's own variances ([verdicts](../../docs/verdicts.md)). With fewer "
        f"than {ENOUGH_RUNS} runs of a method that varies there is no p value: *{TOO_FEW}*. *p* "
        "is right for two methods that were chosen before their scores were seen. *Adjusted* is Holm's "
        "correction over all pairs of methods with a rank at this code length: use it for methods that were "
        "chosen from the table. No p value says that two methods are equal.",
        "## Against the best",
    ]
    for bits, of in columns.items():
        methods = [name for name in protocol.methods(bits) if name != UNCODED]
        best = next((name for name in methods if protocol.rank(name, bits) != EN_DASH), None)
        if best:
            # Every method minus the best, for readers without a script.
            caption = f"Every method minus {protocol.table.method_title(best)} at {bits} bits"
            shown = [protocol.score(protocol.main, bits), *_against(pairs.against(of, best, methods), best)]
            table = protocol.html_table(f"against-{bits}", caption, shown, method_pages, methods)
            parts += [f"### {bits} bits", table]
    if protocol.printed.notes:
        parts.append(html("notes", protocol.printed.notes, "scores"))
    return document(*parts)


def _against(differences: Mapping[str, pairs.Pair], best: str) -> list[Column]:
    """Columns of the differences to the best."""
    heads = [column("difference"), column("95% interval")]
    heads += [column(title, smallest=True) for title in ("p", "adjusted p")]

    def cell(place: int, method: str) -> dict:
        dash = plain(EN_DASH, "")
        if method not in differences:
            return plain("best", "0") if method == best and not place else dash
        pair = differences[method]
        of = pair.found
        interval = f"{signed(of.low, 3)} to {signed(of.high, 3)}"
        return (
            plain(signed(of.mean, 3), f"{of.mean:.6g}"),
            dash if math.isnan(of.low) else plain(interval, f"{of.low:.6g}"),
            _p(of.p, EN_DASH if of.enough else TOO_FEW),
            _p(pair.p_adjusted),
        )[place]

    return [(head, functools.partial(cell, place)) for place, head in enumerate(heads)]


def _p(value: float, otherwise: str = EN_DASH) -> dict:
    """A p value, or what stands in its place."""
    if math.isnan(value):
        return plain(otherwise, "")
    return plain("1" if value >= 0.9995 else probability(value), f"{value:.3g}")


def _data(protocol: Protocol, columns: Mapping[int, Mapping]) -> str:
    """What the script shows of two methods, as JSON that may stand in a <script>.

    methods: [name, title, loss]; lengths: bits -> {"cells": of each method [mean, std, seeds, rank, seconds
    of training, of encoding, how many runs lost bits in words or ""] or null, "pairs": of each two methods,
    (0, 1), (0, 2), ..., (1, 2), ..., [difference, low, high, p, p adjusted, over what] or null}. Every number
    is computed here.
    """
    table, lengths = protocol.table, {}
    methods = [name for name in protocol.methods() if name != UNCODED]
    for bits, of in columns.items():
        compared = []
        for place, one in enumerate(methods):
            others = pairs.against(of, one, methods[place + 1 :])
            for other in methods[place + 1 :]:
                pair = others.get(other)
                compared.append(_pair_data(pairs.reversed_pair(pair)) if pair else None)
        cells = [_cell_data(protocol, method, bits) for method in methods]
        lengths[str(bits)] = {"cells": cells, "pairs": compared}
    data = {
        "metric": label(protocol.main.metric),
        "level": LEVEL,
        "competitors": {str(bits): protocol.competitors(bits) for bits in columns},
        "methods": [[name, table.row_title(name), family_title(table.family(name))] for name in methods],
        "lengths": lengths,
    }
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace(
        "<", "\\u003c"
    )


def _cell_data(protocol: Protocol, method: str, bits: int) -> list | None:
    cell = protocol.cell(method, bits)
    if cell is None:
        return None
    seconds = (protocol.results.mean_seconds(protocol.name, method, bits, part) for part in PARTS)
    runs = protocol.results.cell(protocol.name, method, bits).values()
    lost = rate_words(collapsed_runs(runs), cell.seeds)
    return [_short(cell.mean), _short(cell.std), cell.seeds, cell.place, *map(_short, seconds), lost]


def _short(value: float | None) -> float | int | None:
    """A number to DIGITS digits, whole ones as int; None for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _pair_data(pair: pairs.Pair) -> list:
    of = pair.found
    numbers = (of.mean, of.low, of.high, of.p, pair.p_adjusted)
    return [*map(_short, numbers), pair.over]
