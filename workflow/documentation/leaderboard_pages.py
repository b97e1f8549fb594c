"""Pages of the leaderboards: an index, one page a protocol, and one to compare two methods of a protocol.

Everything is made from leaderboard/. The pages are Markdown with parts in HTML: the filter, the tables and
the figures of a page of results, reporting/page/, and those of templates/. Everything can be read without a
script.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from reporting import figures, leaderboard
from reporting.drawing.axes import NothingToDraw
from reporting.leaderboard import RUNS
from reporting.leaderboard.boards import Boards, as_table, main_metric, other_metrics
from reporting.page.colours import lighter
from reporting.page.embedding import inline_svg
from reporting.page.scores import column, plain
from reporting.printed.legend import printed_legend, signs_legend
from reporting.tables.titles import BOUND, EN_DASH, family_title
from tiebench.figure_style import render
from tiebench.leaderboards import PROVENANCE, TIDY
from tiebench.metrics import label
from workflow.documentation.api_pages import toctree
from workflow.documentation.comparison_pages import comparison_page
from workflow.documentation.leaderboard_parts import FOLDER, Column, Protocol, document, html

INDEX = f"{FOLDER}/index.md"
TITLE = "Leaderboards"
# How lists of pages describe the index.
DESCRIPTION = "all methods of each protocol: tables to sort, charts, two methods compared"
# A lookup in hash tables, by metrics.
CANDIDATES, RECALL = "candidates_radius_2", "recall_radius_2"
WIDTH = 3.7  # inches: what a telephone shows without making text smaller
TOP = 3  # methods that the index names
POINT = "a point for each method and code length"
OF_COSTS = (
    "A point is a method at one code length; the large marker is its longest, with the name where it "
    "fits. Up is better, left is cheaper. Grey steps: the best score within a number of seconds, of the "
    "methods with a rank."
)
OF_LOOKUPS = (
    "What a search in hash tables costs, whatever the machine: a query is compared with all items "
    "within Hamming radius 2 (means over queries and seeds), and recall is the share of the relevant "
    "items among them. Up is better, left is cheaper; names, large markers and grey steps as above. "
    "A method whose queries find nothing is not drawn."
)
OF_BITS = "Means over seeds; thin upright lines run from the lowest seed to the highest."
# Figures: what tells their ids apart, heading, what the scores are against, caption.
CHARTS = (
    ("bits", "Score against bits", "the number of bits, a line for each method", OF_BITS),
    ("fit", "Score against seconds of training", f"seconds of training, {POINT}", OF_COSTS),
    (
        "encode",
        "Score against seconds of encoding",
        f"seconds to encode queries and database, {POINT}",
        OF_COSTS,
    ),
    ("lookup", "Recall of a lookup against its candidates", f"the items there, {POINT}", OF_LOOKUPS),
)


def read(folder: Path) -> list[Protocol]:
    """The protocols of a folder of leaderboards, sorted by name; a method looks alike in all of them."""
    every = Boards(folder)
    boards = [every[name] for name in leaderboard.protocols(folder)]
    found = []
    for board in boards:
        metrics = [main_metric(board), *other_metrics(board)]
        blocks = [
            {"protocol": member, "metric": metric, "bits": board.bits, "methods": board.methods}
            for member in board.members
            for metric in metrics
        ]
        table = as_table(boards, blocks)
        table = replace(table, settings={member: table.settings[member] for member in board.members})
        found.append(Protocol(folder, board, table))
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
        longest = protocol.main.bits[-1]
        best = {method: protocol.cell(method, longest) for method in protocol.methods(longest)}
        cards.append(
            {
                "name": protocol.name,
                "title": protocol.title,
                "facts": _facts(protocol),
                "best": f"Best at {longest} bits",
                "methods": [
                    (cell.place, protocol.table.method_title(method), f"{cell.mean:.3f}", method)
                    for method, cell in best.items()
                    if cell and cell.place and cell.place <= TOP
                ],
                "metric": protocol.main.metric,
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
        (
            "Methods",
            f"{len(board.methods) - bounds}" + (f" and {count(bounds, 'baseline')}" if bounds else ""),
        ),
        ("Code lengths", f"{', '.join(map(str, board.bits))} bits"),
        ("Runs", f"{several}{count(seeds[-1], 'seed')} each"),
        ("Measured", " and ".join(sorted({f"{one['date']}, {one['processor']}" for one in made}))),
    ]
    return [(name, words) for name, words in facts if words]


def count(number: int, thing: str) -> str:
    """ "1 seed", "2 seeds"."""
    return f"{number} {thing}" + "s" * (number != 1)


# -- the page of a protocol -----------------------------------------------------------------------------


def _page(protocol: Protocol, method_pages: Mapping[str, str]) -> str:
    board, table, name = protocol.board, protocol.table, protocol.name
    longest = protocol.main.bits[-1]
    others = [protocol.score(g, longest, spread=False) for g in table.groups[1:] if g.protocol == name]
    folds = [
        protocol.score(group, longest, group.title, spread=False)
        for group in table.groups[1:]
        if group.metric == protocol.main.metric
    ]
    methods = [
        {"id": method, "name": table.row_title(method), "swatch": protocol.swatches[method]}
        for method in board.methods
    ]
    parts = [
        f"# {protocol.title}",
        html("facts", _facts(protocol)),
        f"[Compare two methods]({name}-compare.md) of this protocol: their difference with its interval and "
        f"p value. [All leaderboards](index.md).",
        html("filter", methods, board.bits),
        "## Scores",
        _scores(protocol, method_pages),
        html("remarks", _remarks(protocol), protocol.printed.notes),
    ]
    if charts := _charts(protocol):
        colours = lighter([*protocol.swatches.values(), *(chart["svg"] for chart in charts)])
        parts += ["## Charts", html("colours", colours)]
        for chart in charts:
            parts += [
                f"### {chart['title']}",
                html("figure", chart, chart["id"], protocol.title, "", "chart"),
            ]
    if others:
        caption = f"Means over seeds at {longest} bits"
        parts += ["## Other metrics", protocol.html_table("metrics-table", caption, others, method_pages)]
    if folds:
        unseen = (board.about["settings"] or {}).get("unseen")
        words = ", by the classes that are not learnt from" if unseen else ""
        caption = f"{' '.join(label(protocol.main.metric)).strip()} of each fold at {longest} bits{words}"
        parts += ["## Folds", protocol.html_table("folds-table", caption, folds, method_pages)]
    files = [f"[{name}{ending}](../../leaderboard/{name}{ending})" for ending in (TIDY, RUNS, PROVENANCE)]
    about = "[the page on these files](../../leaderboard/README.md)"
    parts += ["## Data", f"This page is made from {', '.join(files)}; {about} describes them."]
    return document(*parts)


def _scores(protocol: Protocol, method_pages: Mapping[str, str]) -> str:
    """The main table: a mean with its spread and a rank for each length, seconds of the longest codes."""
    *_, longest = lengths = protocol.main.bits
    groups, columns = [], []
    for bits in lengths:
        groups.append((f"{bits} bits", 2))
        sort = "descending" if bits == longest else "none"
        columns += [protocol.score(protocol.main, bits, sort=sort), _rank(protocol, bits)]
    if _timed(protocol):
        groups.append((f"Seconds, {longest} bits", 2))
        columns += [_seconds(protocol, "training", "fit"), _seconds(protocol, "encoding", "encode")]
    groups.append(("", 1))
    family = protocol.table.family
    columns.append((column("Loss", left=True), lambda method: plain(family_title(family(method)))))
    caption = f"Every method of {protocol.title}, the best at {longest} bits first"
    return protocol.html_table("scores-table", caption, columns, method_pages, groups=groups, anchors=True)


def _rank(protocol: Protocol, bits: int) -> Column:
    def of(method: str) -> dict:
        cell = protocol.cell(method, bits)
        if cell is None or cell.place is None:
            return plain(EN_DASH, "")
        return plain(str(cell.place), str(cell.place), "best" if cell.place == 1 else "")

    return column("rank", bits=bits, smallest=True), of


def _seconds(protocol: Protocol, title: str, of_run: str) -> Column:
    """Seconds at the longest codes with three digits, at most three decimals."""
    bits = protocol.main.bits[-1]

    def of(method: str) -> dict:
        mean = protocol.results.mean_seconds(protocol.name, method, bits, of_run)
        if mean is None:
            return plain(EN_DASH, "")
        decimals = 0 if mean >= 100 else 1 if mean >= 10 else 2 if mean >= 1 else 3
        return plain(f"{mean:.{decimals}f}", f"{mean:.4g}")

    return column(title, bits=bits, smallest=True), of


def _timed(protocol: Protocol) -> bool:
    """Whether seconds of training are known."""
    return any(run.fit_seconds is not None for run in protocol.board.measured)


def _remarks(protocol: Protocol) -> list[str]:
    """What marks and small figures of the main table mean."""
    board, printed = protocol.board, protocol.printed
    frame = printed.tidy
    frame = frame[(frame["protocol"] == protocol.name) & (frame["metric"] == protocol.main.metric)]
    threads, devices = board.about.get("threads") or [], board.about.get("devices") or []
    on = f"{' or '.join(map(str, threads))} thread{'s' * (threads != [1])} of {' or '.join(devices)}"
    words = [
        printed_legend(frame, protocol.table, signs_legend(frame, protocol.table)),
        "Ranks count the methods that learn from the training set alone; "
        "a few thousandths do not rank methods.",
        f"Seconds of training, and of encoding queries and database, on {on}; means over seeds."
        * _timed(protocol),
    ]
    return [sentence for sentence in words if sentence]


def _charts(protocol: Protocol) -> list[dict]:
    """Figures of the template, those for which there is anything to draw."""
    charts = []
    for part, heading, against, caption in CHARTS[len(protocol.main.bits) == 1 :]:
        main, name = protocol.main, " ".join(label(protocol.main.metric)).strip()
        kind, options = "cost", {"costs": (part,)}
        if part == "bits":
            kind, options = "metric_by_bits", {}
        elif part == "lookup":
            main, name = replace(main, metric=RECALL), "Recall within Hamming radius 2"
            options = {"costs": (CANDIDATES,)}
        table, id_ = replace(protocol.table, groups=(main,)), f"figure-{part}"
        try:
            figure = figures.draw(kind, table, protocol.results, width=WIDTH, title=False, **options)
        except NothingToDraw:
            continue
        svg = inline_svg(
            render(figure, "svg").decode(), f"{protocol.name}-{id_}", f"{name} against {against}"
        )
        made = {"id": id_, "svg": svg, "title": heading, "caption": caption, "points": True}
        charts.append(made | {"file": f"{protocol.name}-{id_}.svg"})
    return charts
