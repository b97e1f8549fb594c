"""What the page of a protocol has of every two methods, for the script, which only looks it up."""

import itertools
import json
import math

from markupsafe import Markup

from reporting.statistics.samples import Pair, against
from reporting.tables.runs import PARTS, collapsed_runs, whole_mean
from reporting.tables.titles import family_title
from tiebench.leaderboards import rate_words
from tiebench.metrics import label
from tiebench.paired import LEVEL
from workflow.documentation.leaderboard_models import Protocol

DIGITS = 6  # significant: the script shows three decimals, and rounding twice must not show


def data(protocol: Protocol) -> Markup:
    """JSON that may stand in a <script>.

    methods: [name, title, loss]; lengths: bits -> {"cells": of each method [mean, std, seeds, rank, seconds
    of training, of encoding, of how many seeds codes collapsed in words or ""] or null, "pairs": of each two
    methods, (0, 1), (0, 2), ..., (1, 2), ..., [difference, low, high, p, p adjusted, place in "over"] or
    null}; over: what intervals and p values are over. Every number is computed here.
    """
    table, lengths = protocol.table, {}
    over: dict[str, int] = {}
    methods = protocol.methods()
    for bits, of in protocol.pairs.items():
        pairs = (against(of, other, [one]).get(one) for one, other in itertools.combinations(methods, 2))
        compared = [_pair_data(pair, over) if pair else None for pair in pairs]
        cells = [_cell_data(protocol, method, bits) for method in methods]
        lengths[str(bits)] = {"cells": cells, "pairs": compared}
    shown = {
        "metric": label(protocol.main.metric),
        "level": LEVEL,
        "competitors": {str(bits): protocol.competitors(bits) for bits in protocol.main.bits},
        "methods": [[name, table.row_title(name), family_title(table.family(name))] for name in methods],
        "over": list(over),
        "lengths": lengths,
    }
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _cell_data(protocol: Protocol, method: str, bits: int) -> list | None:
    cell = protocol.cell(method, bits)
    if cell is None:
        return None
    runs = protocol.results.cell(protocol.name, method, bits).values()
    seconds = (whole_mean([run.seconds_of(part) for run in runs]) for part in PARTS)
    lost = rate_words(collapsed_runs(runs), cell.seeds, any(run.folds for run in runs))
    return [_short(cell.mean), _short(cell.std), cell.seeds, cell.place, *map(_short, seconds), lost]


def _short(value: float | None) -> float | int | None:
    """A number to DIGITS digits, whole ones as int; None for what is not finite."""
    if value is None or not math.isfinite(value):
        return None
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _pair_data(pair: Pair, over: dict[str, int]) -> list:
    """over: words -> their place, which are added to."""
    of = pair.found
    numbers = (of.mean, of.low, of.high, of.p, pair.p_adjusted)
    return [*map(_short, numbers), over.setdefault(pair.over, len(over))]
