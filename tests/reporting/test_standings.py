"""Ranks and costs of leaderboards, against sorting the rows of the files by hand."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from reporting.leaderboard import protocols, standings
from reporting.leaderboard.boards import Boards, as_table

FOLDER = Path(__file__).parents[2] / "leaderboard"
BOARDS = Boards(FOLDER)


def rows_of(protocol, metric, stem):
    with (FOLDER / f"{stem}.tidy.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == protocol]
    return [row for row in rows if row["metric"] == metric and row["mean"]]


def found_of(protocol, metric="ap", stem=None):
    board = BOARDS[stem or protocol]
    block = {"protocol": board.protocol, "metric": metric, "bits": board.bits, "methods": board.methods}
    return standings.standings(board, as_table([board], [block]), protocol, metric)


@pytest.mark.parametrize("protocol", protocols(FOLDER))
@pytest.mark.parametrize("metric", ["ap", "ndcg"])
def test_ranks_are_places_in_the_sorted_means_of_what_competes(protocol, metric):
    rows = rows_of(protocol, metric, protocol)
    if not rows:
        assert metric == "ndcg"
        return
    found = found_of(protocol, metric)
    about = BOARDS[protocol].about["methods"]
    unseen = BOARDS[protocol].about["settings"].get("unseen")
    for bits in {int(row["bits"]) for row in rows}:
        column = {row["method"]: float(row["mean"]) for row in rows if int(row["bits"]) == bits}
        ranked = {
            method
            for method in column
            if method != "uncoded"
            and about[method]["family"] != "bound"
            and (unseen or about[method]["sees"] == "training set")
        }
        order = sorted((column[method] for method in ranked), reverse=True)
        cells = {row.method: row.cells[bits] for row in found.rows if bits in row.cells}
        cells = {method: cell for method, cell in cells.items() if not cell.reason}
        assert {method: cell.mean for method, cell in cells.items()} == column
        for method, cell in cells.items():
            assert cell.rank == (order.index(cell.mean) + 1 if method in ranked else None)
        assert found.competitors[bits] == len(ranked)
        best = found.best(bits, 3)
        first = [mean for mean in order if order.index(mean) < 3]  # and those level with the third
        assert [cell.mean for _, cell in best] == first and best[0][1].rank == 1


def test_rows_stand_by_the_longest_codes_and_folds_have_ranks_of_their_own():
    found = found_of("digits")
    means = [row.cells[48].mean for row in found.rows]
    assert means == sorted(means, reverse=True)
    board = BOARDS["cifar10_unseen"]
    for fold in board.folds:
        of_fold = found_of(fold, stem="cifar10_unseen")
        rows = rows_of(fold, "ap", "cifar10_unseen")
        assert {row.method: row.cells[32].mean for row in of_fold.rows} == {
            row["method"]: float(row["mean"]) for row in rows
        }


def test_seconds_are_means_over_the_runs():
    seconds = defaultdict(list)
    with (FOLDER / "digits.runs.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            key = row["method"], int(row["bits"])
            seconds[key].append((float(row["run.seconds_fit"]), float(row["run.seconds_encode"])))
    cells = {(row.method, bits): cell for row in found_of("digits").rows for bits, cell in row.cells.items()}
    assert len(seconds) > 70
    for key, of in seconds.items():
        means = [sum(column) / len(of) for column in zip(*of)]
        assert (cells[key].fit, cells[key].encode) == pytest.approx(means, rel=1e-12)


def test_other_metrics_have_no_ends_of_ranges():
    board = BOARDS["digits"]
    assert standings.main_metric(board) == "ap"
    others = standings.other_metrics(board)
    assert set(others) == {"ap@100", "ndcg", "ndcg@100", "precision@100", "recall@100"}
