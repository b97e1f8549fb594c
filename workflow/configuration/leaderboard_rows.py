"""Rows that a table takes from the leaderboard, `compare`: which they are, and what reporting is given."""

from dataclasses import replace

from reporting import leaderboard
from reporting.tables.model import claimed_metrics
from reporting.tables.runs import Run
from reporting.tables.titles import BOUND, RANGE
from tiebench import metrics
from tiebench.leaderboards import per_query_files
from tiebench.messages import did_you_mean, shorten

# Of all rankings: what figures of costs take.
CANDIDATES = "candidates_radius_"
ABSENT = "the leaderboard has no run of it"


def add_rows(configuration, where, table):
    """Give each block of a table with `compare` its `filled`: the methods whose cells the leaderboard has.

    A cell that the table runs is never filled. A list narrows the methods, but for bounds, which every table
    has. Raises ConfigurationError for unknown names and for scores that the leaderboard does not have.
    """
    asked = table.get("compare")
    if asked is None:
        return
    where = (*where, "compare")
    if isinstance(asked, str) and asked != leaderboard.FOLDER:
        configuration.fail(
            where, f"{shorten(repr(asked))} is not allowed{did_you_mean(asked, ['leaderboard'])}"
        )
    named = asked["leaderboard"] if isinstance(asked, dict) else None
    boards = {}
    for block in table["blocks"]:
        with configuration.failing(*where):
            configuration.boards.check(block["protocol"], block["metric"], ())
            board = boards[block["protocol"]] = configuration.boards[block["protocol"]]
        if not set(board.bits) & set(block["bits"]):
            ours, theirs = (", ".join(map(str, bits)) for bits in (block["bits"], board.bits))
            words = f"has no codes of {ours} bits; it has: {theirs}"
            configuration.fail(where, f"the leaderboard of {block['protocol']} {words}")
        if fault := leaderboard.other_setting(board, configuration["protocols"][block["protocol"]]):
            configuration.fail(where, f"{fault}, so their scores do not compare")
    known = list(dict.fromkeys(method for board in boards.values() for method in board.methods))
    for method in named or ():
        configuration.check_known(where, method, known, "method of the leaderboard")
    runs = {
        (block["protocol"], method, bits)
        for block in table["blocks"]
        for method in block.get("methods", table["methods"])
        for bits in block["bits"]
    }
    taken: set[tuple[str, str, int, str]] = set()
    for block in table["blocks"]:
        board = boards[block["protocol"]]
        block["filled"] = []
        for method in board.methods:
            cells = {(block["protocol"], method, bits) for bits in block["bits"]}
            scores = {(*cell, block["metric"]) for cell in cells}
            chosen = named is None or method in named or board.about["methods"][method]["family"] == BOUND
            if chosen and not cells & runs and not scores & taken and _has(board, method, block):
                block["filled"].append(method)
                taken |= scores
    if not any(block["filled"] for block in table["blocks"]):
        configuration.fail(where, "the leaderboard has no rows besides those that the table runs")


def _has(board, method, block):
    """Whether a board has a score of a method for one of the columns of a block."""
    return any(
        run["method"] == method and run["bits"] in block["bits"] and run.get(block["metric"]) is not None
        for run in board.runs
    )


def with_rows(table):
    """The entry of a table with its filled methods among its methods and those of its blocks."""
    if "compare" not in table:
        return table
    blocks = []
    for block in table["blocks"]:
        plain = {key: value for key, value in block.items() if key != "filled"}
        blocks.append(plain | {"methods": [*block.get("methods", table["methods"]), *block["filled"]]})
    methods = dict.fromkeys([*table["methods"], *(name for block in blocks for name in block["methods"])])
    return {**table, "blocks": blocks, "methods": list(methods)}


def styles(configuration, table):
    """Method -> style of the methods that a table has from the leaderboard alone."""
    found: dict[str, dict] = {}
    for block in table["blocks"]:
        for method in block.get("filled", ()):
            if method not in table["methods"]:
                of_board = configuration.boards[block["protocol"]].styles()[method]
                style = {key: of_board.get(key) for key in leaderboard.STYLE}
                style |= {"earlier": of_board["earlier"]} if "earlier" in of_board else {}
                found.setdefault(method, style)
    return found


def filled(configuration, table, claims):
    """What reporting is given of the filled cells: records of their runs, fingerprints of their data, and the
    sha256 of the files that hold their scores per query.

    claims: contents of the table's files of claims. None for a table that runs all of its cells.
    """
    cells: dict[tuple[str, str, int], None] = {}
    for block in table["blocks"]:
        for method in block.get("filled", ()):
            cells |= {(block["protocol"], method, bits): None for bits in block["bits"]}
    if not cells:
        return None
    names = {"ap"}
    for ranking, metric in (metrics.ranking_of(block["metric"]) for block in table["blocks"]):
        ordered = ranking is not None and ranking.kind in metrics.ORDERS
        names |= {metric, *(f"{order}_{metric}" for order in metrics.ORDERS if ordered)}
    names |= {block["metric"] for block in table["blocks"]} | claimed_metrics(claims)
    shown = {"queries", "estimated_bytes", *(f"{name}{end}" for name in names for end in ("", *RANGE))}
    records: list[dict] = []
    fingerprints: dict[str, dict] = {}
    per_query: dict[str, str] = {}
    for protocol in dict.fromkeys(protocol for protocol, _, _ in cells):
        board = configuration.boards[protocol]
        fingerprints |= board.fingerprints()
        per_query |= {name: board.about["sha256"][name] for name in per_query_files(board.about)}
        of: dict[tuple[str, str, int], list[dict]] = {}
        for run in board.measured:
            if run.protocol == protocol:
                of.setdefault(run.cell, []).append(_part(run, shown).to_json())
        for cell in cells:
            if cell[0] == protocol:
                records += of.get(cell) or [_absent(board, cell).to_json()]
    return {"records": records, "fingerprints": fingerprints, "per_query": per_query}


def _part(run, shown):
    """A run with what tables and figures show: some of its metrics, and whether its codes collapsed."""
    scores = {
        name: value for name, value in run.metrics.items() if name in shown or name.startswith(CANDIDATES)
    }
    collapsed = {name: value for name, value in run.health.items() if name == "collapsed"}
    return replace(run, metrics=scores, health=collapsed)


def _absent(board, cell):
    protocol, method, bits = cell
    seed = board.about["seeds"][0]
    return Run(protocol, method, bits, seed, status="missing", reason=ABSENT, from_leaderboard=True)
