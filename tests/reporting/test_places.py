"""Places and costs of leaderboards, against sorting the rows of the files by hand."""

import csv
from pathlib import Path

import pytest

from reporting.leaderboard.boards import Boards, as_table, main_metric, other_metrics
from reporting.printed.cells import cells
from reporting.tables.titles import UNCODED
from tiebench.leaderboards import stems

FOLDER = Path(__file__).parents[2] / "leaderboard"
BOARDS = Boards(FOLDER)


def rows_of(protocol, metric, stem):
    """Rows of a file that have a score, and (method, bits) -> cell of its board, of a protocol or a fold."""
    with (FOLDER / f"{stem}.tidy.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == protocol]
    board = BOARDS[stem]
    block = {"protocol": protocol, "metric": metric, "bits": board.bits, "methods": board.methods}
    frame = board.tidy
    frame = frame[(frame["protocol"] == protocol) & (frame["metric"] == metric)]
    found = cells(frame, as_table([board], [block])).of
    known = {place[2:]: cell for place, cell in found.items() if cell.known}
    return [row for row in rows if row["metric"] == metric and row["mean"]], known


FOLDS = [(fold, "ap", "cifar10_unseen") for fold in BOARDS["cifar10_unseen"].folds]


@pytest.mark.parametrize(
    ("protocol", "metric", "stem"),
    [*((stem, "ap", stem) for stem in stems(FOLDER)), ("digits", "ndcg", "digits"), *FOLDS],
)
def test_places_are_those_in_the_sorted_means_of_what_competes(protocol, metric, stem):
    rows, found = rows_of(protocol, metric, stem)
    assert rows
    about = BOARDS[stem].about["methods"]
    settings = BOARDS[stem].about["settings"]
    no_others = settings.get("unseen") or settings["split"]["training"] == "all"
    for bits in {int(row["bits"]) for row in rows}:
        column = {row["method"]: float(row["mean"]) for row in rows if int(row["bits"]) == bits}
        ranked = {method for method in column if method != UNCODED and about[method]["family"] != "bound"}
        ranked = {one for one in ranked if no_others or about[one]["sees"] == "training set"}
        order = sorted((column[method] for method in ranked), reverse=True)
        of_bits = {method: cell for (method, length), cell in found.items() if length == bits}
        assert {method: cell.mean for method, cell in of_bits.items()} == column
        for method, cell in of_bits.items():
            assert cell.place == (order.index(cell.mean) + 1 if method in ranked else None)
            assert (cell.rank == "best") == (cell.place == 1)


def test_other_metrics_have_no_ends_of_ranges():
    board = BOARDS["digits"]
    assert main_metric(board) == "ap"
    assert set(other_metrics(board)) == {"ap@100", "ndcg", "ndcg@100", "precision@100", "recall@100"}
