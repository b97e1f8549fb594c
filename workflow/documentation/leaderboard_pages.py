"""Pages of the leaderboards: an index, one page a protocol, and one to compare two methods of a protocol.

Everything is made from leaderboard/. The pages are Markdown with parts in HTML, of templates/. Tables and
figures can be read without a script; `static/leaderboards.js` sorts rows and compares two methods, and
`reporting/assets/figures.js` is that of all pages.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reporting import figures, leaderboard
from reporting.drawing.axes import NothingToDraw
from reporting.leaderboard import RUNS, standings
from reporting.leaderboard.boards import Boards, as_table, fold_title, results_of
from reporting.page.colours import lighter
from reporting.page.embedding import inline_svg
from reporting.printed.marks import (
    bounds_sentence,
    dagger_sentence,
    earlier_sentence,
    seeds_sentence,
    uncoded_sentence,
)
from reporting.records.collapsed import collapse_sentence
from reporting.tables.budgets import budget_sentence
from reporting.tables.model import Table
from reporting.tables.titles import BOUND, EN_DASH, UNCODED, family_title
from tiebench.figure_style import render
from tiebench.leaderboards import PROVENANCE, TIDY
from tiebench.metrics import label
from workflow.documentation.api_pages import toctree
from workflow.documentation.comparison_pages import comparison_page
from workflow.documentation.leaderboard_parts import (
    FOLDER,
    Protocol,
    Rows,
    cell,
    column,
    count,
    document,
    html,
    number,
    score,
    seconds,
)

INDEX = f"{FOLDER}/index.md"
TITLE = "Leaderboards"
# How lists of pages describe the index.
DESCRIPTION = "all methods of each protocol: tables to sort, charts, two methods compared"
# A lookup in hash tables, by metrics.
CANDIDATES, RECALL = "candidates_radius_2", "recall_radius_2"
WIDTH = 3.7  # inches: what a telephone shows without making text smaller
TOP = 3  # methods that the index names


def read(folder: Path) -> list[Protocol]:
    """The protocols of a folder of leaderboards, sorted by name; a method looks alike in all of them."""
    every = Boards(folder)
    boards = [every[name] for name in leaderboard.protocols(folder)]
    found = []
    for board in boards:
        metric = standings.main_metric(board)
        block = {"protocol": board.protocol, "metric": metric, "bits": board.bits, "methods": board.methods}
        table = as_table(boards, [block])
        table = replace(table, settings={member: table.settings[member] for member in board.members})
        found.append(
            Protocol(folder, board, table, standings.standings(board, table, board.protocol, metric))
        )
    return found


def pages(protocols: Sequence[Protocol], method_pages: Mapping[str, str]) -> dict[str, str]:
    """Path among the site's sources -> text, of every page.

    method_pages: method or variant -> its page, path among the sources.
    """
    made = {INDEX: _index(protocols)}
    for protocol in protocols:
        made[protocol.place] = _page(protocol, method_pages)
        made[protocol.comparison] = comparison_page(protocol, method_pages)
    return made


# -- the index ------------------------------------------------------------------------------------------


def _index(protocols: Sequence[Protocol]) -> str:
    cards = []
    for protocol in protocols:
        longest = protocol.standings.bits[-1]
        best = protocol.standings.best(longest, TOP)
        cards.append(
            {
                "name": protocol.name,
                "title": protocol.title,
                "facts": _facts(protocol),
                "best": f"Best at {longest} bits",
                "methods": [(cell.rank, row.title, number(cell.mean), row.method) for row, cell in best],
                "metric": label(protocol.standings.metric),
            }
        )
    places = [place for one in protocols for place in (one.place, one.comparison)]
    lead = (
        "What was measured under each protocol, from the files of the repository. Scores of different "
        "protocols must not be compared with each other: [protocols](../protocols.md) describes what each "
        "asks, [results](../results.md) what the numbers can and cannot say. To see codes of your own "
        "beside these methods, [compare your codes](../compare-your-codes.md)."
    )
    tree = toctree([place.removeprefix(f"{FOLDER}/") for place in places], hidden=True)
    return document(f"# {TITLE}", lead, html("cards", cards), tree)


def _facts(protocol: Protocol) -> list[tuple[str, str]]:
    """What was measured, in words."""
    board, about = protocol.board, protocol.board.about
    members = about.get("members") or []
    bounds = sum(protocol.table.family(method) == BOUND for method in board.methods)
    made = about.get("published") or []
    runs = Counter((run["protocol"], run["method"], run["bits"]) for run in board.runs)
    seeds = sorted(set(runs.values()))
    several = f"{seeds[0]} to " if len(seeds) > 1 else ""
    facts = [("Dataset", (about["settings"] or {}).get("dataset", ""))]
    if all("queries" in one and "database" in one for one in members):
        folds = f" in {len(members)} folds" if len(members) > 1 else ""
        sizes = sorted({one["database"] for one in members})
        facts.append(("Queries", f"{sum(one['queries'] for one in members):,}{folds}"))
        facts.append(("Database", " or ".join(f"{size:,}" for size in sizes)))
    facts += [
        ("Methods", f"{len(board.methods) - bounds}" + (f" and {count(bounds, 'bound')}" if bounds else "")),
        ("Code lengths", f"{', '.join(map(str, board.bits))} bits"),
        ("Runs", f"{several}{count(seeds[-1], 'seed')} each"),
        ("Measured", " and ".join(sorted({f"{one['date']}, {one['processor']}" for one in made}))),
    ]
    return [(name, words) for name, words in facts if words]


# -- the page of a protocol -----------------------------------------------------------------------------


def _page(protocol: Protocol, method_pages: Mapping[str, str]) -> str:
    board, name = protocol.board, protocol.name
    charts, rows = _charts(protocol), Rows(method_pages, protocol.table)
    parts = [
        f"# {protocol.title}",
        html("facts", _facts(protocol)),
        f"[Compare two methods]({name}-compare.md) of this protocol: their difference with its interval and "
        f"p value. [All leaderboards](index.md).",
        "## Scores",
        html("table", _scores(protocol, rows)),
        html("sentences", _sentences(protocol)),
    ]
    if charts:
        shown = [(m, protocol.table.method_title(m), rows.swatches[m]) for m in board.methods]
        colours = lighter([*rows.swatches.values(), *(chart["svg"] for _, chart in charts)])
        parts += ["## Charts", html("colours", colours), html("legend", shown)]
        for heading, chart in charts:
            parts += [f"### {heading}", html("chart", chart)]
    if others := standings.other_metrics(board):
        parts += ["## Other metrics", html("table", _others(protocol, others, rows))]
    if board.folds:
        parts += ["## Folds", html("table", _folds(protocol, rows))]
    files = [f"[{name}{ending}](../../leaderboard/{name}{ending})" for ending in (TIDY, RUNS, PROVENANCE)]
    about = "[the page on these files](../../leaderboard/README.md)"
    parts += ["## Data", f"This page is made from {', '.join(files)}; {about} describes them."]
    return document(*parts)


def _scores(protocol: Protocol, rows: Rows) -> dict:
    """The main table: a mean with its spread and a rank for each length, seconds of the longest codes."""
    found = protocol.standings
    longest, metric = found.bits[-1], label(found.metric)
    every = [row.cells[longest] for row in found.rows if longest in row.cells]
    costs = any(not math.isnan(cell.fit) for cell in every)
    groups = [
        ("", 1),
        *((f"{bits} bits", 2) for bits in found.bits),
        *[(f"Seconds, {longest} bits", 2)] * costs,
        ("", 1),
    ]
    columns = [column("Method")]
    for bits in found.bits:
        columns += [column(metric, sorted_=bits == longest), column("rank", smallest=True)]
    columns += [column("training", smallest=True), column("encoding", smallest=True)] * costs
    columns.append(column("Loss", words=True))
    body = []
    for row in found.rows:
        cells = []
        for bits in found.bits:
            of = row.cells.get(bits)
            best = of is not None and of.rank == 1
            cells.append(score(of, best))
            cells.append(cell(str(of.rank), str(of.rank), best=best) if of and of.rank else cell(EN_DASH))
        if costs:
            of = row.cells.get(longest)
            fit, encode = (None, None) if of is None else (of.fit, of.encode)
            cells += [seconds(fit), seconds(encode)]
        cells.append(cell(family_title(row.family), words=True))
        body.append(rows.row(row, cells))
    caption = f"Every method of {protocol.title}, the best at {longest} bits first"
    return {"id": "scores-table", "caption": caption, "groups": groups, "columns": columns, "rows": body,
            "anchors": True}  # fmt: skip


def _others(protocol: Protocol, metrics: Sequence[str], rows: Rows) -> dict:
    """Means of the other metrics at the longest codes."""
    bits, board = protocol.standings.bits[-1], protocol.board
    found = {metric: standings.standings(board, protocol.table, board.protocol, metric) for metric in metrics}
    cells = {metric: {row.method: row.cells.get(bits) for row in of.rows} for metric, of in found.items()}
    ranks = {metric: {method for method, cell in of.items() if cell and cell.rank == 1}
             for metric, of in cells.items()}  # fmt: skip
    body = [
        rows.row(row, (_plain(cells[m].get(row.method), row.method in ranks[m]) for m in metrics))
        for row in protocol.standings.rows
    ]
    columns = [column("Method"), *(column(label(metric)) for metric in metrics)]
    return {"id": "metrics-table", "caption": f"Means over seeds at {bits} bits", "columns": columns,
            "rows": body}  # fmt: skip


def _plain(cell: standings.Cell | None, best: bool) -> dict:
    return score(cell, best) | {"spread": ""}


def _folds(protocol: Protocol, rows: Rows) -> dict:
    """Means of each fold at the longest codes."""
    board, bits, metric = protocol.board, protocol.standings.bits[-1], protocol.standings.metric
    found = [standings.standings(board, protocol.table, fold, metric) for fold in board.folds]
    cells = [{row.method: row.cells.get(bits) for row in of.rows} for of in found]
    body = []
    for row in protocol.standings.rows:
        of = [fold.get(row.method) for fold in cells]
        body.append(rows.row(row, (_plain(cell, bool(cell and cell.rank == 1)) for cell in of)))
    unseen = (board.about["settings"] or {}).get("unseen")
    words = ", by the classes that are not learnt from" if unseen else ""
    caption = f"{' '.join(label(metric)).strip()} of each fold at {bits} bits{words}"
    columns = [column("Method"), *(column(fold_title(board, fold)) for fold in board.folds)]
    return {"id": "folds-table", "caption": caption, "columns": columns, "rows": body}


def _sentences(protocol: Protocol) -> list[str]:
    """What marks and small figures of the main table mean."""
    board, table, found = protocol.board, protocol.table, protocol.standings
    frame = board.tidy
    frame = frame[(frame["protocol"] == protocol.name) & (frame["metric"] == found.metric)]
    methods = [method for method in frame["method"].unique() if method != UNCODED]
    threads, devices = board.about.get("threads") or [], board.about.get("devices") or []
    costs = any(not math.isnan(cell.fit) for row in found.rows for cell in row.cells.values())
    on = f"{' or '.join(map(str, threads))} thread{'s' * (threads != [1])} of {' or '.join(devices)}"
    words = [
        seeds_sentence(frame) or "One seed.",
        "Ranks count the methods that learn from the training set alone; "
        "a few thousandths do not rank methods.",
        dagger_sentence(table, methods, ", without a rank"),
        earlier_sentence(table, methods),
        uncoded_sentence(frame, ""),
        bounds_sentence(frame, table, ""),
        collapse_sentence(frame, table),
        f"Seconds of training, and of encoding queries and database, on {on}; means over seeds." * costs,
        budget_sentence(frame, table),
    ]
    return [sentence for sentence in words if sentence]


def _charts(protocol: Protocol) -> list[tuple[str, dict]]:
    """Heading -> figure, of the figures for which there is anything to draw."""
    board, table, metric = protocol.board, protocol.table, protocol.standings.metric
    (of_metric,) = table.groups
    results, name = results_of(table, [board]), " ".join(label(metric)).strip()
    of_costs = (
        "A point is a method at one code length; the large marker is its longest, with the name where it "
        "fits. Up is better, left is cheaper. Grey steps: the best score within a number of seconds, of the "
        "methods with a rank."
    )
    wanted: list[tuple[str, str, tuple[str, Table, dict], str, str]] = [
        (
            "Score against bits",
            "figure-bits",
            ("metric_by_bits", table, {}),
            f"{name} against the number of bits, a line for each method",
            "Means over seeds; thin upright lines run from the lowest seed to the highest.",
        )
    ] * (len(board.bits) > 1)
    wanted += [
        (
            heading,
            f"figure-{part}",
            ("cost", table, {"costs": (part,)}),
            f"{name} against {words}, a point for each method and code length",
            of_costs,
        )
        for heading, part, words in (
            ("Score against seconds of training", "fit", "seconds of training"),
            ("Score against seconds of encoding", "encode", "seconds to encode queries and database"),
        )
    ]
    wanted.append(
        (
            "Recall of a lookup against its candidates",
            "figure-lookup",
            ("cost", replace(table, groups=(replace(of_metric, metric=RECALL),)), {"costs": (CANDIDATES,)}),
            "Recall within Hamming radius 2 against the items there, a point for each method and code length",
            "What a search in hash tables costs, whatever the machine: a query is compared with all items "
            "within Hamming radius 2 (means over queries and seeds), and recall is the share of the relevant "
            "items among them. Up is better, left is cheaper; names, large markers and grey steps as above. "
            "A method whose queries find nothing is not drawn.",
        )
    )
    charts = []
    for heading, id_, (kind, of, options), alternative, caption in wanted:
        try:
            figure = figures.draw(kind, of, results, width=WIDTH, title=False, **options)
        except NothingToDraw:
            continue
        svg = inline_svg(render(figure, "svg").decode(), f"{protocol.name}-{id_}", alternative)
        made = {"id": id_, "svg": svg, "title": heading, "caption": caption, "protocol": protocol.title}
        charts.append((heading, made | {"file": f"{protocol.name}-{id_}.svg", "points": True}))
    return charts
