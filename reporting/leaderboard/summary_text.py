"""Generated parts of the page of summaries: sentences and tables, of the same numbers as its figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from reporting.leaderboard.boards import Boards
from reporting.leaderboard.settings import check_keys, paragraph
from reporting.leaderboard.summary import EVERY, ORDERS, Plan, plan_of
from reporting.printed.markdown import escape_markdown, markdown_table
from reporting.printed.marks import interval, number
from reporting.statistics import summary
from reporting.tables.titles import metric_title
from tiebench.messages import did_you_mean, joined

KEYS = {"summary": str, "set": str}


def render(settings: Mapping, boards: Boards) -> str:
    """What a marker with the key `summary` asks for, see generated-parts.md.

    Raises ValueError, one line with the nearest name, for settings that are unknown or do not fit.
    """
    check_keys(settings, KEYS, "a summary")
    name, plan = settings["summary"], plan_of(boards)
    if name not in (known := ["ranks", *PARTS]):
        raise ValueError(f"there is no summary {name!r}{did_you_mean(name, known)}")
    if (name == "ranks") is not ("set" in settings):
        raise ValueError(f"summary {name} {'needs' if name == 'ranks' else 'has no'} key set")
    if name == "ranks":
        return _ranks(plan, boards, settings["set"])
    return PARTS[name](plan, boards)


def _tables(plan: Plan, boards: Boards) -> str:
    rows = []
    for protocol, block in ((name, plan.block(name, boards)) for name in plan.tables(EVERY)):
        varied = (of["differs"] for of in plan.said.get("variants", {}).values() if of["of"] == protocol)
        sets = (of["title"] for of in plan.said["sets"].values() if protocol in of["tables"])
        bits, metric = ", ".join(map(str, block["bits"])), metric_title(block["metric"])
        rows.append([boards[protocol].about["title"], metric, bits, "; ".join(sets), "; ".join(varied)])
    return _markdown(["Table", "Metric", "Bits", "Sets", "Variants, which do not count"], rows)


def _ranks(plan: Plan, boards: Boards, name: str) -> str:
    table, results = plan.model(name, boards)
    blocks = summary.blocks_of(table, results)
    found = summary.standing(blocks)
    first = found.order[0]
    titles = [table.method_title(method) for method in found.methods]
    best = [place for place in found.order if found.rank[0, place] == found.rank[0, first]]
    others = [place for place in found.order if place not in best]
    reach = [place for place in others if found.rank[1, place] <= found.rank[2, first]]
    of_best = [titles[place] for place in best]
    several = len(best) > 1
    leading = [f"{titles[place]} {interval(found.rank[:, place], 1)}" for place in best]
    text = (
        f"The best mean rank of {len(titles)} methods in {len(blocks)} tables: {joined(leading)}. In single "
        f"tables {'the ranks of ' if several else 'the rank of '}{joined(of_best)} "
        f"{'run' if several else 'runs'} from {found.by_table[:, best].min():.1f} to "
        f"{found.by_table[:, best].max():.1f}. The intervals of "
        f"{len(reach) or 'none'} of the other {len(others)} methods overlap that of {of_best[0]}. "
        f"{_without_one_table(found, titles, [block.title for block in blocks])}"
    )
    heading = ["Method", "Mean rank", "IQM", "Share within 5 %", *(block.title for block in blocks)]
    near = int(np.flatnonzero(np.isclose(summary.TAUS, 0.05))[0])
    rows = [
        [
            titles[place],
            interval(found.rank[:, place], 1),
            interval(found.iqm[:, place], 2),
            interval(found.profile[:, place, near], 2),
            *(f"{rank:.1f}" for rank in found.by_table[:, place]),
        ]
        for place in found.order
    ]
    return _markdown(heading, rows, text)


def _without_one_table(found: summary.Standing, methods: Sequence[str], tables: Sequence[str]) -> str:
    """Who is first when one of the tables is left out, where these are others than with all."""

    def leading(ranks: np.ndarray) -> str:
        means = ranks.mean(axis=0)
        return joined([methods[place] for place in np.flatnonzero(np.isclose(means, means.min())).tolist()])

    first = leading(found.by_table)
    without: dict[str, list[str]] = {}
    for place, table in enumerate(tables):
        without.setdefault(leading(np.delete(found.by_table, place, axis=0)), []).append(f"“{table}”")
    without.pop(first, None)
    if not without:
        return f"Without any one of the tables {first} stays first."
    others = (f"{who} without {' or '.join(these)}" for who, these in without.items())
    return f"First where one table is left out: {'; '.join(others)}."


def _pairs(plan: Plan, boards: Boards) -> str:
    table, results = plan.model(EVERY, boards)
    found = summary.improvement(summary.blocks_of(table, results))
    above, known = found.above, ~np.isnan(found.probability)
    below = above.T
    order = np.argsort(-above.sum(axis=1), kind="stable").tolist()
    text = f"Of {known.sum() // 2} pairs of methods, {above.sum()} are told apart."
    titles = [table.method_title(method) for method in found.methods]
    counted = above, below, known & ~above & ~below
    rows = [[titles[place], *(str(of[place].sum()) for of in counted)] for place in order]
    return _markdown(["Method", "wins", "losses", "undecided"], rows, text)


def _orders(plan: Plan, boards: Boards) -> str:
    blocks = summary.blocks_of(*plan.model(ORDERS, boards, ()))
    found = summary.agreement(blocks)
    printed = [place for place, block in enumerate(blocks) if ":" in block.name]
    own = [place for place in range(len(blocks)) if place not in printed]
    between = np.array([tau for pair, (tau, _, _) in found.items() if set(pair) <= set(own)])
    low, middle, high = np.quantile(between, [0, 0.5, 1])
    text = (
        f"Between the orders of {len(own)} tables the median τ-b is {number(middle, 2)}, from "
        f"{number(low, 2)} to {number(high, 2)}, over the {len(between)} pairs of tables with at least "
        f"{summary.LEAST_METHODS} common methods. With the orders that the paper prints, and the number of "
        "common methods:"
    )
    rows = [
        [blocks[one].title]
        + [
            f"{number(found[one, other][0], 2)} ({found[one, other][2]})" if (one, other) in found else "–"
            for other in printed
        ]
        for one in own
        if any((one, other) in found for other in printed)
    ]
    return _markdown(["Table", *(blocks[place].title for place in printed)], rows, text)


def _markdown(heading: Sequence[str], rows: Iterable[Sequence[str]], text: str = "") -> str:
    """A table; text: what stands above it."""
    table = markdown_table(heading, [[escape_markdown(word) for word in row] for row in rows])
    return f"{paragraph(escape_markdown(text))}\n\n{table}" if text else table


PARTS: dict[str, Callable[[Plan, Boards], str]] = {
    "tables": _tables,
    "pairs": _pairs,
    "orders": _orders,
}
