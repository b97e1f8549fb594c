"""`tiebench compare`: codes of a file beside the methods of a leaderboard."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tiebench.command_line import Parser, Reads, Writes, names, word
from tiebench.commands import CODES, add_threads, print_text
from tiebench.commands.score import add_labels, check_naming, rows_of
from tiebench.files import naming_values
from tiebench.query_identity import PARTS, check, describe

if TYPE_CHECKING:  # loading the kernels takes time, and `tiebench --help` counts nothing
    from tiebench.comparison import Comparison

HELP = "compare the codes of a file with the methods of a leaderboard"
DESCRIPTION = """\
Score the codes of a file and compare them with the methods of a leaderboard
at the same code length: rank, differences with 95% intervals, verdicts.
docs/compare-your-codes.md leads from a split to a figure.

FILE.npz, or a folder of .npy files, holds query, database, query_labels and
database_labels as for `tiebench score`, in the order of the protocol's split.
Row numbers of the items in the dataset, as query_items and database_items,
are checked too.

Each difference is yours minus theirs. It is tested over the queries, where
the leaderboard has the scores of each, and over the method's runs. A method
that varies needs five runs, otherwise the verdict is "too few runs". Your
codes count as given: a verdict is on them, not on other runs of what made
them.
"""
EPILOG = """\
The exit status is 0 whatever the verdicts are, and 1 if the codes are not of
the protocol's queries and database.
"""
OUT_OF_MEMORY = "not enough memory"
ITEMS = {part: f"{part}_items" for part in PARTS}
FIGURES = (".png", ".pdf", ".svg")


def add_arguments(parser: Parser) -> None:
    """Add the options."""
    parser.add_argument("file", metavar="FILE.npz", type=CODES, help="codes and labels")
    parser.add_argument(
        "--protocol",
        metavar="NAME",
        type=word,
        required=True,
        help="name in the leaderboard; of a fold its own name",
    )
    parser.add_argument(
        "--leaderboard",
        metavar="FOLDER",
        type=Reads("*"),
        help="folder of <protocol>.provenance.json (default: leaderboard here, else that of this checkout)",
    )
    parser.add_argument(
        "--metric", metavar="NAME", type=word, help="default: the metric of the protocol's tables"
    )
    parser.add_argument("--methods", metavar="A,B", type=names, help="compare with these methods only")
    parser.add_argument(
        "--split",
        metavar="split.npz",
        type=Reads(),
        help="the split that the codes were made with: checked against the protocol",
    )
    add_labels(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--figure",
        metavar="FILE",
        type=Writes(),
        help="also draw the differences: a .png, .pdf or .svg file",
    )
    add_threads(parser)


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the comparison, and draw it."""
    if options.figure and Path(options.figure).suffix.lower() not in FIGURES:
        parser.error(
            f"--figure {options.figure}: the file must end in {', '.join(FIGURES[:2])} or {FIGURES[2]}"
        )
    check_naming(options, parser)
    _require("scipy.special", "SciPy")
    if options.figure:
        _require("matplotlib", "Matplotlib")
    from tiebench import comparison, leaderboards

    folder = leaderboards.find(options.leaderboard)
    board = leaderboards.load(options.protocol, folder)
    if board.folds:
        raise ValueError(
            f"{board.protocol} has {len(board.folds)} folds, each with queries and a database of its own; "
            f"compare codes of one of them: --protocol {', '.join(board.folds)}"
        )
    metric = options.metric or comparison.default_metric(board)
    cutoffs = comparison.cutoffs(board, metric)
    means, per_query, notes = _score(options, board, cutoffs)
    found = comparison.compare(board, means, per_query, metric, options.methods)
    notes = [*notes, *_notes(found, folder)]
    if options.figure:
        from tiebench import forest

        forest.draw(found, options.figure, Path(options.file).name)
    if options.json:
        return print_text(json.dumps(found.as_dict() | {"notes": notes}, indent=2))
    return print_text(text(found, notes))


def _require(module, name):
    import importlib

    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ValueError(f"tiebench compare needs {name}: pip install {name.lower()}") from error


# -- the codes -------------------------------------------------------------------------------------------


def _score(options, board, cutoffs):
    """Means and scores per query of the codes, and notes on them."""
    from tiebench import diagnostics
    from tiebench.commands.health import class_counts
    from tiebench.commands.score import read_labelled, to_codes
    from tiebench.counting.histograms import joint_histograms
    from tiebench.scoring import score_histograms

    arrays = read_labelled(options, optional=tuple(ITEMS.values()))
    codes = to_codes(options.file, arrays)
    notes = _check_identity(options, board, arrays)
    affinity, more = _affinity(options.file, board, codes.affinity)
    histograms = joint_histograms(codes.query, codes.database, codes.bits, affinity, options.threads)
    normaliser = board.settings.get("ap_at_normaliser") or "hits"
    scores = score_histograms(histograms, cutoffs, normaliser)
    health = diagnostics.health_of(codes.query, codes.database, histograms, scores.means)
    notes += more
    if reason := health.collapsed(class_counts(arrays["database_labels"])):
        notes.append(f"Your codes count as collapsed: {reason} (docs/health.md).")
    return scores.means, scores.per_query, notes


def _check_identity(options, board, arrays):
    """Notes on what could not be checked. Raises ValueError where the codes are of other items."""
    whose = f"protocol {board.protocol}"
    labels = {part: arrays[f"{part}_labels"] for part in ITEMS}
    items = {part: arrays[name] for part, name in ITEMS.items() if name in arrays}
    with naming_values(options.file):
        compared = check(describe(labels, items), board.identity, whose)
    if options.split:
        compared += _check_split(options, board, labels, items)
    if board.queries is not None and "query" in items and not np.array_equal(items["query"], board.queries):
        raise ValueError(f"{options.file}: query_items are not the queries of {whose}, in their order")
    notes = []
    if "labels" not in compared and "items" not in compared:
        sizes = "sizes" if "sizes" in compared else "nothing"
        notes.append(
            f"The leaderboard does not record which queries and database {board.protocol} has: of your codes "
            f"{sizes} could be checked."
        )
    return notes


def _check_split(options, board, labels, items):
    """What a split file shows to be the protocol's. Raises ValueError for another split."""
    rows = rows_of(options.split, None, {part: len(of_part) for part, of_part in labels.items()})
    split = {part: rows[name] for part, name in ITEMS.items()}
    for part, its in items.items():
        if not np.array_equal(its, split[part]):
            raise ValueError(
                f"{options.file}: {ITEMS[part]} are not `{part}` of {options.split}, in its order"
            )
    with naming_values(options.split):
        return check(describe(items=split), board.identity, f"protocol {board.protocol}")


def _affinity(file, board, affinity):
    """The affinity that the protocol scores with, and notes. Raises ValueError if labels do not decide it."""
    from tiebench.affinities import SharedLabels

    if "label_affinity" not in board.settings:
        return affinity, ["The leaderboard does not record how labels decide relevance: as `tiebench score`."]
    how = board.settings["label_affinity"]
    if how is None:
        raise ValueError(
            f"{board.protocol} has affinities that do not follow from labels: codes of a file cannot be "
            "scored as its methods were"
        )
    if how != "equal" and not isinstance(affinity, SharedLabels):
        raise ValueError(f"{file}: {board.protocol} has several labels per item: give 0/1 (n, labels)")
    if how == "any":
        affinity = SharedLabels(affinity.query, affinity.database, binary=True)
    return affinity, []


# -- words -----------------------------------------------------------------------------------------------


def _notes(found, folder):
    """What to know of ties, of the intervals, and of the leaderboard."""
    from tiebench.paired import ENOUGH_RUNS, LEVEL, TOO_FEW

    lines, name = found.lines, _label(found.metric)
    notes = []
    if found.rank_low != found.rank_high:
        notes.append(
            f"The order of tied items alone decides between rank {found.rank_low} ({name} {found.low:.4f}) "
            f"and rank {found.rank_high} ({found.high:.4f})."
        )
    if found.comparisons:
        notes.append(
            "difference: yours minus theirs. verdict: by the adjusted p "
            f"({found.comparisons} comparisons, Holm) at level {LEVEL}."
        )
    if any(line.over for line in lines):
        notes.append("95% interval: over what the next column says; it holds for your codes as they are.")
    if any(not line.over for line in lines):
        notes.append("no interval: one run of a method that may vary, or no scores of each query.")
    if any(line.verdict == TOO_FEW for line in lines):
        notes.append(f"{TOO_FEW}: a method that varies has fewer than {ENOUGH_RUNS}, so nothing is tested.")
    if any(line.rank is None for line in lines):
        notes.append("-: a bound, or the features themselves: outside of the ranking.")
    if any(line.collapsed for line in lines):
        notes.append("collapsed: see docs/health.md; the score includes these seeds.")
    return [*notes, f"Leaderboard: {folder}."]


def text(found: "Comparison", notes: list[str]) -> str:
    """A comparison as lines for a reader."""
    name = _label(found.metric)
    rank = "" if found.rank is None else f", rank {found.rank} of {found.competitors + 1}"
    lines = [
        f"{found.protocol} ({found.title}): {found.queries:,} queries, {found.database:,} database items",
        f"{found.bits} bits, {name} {found.score:.4f}{rank}",
    ]
    if found.low != found.high:
        lines[-1] += f"; {found.low:.4f} to {found.high:.4f} over the orders of tied items"
    lines += ["", *(_table(found) if found.lines else _neighbours(found)), "", *notes]
    return "\n".join(lines)


def _table(found):
    header = (
        "rank",
        "method",
        "seeds",
        "score",
        "collapse",
        "difference",
        "95% interval",
        "over",
        "adjusted p",
        "verdict",
    )
    rows = [_cells(line) for line in found.lines]
    # Of equal scores yours stands last.
    sign = 1 if found.higher_is_better else -1
    place = sum(sign * line.score >= sign * found.score for line in found.lines)
    rank = "" if found.rank is None else str(found.rank)
    rows.insert(place, (rank, "YOURS", "1", f"{found.score:.4f}", "", "", "", "", "", ""))
    # Without any interval there are no columns for one, and none for collapsed codes where there are none.
    kept = [place for place, column in enumerate(zip(*rows)) if any(column)]
    left = {kept.index(place) for place in (1, 4, 7, 9) if place in kept}
    return _aligned([[row[place] for place in kept] for row in (header, *rows)], left)


def _cells(line):
    from tiebench.leaderboards import rate_words

    known = not math.isnan(line.p_adjusted)
    p = ("<0.0001" if line.p_adjusted < 0.0001 else f"{line.p_adjusted:.4f}") if known else ""
    return (
        "-" if line.rank is None else str(line.rank),
        line.title,
        str(line.seeds or ""),
        f"{line.score:.4f}",
        rate_words(line.collapsed, line.seeds),
        f"{line.difference:+.4f}",
        f"{line.low:+.4f} to {line.high:+.4f}" if line.over else "",
        line.over,
        p,
        line.verdict,
    )


def _neighbours(found):
    """The nearest code lengths, where the leaderboard lacks that of the codes."""
    known = ", ".join(map(str, found.lengths))
    lines = [f"The leaderboard has no {_label(found.metric)} of {found.bits} bits; it has {known} bits."]
    for bits, rows in found.neighbours.items():
        table = [("method", f"{bits} bits"), *((row.title, f"{row.mean:.4f}") for row in rows)]
        lines += ["", *_aligned(table, left={0})]
    return lines


def _aligned(rows, left):
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    ]


def _label(metric):
    from tiebench import metrics
    from tiebench.comparison import base_metric

    base = base_metric(metric)
    ends = {"_min": " (worst order of ties)", "_max": " (best order of ties)"}
    return metrics.label(base)[0] + ends.get(metric[len(base) :], "")
