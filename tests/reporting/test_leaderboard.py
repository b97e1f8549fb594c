"""Scores that ship: what is written of a published table, what is refused, and the files of this checkout."""

import csv
import dataclasses
import functools
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from leaderboards import COMMIT, make_run, make_uncoded, publish_table, random_scores, refuse_runs

from reporting import frames, leaderboard
from reporting.__main__ import main
from reporting.leaderboard import earlier_forms, per_query, training_curves
from reporting.leaderboard.boards import Boards
from reporting.leaderboard.publishing import publish
from reporting.leaderboard.tables import render
from reporting.records.read import table_runs
from reporting.tables.model import Table
from reporting.tables.runs import Run
from tests.tiebench.refusals import refused
from tiebench import leaderboards, metrics
from tiebench.comparison import base_metric
from tiebench.query_identity import describe

ROOT = Path(__file__).parents[2]
SHIPPED = leaderboards.stems(ROOT / "leaderboard")
SIZES = {"p_fold1": 6, "p_fold2": 3}
ENDINGS = (".tidy.csv", ".runs.csv", ".per_query.npz", ".provenance.json")
LABELS = np.arange(40) % 3
SPLITS = {
    "p_fold1": {"query": np.arange(6), "database": np.arange(10, 40)},
    "p_fold2": {"query": np.arange(6, 9), "database": np.arange(20, 40)},
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A published table whose protocol has two folds, with its runs, splits and dataset."""
    generator = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)  # the command and `publish` look for resources/ here
    dataset = tmp_path / "resources" / "datasets" / "d"
    dataset.mkdir(parents=True)
    np.save(dataset / "labels.npy", LABELS)
    (dataset / "dataset.json").write_text(json.dumps({"fingerprint": "d" * 64}))
    for protocol, split in SPLITS.items():
        place = tmp_path / "resources" / "protocols" / protocol
        place.mkdir(parents=True)
        np.savez(place / "split.npz", training=np.arange(10, 15), **split)
        (place / "split.json").write_text(json.dumps({"fingerprint": protocol}))
    for protocol, size in SIZES.items():
        for method in ("one", "two", "three"):
            for seed in (0, 1):
                cost = {"fit": 1.0 + generator.random(), "encode": 0.25}
                scores = {"health": {"collapsed": "few codes"}} if method == "two" and seed else {}
                scores["metrics"] = {"database": len(SPLITS[protocol]["database"])}
                per_query = random_scores(generator, size)
                make_run(tmp_path, protocol, method, 8, seed, per_query, scores=scores, seconds_by_part=cost)
        make_uncoded(tmp_path, protocol, ap=size / 10, queries=size)
    styles = {method: {"title": method.upper(), "family": "listwise"} for method in ("one", "two", "three")}
    table = {"name": "t", "methods": ["one", "two"], "seeds": [0, 1], "styles": styles}
    table |= {"folds": {"p": list(SIZES)}, "protocols": {"p": "The protocol"}, "blocks": with_blocks("ap")}
    table["settings"] = {"p": {"affinity": {"kind": "class"}}}
    publish_table(tmp_path, table, ["p"])
    return tmp_path


@pytest.fixture
def folder(results):
    """The leaderboard of the table."""
    publish(["t"], results, results / "leaderboard")
    return results / "leaderboard"


def another(results, name, **changes):
    """Make another table of the runs, and the command of publishing it in the same leaderboard."""
    table = json.loads((results / "t.json").read_text())["table"]
    publish_table(results, table | {"name": name} | changes, ["p"])
    return functools.partial(publish, [name], results, folder=results / "leaderboard")


def change_runs(results, pattern, old, new):
    for path in results.glob(f"runs/{pattern}"):
        path.write_text(path.read_text().replace(old, new))


def with_blocks(metric):
    return [{"protocol": "p", "metric": metric, "bits": [8]}]


def test_what_is_written_are_the_table_s_rows_its_folds_and_what_made_them(results, capsys):
    folder = results / "leaderboard"
    assert main(["publish", "t", "--results", str(results), "--folder", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / f"p{e}") for e in ENDINGS]
    board = leaderboard.read("p", folder)
    rows, about = board.tidy, board.about
    own = frames.from_csv((results / "t.tidy.csv").read_text())
    of_ap = rows[(rows["protocol"] == "p") & (rows["metric"] == "ap")].reset_index(drop=True)
    pd.testing.assert_frame_equal(of_ap, own)
    for metric in ("ap", "ap_min", "ap_max", "ap@2"):
        of_metric = rows[rows["metric"] == metric]
        for method in ("one", "two"):
            of = of_metric[of_metric["method"] == method].set_index("protocol")["mean"]
            files = {p: results.glob(f"runs/{p}/{method}/8/*/*.npz") for p in SIZES}
            expected = [np.mean([np.load(path)[metric].mean() for path in files[p]]) for p in SIZES]
            assert list(of[list(SIZES)]) == pytest.approx(expected)
            assert of["p"] == pytest.approx(np.average(expected, weights=list(SIZES.values())))
    assert "wap" not in set(rows["metric"]) and "queries" not in set(rows["metric"])
    uncoded = rows[rows["method"] == "uncoded"].set_index("protocol")["mean"]
    assert dict(uncoded) == pytest.approx({"p": 0.5, "p_fold1": 0.6, "p_fold2": 0.3})
    assert board.uncoded("p_fold2") == {"ap": 0.3}
    assert about["git_commits"] == [COMMIT] and about["runs"] == 8 and about["seconds"] == 12.0
    assert about["hyperparameters"] == {"one, 8 bits": [{"epochs": 3}], "two, 8 bits": [{"epochs": 3}]}
    assert [one["split"] for one in about["fingerprints"]] == list(SIZES)
    assert about["methods"]["two"]["title"] == "TWO" and "three" not in about["methods"]
    for name in ("p.tidy.csv", "p.runs.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("0.", "0.1", 1))
        with refused(pattern=f"{name} is not the file that"):
            leaderboard.read("p", folder)
        (folder / name).write_text(text)


def test_runs_are_read_back_as_the_records_that_the_results_have(results, folder):
    found = {(*run.cell, run.seed): run for run in leaderboard.read("p", folder).measured}
    settings = json.loads((results / "t.json").read_text())
    merged = table_runs(Table.from_json(settings), results / "runs")
    assert len(merged) == 4 and len(found) == 12
    for expected in merged:
        run = found[*expected.cell, expected.seed]
        assert run.from_leaderboard and run.status == "done"
        assert {"bits": 8} | run.metrics == expected.metrics  # to the last bit
        for key in ("seconds", "fit_seconds", "encode_seconds", "peak_memory_mb", "fingerprints"):
            assert getattr(run, key) == getattr(expected, key) is not None
        for key in ("constant_bits", "entropy", "collapsed", "correlation_max"):
            assert run.health[key] == expected.health[key]
        assert (min(run.health["ones"]), max(run.health["ones"])) == (0.25, 0.75)
        assert Run.from_json(json.loads(json.dumps(run.to_json()))) == run


def test_a_run_that_a_fold_lacks_has_no_score_of_the_protocol(folder):
    board = leaderboard.read("p", folder)
    lost = next(row for row in board.runs if row["protocol"] == "p_fold2")
    found = dataclasses.replace(board, runs=[row for row in board.runs if row is not lost]).measured
    key = (lost["method"], lost["bits"], lost["seed"])
    assert {run.protocol for run in found if (run.method, run.bits, run.seed) == key} == {"p_fold1"}
    assert sum(run.protocol == "p" for run in found) == 3


def test_a_cell_with_more_seeds_is_kept_unless_its_settings_changed(results, folder):
    said = []
    before = leaderboard.read("p", folder)
    fewer = another(results, "fewer", methods=["two", "three"], seeds=[0])
    fewer(say=said.append)
    kept = "p: two, 8 bits is kept, which has the same settings and 2 seeds"
    assert [line for line in said if "kept" in line] == [kept]
    board = leaderboard.read("p", folder)
    runs = [run for run in board.runs if run["method"] == "two"]
    assert runs == [run for run in before.runs if run["method"] == "two"] and len(runs) == 4
    assert {run["seed"] for run in board.runs if run["method"] == "three"} == {0}
    change_runs(results, "*/two/8/0/run.json", '"epochs": 3', '"epochs": 9')
    fewer(say=said.append)
    runs = [run for run in leaderboard.read("p", folder).runs if run["method"] == "two"]
    assert {run["seed"] for run in runs} == {0}


def test_a_cell_with_more_seeds_is_replaced_by_another_seed(results, folder):
    """Fewer runs are kept out where the files have each of them, not where they are others."""
    for protocol in SIZES:
        make_run(results, protocol, "one", 8, 7, random_scores(np.random.default_rng(7), SIZES[protocol]))
    another(results, "other", methods=["one"], seeds=[7])()
    board = leaderboard.read("p", folder)
    assert {run["seed"] for run in board.runs if run["method"] == "one"} == {7}


def test_the_score_without_codes_is_renewed(results, folder):
    for protocol in SIZES:
        make_uncoded(results, protocol, ap=0.125, queries=3)
    another(results, "more", methods=["three"])()
    rows = leaderboard.read("p", folder).tidy.query("method == 'uncoded' and metric == 'ap'")
    assert not rows.empty and set(rows["mean"]) == {0.125}


@pytest.mark.parametrize("refused", ["*", "p_fold2"])
def test_what_is_kept_stays_whole_where_nothing_new_has_scores(results, folder, refused):
    """Fewer seeds of what is there; a further method that every fold refuses, or one of them."""
    scores, old = (folder / "p.per_query.npz").read_bytes(), leaderboard.read("p", folder)
    another(results, "fewer", seeds=[0])()
    refuse_runs(results, f"{refused}/three/8/*")
    another(results, "new", methods=["three"])()
    board = leaderboard.read("p", folder)
    for key in ("members", "fingerprints"):
        assert board.about[key] == old.about[key] != []
    assert len(board.runs) == (8 if refused == "*" else 10)
    assert board.scored == old.scored and (folder / "p.per_query.npz").read_bytes() == scores


@pytest.mark.parametrize("status", ["refused", "external"])
def test_a_table_without_a_run_of_its_own_is_not_published(results, folder, tmp_path, status):
    styles = {"three": {"title": "T", "external": status == "external"}}
    if status == "refused":
        refuse_runs(results, "*/three/8/*")
    publishing = another(results, "new", methods=["three"], styles=styles)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for options in ({"folder": tmp_path / "none"}, {"replace": True}):
        said = []
        with refused(pattern="nothing to publish: new"):
            publishing(say=said.append, **options)
        assert said == ["p: left out, no run of it was made here and has a score"]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before and not (
        tmp_path / "none"
    ).exists()


def test_rows_of_other_methods_are_added_and_replace_those_of_the_same_cells(results, folder):
    before = leaderboard.read("p", folder)
    path = results / "runs" / "p_fold2" / "two" / "8" / "1" / "scores.json"
    scores = json.loads(path.read_text())
    scores["metrics"]["ap"] = 0.75
    path.write_text(json.dumps(scores))
    more = another(results, "more", methods=["two", "three"])
    more()
    board = leaderboard.read("p", folder)
    assert board.methods == ["one", "two", "three"]
    assert sorted(board.about["methods"]) == ["one", "three", "two"] and board.about["runs"] == 12
    assert list(board.about["hyperparameters"]) == [f"{m}, 8 bits" for m in ("one", "three", "two")]
    assert [entry["tables"] for entry in board.about["published"]] == [["t"], ["more"]]
    rows = board.tidy.set_index(["method", "protocol", "metric"]).drop(columns="table")
    old = before.tidy.set_index(["method", "protocol", "metric"]).drop(columns="table")
    for method in ("one", "uncoded"):
        pd.testing.assert_frame_equal(rows.loc[method], old.loc[method], check_exact=True)
    assert not rows.index.duplicated().any() and len(rows.loc["two"]) == len(old.loc["two"])
    changed = rows["mean"]["two", "p_fold2", "ap"]
    (one,) = (run["ap"] for run in board.runs if list(run.values())[:4] == ["p_fold2", "two", 8, 0])
    assert changed == pytest.approx((one + 0.75) / 2)
    again = another(results, "again", methods=["one"])
    again()
    kept = leaderboard.read("p", folder).tidy
    pd.testing.assert_frame_equal(*(frame[["protocol", "metric", "method"]] for frame in (kept, board.tidy)))
    more(replace=True)
    assert sorted(leaderboard.read("p", folder).methods) == ["three", "two"]


def write_trials(results, name, *searches):
    """results/tuning/<name>.csv; searches: (protocol, method, epochs tried, the chosen ones last)."""
    (results / "tuning").mkdir(exist_ok=True)
    with (results / "tuning" / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["protocol", "method", "bits", "trial", "settings", "score", "seconds", "chosen"])
        for protocol, method, tried in searches:
            for number, epochs in enumerate(tried):
                settings, last = json.dumps({"epochs": epochs, "other": None}), number == len(tried) - 1
                writer.writerow([protocol, method, 8, number, settings, number / 10, 2.5, last])


def test_every_trial_of_a_search_is_published_beside_the_scores_it_chose(results, capsys):
    folder = results / "leaderboard"
    of_folds = [(fold, method, [1, 3]) for fold in SIZES for method in ("one", "two")]
    write_trials(results, "short", *of_folds, ("elsewhere", "one", [9]))
    command = ["publish", "t", "--results", str(results), "--folder", str(folder)]
    assert main([*command, "--tuning", "short"]) == 0
    assert str(folder / "p.trials.csv") in capsys.readouterr().out.split()

    def searches():
        rows = list(csv.DictReader((folder / "p.trials.csv").open()))
        assert all(json.loads(row["settings"])["epochs"] == 3 for row in rows if row["chosen"] == "True")
        return [(row["tuning"], row["protocol"], row["method"]) for row in rows]

    short = [("short", *search[:2]) for search in of_folds for _ in search[2]]
    assert searches() == short
    costs = {run.method: run.search_seconds for run in Boards(folder).runs("p", ["trials"])}
    assert costs["one"] == costs["two"] == 2.5 * len(short) / 2
    leaderboard.read("p", folder)
    publish(["t"], results, folder)  # without naming them they stay
    assert searches() == short
    write_trials(results, "long", ("p_fold1", "two", [1, 2, 3]))
    write_trials(results, "short", ("p_fold2", "two", [3]))
    publish(["t"], results, folder, tunings=["long", "short"])
    kept = [row for row in short if row[1:] != ("p_fold2", "two")]
    assert searches() == kept + [("long", "p_fold1", "two")] * 3 + [("short", "p_fold2", "two")]
    publish(["t"], results, folder, replace=True)
    assert not (folder / "p.trials.csv").exists()


def test_trials_are_not_published_of_a_search_that_chose_other_settings(results, capsys):
    folder = results / "leaderboard"
    write_trials(results, "short", ("p_fold1", "one", [3, 4]))
    with refused(pattern=r"p_fold1, one, 8 bits: tuning short chose epochs 4, .* have 3"):
        publish(["t"], results, folder, tunings=["short"])
    write_trials(results, "other", ("elsewhere", "one", [3]))
    with refused(pattern="tuning other searched in elsewhere: publish a table of it, too"):
        publish(["t"], results, folder, tunings=["other"])
    command = ["publish", "t", "--results", str(results), "--folder", str(folder), "--tuning"]
    assert main([*command, "missing"]) != 0
    assert "missing.csv: no such file" in capsys.readouterr().err
    (results / "tuning" / "empty.csv").write_text("protocol\n")
    assert main([*command, "empty"]) != 0
    assert "empty.csv: must have rows" in capsys.readouterr().err
    assert not folder.exists()


def of_queries(results, method, metric):
    """Scores of each query of both folds, a row a seed."""
    runs = {fold: sorted(results.glob(f"runs/{fold}/{method}/8/*/per_query.npz")) for fold in SIZES}
    rows = [np.array([np.load(path)[metric] for path in runs[fold]]) for fold in SIZES]
    return np.concatenate(rows, axis=1).astype(np.float32)


def log(length, counter="epoch"):
    return [{counter: 2 * k, "objective": 1 / (k + 1), "seconds": 0.5} for k in range(length)]


def place_logs(results, method, **of_seeds):
    for protocol in SIZES:
        for seed, lines in of_seeds.items():
            path = results / "runs" / protocol / method / "8" / seed[1:] / "training.jsonl"
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_curves_of_trainings_are_kept_and_replaced_as_rows_are(results, folder):
    assert not (folder / "p.training.csv").exists() and not Boards(folder).has("p", "training")
    assert training_curves.published(Boards(folder)["p"], folder) == {}
    place_logs(results, "one", s0=log(5), s1=[*log(3), {"epoch": 9, "objective": None}])
    place_logs(results, "two", s0=[{"epoch": 1}], s1=[line | {"ap": 0.5} for line in log(4, "pass")])
    publish(["t"], results, folder)
    found = Boards(folder)
    assert found.has("p", "training") and not found.has("p", "trials")
    curves = training_curves.published(found["p"], folder)
    assert set(curves) == {(p, *run) for p in SIZES for run in (("one", 8, 0), ("one", 8, 1), ("two", 8, 1))}
    expected = [{"epoch": 2 * k, "objective": pytest.approx(1 / (k + 1), rel=1e-5)} for k in range(5)]
    assert curves["p_fold1", "one", 8, 0] == expected and curves["p_fold2", "one", 8, 1] == expected[:3]
    # It counts nothing, and has average precision, which the others' rows lack.
    of_two = curves["p_fold1", "two", 8, 1]
    assert [line["line"] for line in of_two] == [1, 2, 3, 4] and {line["ap"] for line in of_two} == {0.5}
    of_runs = {(*run.cell, run.seed): run for run in found.runs("p", ["training"])}
    assert of_runs["p_fold1", "one", 8, 0].training == expected
    assert of_runs["p", "one", 8, 0].training == expected  # of all folds: the first one's
    assert not of_runs["p_fold1", "two", 8, 0].training
    # Of a cell that is published again, what it has now; of the others, what they had.
    place_logs(results, "two", s0=log(200), s1=[])
    another(results, "more", methods=["two"])()
    again = training_curves.published(Boards(folder)["p"], folder)
    assert {key for key in again if key[1] == "two"} == {(p, "two", 8, 0) for p in SIZES}
    of_one = ({key: of for key, of in each.items() if key[1] == "one"} for each in (again, curves))
    assert next(of_one) == next(of_one)
    long = again["p_fold1", "two", 8, 0]
    assert len(long) == training_curves.MOST_POINTS
    assert (long[0]["epoch"], long[-1]["epoch"]) == (0, 398)
    (folder / "p.training.csv").write_text("protocol\n")
    with refused(pattern=r"p\.training\.csv is not the file that"):
        training_curves.published(Boards(folder)["p"], folder)


def test_scores_of_each_query_are_kept_with_what_tells_the_queries_apart(results):
    folder, said = results / "leaderboard", []
    paths = publish(["t"], results, folder, say=said.append)
    assert said == []
    with np.load(paths[2], allow_pickle=False) as kept:
        assert set(kept) == {"query", "ap/one/8", "ap/two/8"}
        np.testing.assert_array_equal(kept["query"], np.arange(9))
        for method in ("one", "two"):
            assert kept[f"ap/{method}/8"].dtype == np.float32
            np.testing.assert_array_equal(kept[f"ap/{method}/8"], of_queries(results, method, "ap"))
    members = {one.pop("protocol"): one for one in json.loads(paths[3].read_text())["members"]}
    for fold, split in SPLITS.items():
        assert members[fold] == describe({part: LABELS[rows] for part, rows in split.items()}, split)
    again = publish(["t"], results, results / "again")
    assert again[2].read_bytes() == paths[2].read_bytes()


def test_a_fold_is_read_with_its_own_queries(results, folder):
    rows = leaderboard.read("p", folder).tidy
    whole = leaderboards.load("p", folder)
    assert whole.folds == tuple(SIZES) and whole.identity == {} and whole.title == "The protocol"
    for fold, piece in (("p_fold1", slice(0, 6)), ("p_fold2", slice(6, 9))):
        board = leaderboards.load(fold, folder)
        assert board.folds == () and board.identity["queries"] == SIZES[fold]
        assert board.title == f"The protocol, fold {fold[-1]}"
        np.testing.assert_array_equal(board.queries, SPLITS[fold]["query"])
        for method in ("one", "two"):
            expected = of_queries(results, method, "ap")[:, piece]
            np.testing.assert_array_equal(board.per_query["ap", method, 8], expected)
        own = rows[rows["protocol"] == fold]
        assert [row.mean for row in board.rows] == list(own["mean"])
        assert [row.competes for row in board.rows] == list(own["method"] != "uncoded")
        np.testing.assert_array_equal([row.low for row in board.rows], own["ci_low"])
    with refused(pattern="no protocol 'p_fold3'; did you mean 'p_fold2'"):
        leaderboards.load("p_fold3", folder)


def test_what_cannot_be_recorded_of_queries_is_said(results, monkeypatch):
    folder, said = results / "leaderboard", []
    publish(["t"], results, folder, say=said.append)
    monkeypatch.setattr(per_query, "MOST_BYTES", 100)
    monkeypatch.setattr(per_query, "MOST_PARTS", 1)
    (results / "resources" / "protocols" / "p_fold2" / "split.npz").unlink()
    paths = publish(["t"], results, folder, replace=True, say=said.append)
    assert len(said) == 2 and said[0].startswith("p_fold2: ") and "the means over runs are kept" in said[1]
    one, two = json.loads(paths[-1].read_text())["members"]
    assert "query_labels" in one and two == {"protocol": "p_fold2", "queries": 3, "database": 20}
    kept = leaderboards.load("p_fold1", folder).per_query["ap", "one", 8]
    np.testing.assert_allclose(kept, of_queries(results, "one", "ap")[:, :6].mean(axis=0), rtol=1e-6)


def test_scores_of_many_queries_are_kept_in_parts_of_a_size(results, folder, monkeypatch):
    whole = leaderboards.load("p", folder).per_query
    monkeypatch.setattr(per_query, "MOST_BYTES", 500)
    publish(["t"], results, folder)
    assert len(sorted(folder.glob("p.per_query*.npz"))) == 3
    found = leaderboards.load("p", folder).per_query
    assert found.keys() == whole.keys() and all((found[cell] == whole[cell]).all() for cell in whole)
    monkeypatch.undo()
    publish(["t"], results, folder)
    assert [path.name for path in folder.glob("p.per_query*.npz")] == ["p.per_query.npz"]  # no part stays


def test_a_publication_leaves_files_without_its_rows_as_they_were(results, folder, monkeypatch):
    monkeypatch.setattr(per_query, "MOST_BYTES", 500)
    publish(["t"], results, folder)
    before = {path: path.read_bytes() for path in folder.glob("p.per_query*.npz")}
    path = results / "runs/p_fold1/one/8/0/per_query.npz"
    scores = dict(np.load(path))
    np.savez(path, **scores | {"ap": scores["ap"] / 2})
    publish(["t"], results, folder)
    assert sum(path.read_bytes() != content for path, content in before.items()) == 1 < len(before)
    found = leaderboards.load("p", folder).per_query["ap", "one", 8]
    np.testing.assert_array_equal(found[0, :6], (scores["ap"] / 2).astype(np.float32))


def test_runs_that_are_made_again_are_compared_with_the_published_codes(results, capsys):
    def place(method, fold, change=0):
        path = results / "runs" / fold / method / "8" / "1" / "codes.npz"
        query, database = np.full((6, 1), 3 + change, np.uint8), np.ones((20, 1), np.uint8)
        np.savez(path, query=query, database=database, bits=8)

    place("one", "p_fold1")
    place("two", "p_fold2")
    publish(["t"], results, results / "leaderboard")
    place("one", "p_fold1")  # other bytes of the file, the same codes
    place("two", "p_fold2", change=1)
    given = ["codes", "p", "--folder", str(results / "leaderboard"), "--results", str(results)]
    assert main(given) == 1
    said = capsys.readouterr()
    differs, counts = said.out.splitlines()
    assert differs == "p_fold2, two, 8 bits, seed 1: other codes" and "1 runs have other codes" in said.err
    assert counts == "1 with the same codes, 1 with other codes, 6 without a digest"
    (results / "runs/p_fold2/two/8/1/codes.npz").unlink()
    assert main(given) == 0
    assert capsys.readouterr().out == "1 with the same codes, 1 not in the results, 6 without a digest\n"


def test_scores_of_queries_are_added_as_rows_are(results, folder):
    """A machine without the dataset adds a method, and an old one's scores of queries stay as they were."""
    said = []
    before = json.loads((folder / "p.provenance.json").read_text())["members"]
    old = of_queries(results, "one", "ap")
    for path in results.glob("runs/*/*/8/*/per_query.npz"):
        np.savez(path, **{name: 1 - values for name, values in np.load(path).items()})
    blocks = with_blocks("ap") + with_blocks("ap@2")
    more = another(results, "more", methods=["two", "three"], blocks=blocks)
    shutil.rmtree(results / "resources")
    paths = more(say=said.append)
    assert said == [] and json.loads(paths[-1].read_text())["members"] == before
    with np.load(paths[2], allow_pickle=False) as kept:
        cells = {f"{metric}/{method}/8" for metric in ("ap", "ap@2") for method in ("two", "three")}
        assert set(kept) == {"query", "ap/one/8", *cells}
        np.testing.assert_array_equal(kept["query"], np.arange(9))
        np.testing.assert_array_equal(kept["ap/one/8"], old)
        np.testing.assert_array_equal(kept["ap@2/two/8"], of_queries(results, "two", "ap@2"))


def test_runs_of_several_splits_are_not_published(results):
    splits = '"split": "p_fold2"', '"split": "older"'
    change_runs(results, "p_fold2/two/8/1/run.json", *splits)
    with refused(pattern="p_fold2: runs have different fingerprints"):
        publish(["t"], results, results / "leaderboard")
    change_runs(results, "p_fold2/two/8/1/run.json", *splits[::-1])
    (results / "resources/protocols/p_fold1/split.json").write_text('{"fingerprint": "newer"}')
    with refused(pattern=r"split\.npz is not the split that the runs of p_fold1"):
        publish(["t"], results, results / "leaderboard")
    assert not (results / "leaderboard").exists()


def test_scores_of_another_split_or_affinity_are_not_added(results, folder):
    text = (folder / "p.provenance.json").read_text()
    levels = another(results, "levels", settings={"p": {"affinity": {"kind": "labels"}}})
    with refused(pattern=r"affinity of p is .*labels.*, not .*class.*--replace"):
        levels()
    change_runs(results, "p_fold2/*/*/*/run.json", '"split": "p_fold2"', '"split": "drawn anew"')
    with refused(pattern="p_fold2 has another split here"):
        publish(["t"], results, folder)
    assert (folder / "p.provenance.json").read_text() == text
    (results / "resources/protocols/p_fold2/split.json").write_text('{"fingerprint": "drawn anew"}')
    publish(["t"], results, folder, replace=True)
    assert leaderboard.read("p", folder).fingerprints()["p_fold2"]["split"] == "drawn anew"


def test_folds_of_other_seeds_are_joined_by_their_means():
    """Seed 0 of one fold and seed 1 of another are no run."""

    def of(fold, *seeds):
        return [Run(fold, "m", 8, seed, per_query={"ap": np.array([seed, 1.0])}) for seed in seeds]

    runs = {"f1": of("f1", 0, 1), "f2": of("f2", 0, 2)}
    (found,) = per_query.scores(runs).values()
    assert found.tolist() == [0.5, 1.0, 1.0, 1.0]


def test_what_cannot_be_vouched_for_is_not_written(results):
    for name, changes, message in (
        ("again", {}, "p, ap, one, 8 bits is in two tables"),
        ("one_seed", {"blocks": with_blocks("ap@2"), "seeds": [1]}, "8 bits has other seeds"),
    ):
        another(results, name, **changes)
        with refused(pattern=message):
            publish(["t", name], results, results / "leaderboard")
    holes = another(results, "holes", blocks=with_blocks("ndcg"))
    with refused(pattern="p: one, 8 bits is missing: the run has no score named ndcg"):
        holes()
    change_runs(results, "p_fold2/two/8/1/run.json", COMMIT, "b" * 40 + "+")
    with refused(pattern="code that no commit has"):
        publish(["t"], results, results / "leaderboard")
    change_runs(results, "p_fold2/two/8/1/run.json", '"' + "b" * 40 + '+"', "null")
    with refused(pattern=r"code that no commit has \(None\)"):
        publish(["t"], results, results / "leaderboard")
    assert not (results / "leaderboard").exists()


@functools.cache
def shipped(protocol):
    return leaderboard.read(protocol, ROOT / "leaderboard")


@pytest.mark.thorough
@pytest.mark.parametrize("protocol", SHIPPED)
def test_the_files_of_this_checkout_belong_together(protocol):
    board = shipped(protocol)
    rows, about = board.tidy, board.about
    assert about["protocol"] == protocol and len(rows)
    assert set(rows["status"]) <= {"done", "refused", "uncoded"}
    scored = rows[rows["status"] == "done"]
    for name, some in scored.groupby("metric"):
        metric, _ = metrics.resolve(base_metric(name))
        assert some["mean"].between(metric.low, metric.high).all()
    assert set(about["methods"]) == set(rows["method"]) - {"uncoded"}
    assert about["runs"] == len(board.runs)
    assert {run["protocol"] for run in board.runs} == set(board.fingerprints())
    # Each row is what its runs say.
    of_cell = {}
    for run in board.measured:
        for metric, value in run.metrics.items():
            key = (run.protocol, metric, run.method, run.bits)
            of_cell.setdefault(key, []).append(value)
    for row in scored.itertuples():
        values = of_cell[row.protocol, row.metric, row.method, row.bits]
        found = [row.mean, row.std, row.ci_low, row.ci_high]
        assert row.seeds == len(values)
        assert found == pytest.approx(list(frames.t_interval(values)), nan_ok=True)


def test_rows_of_an_earlier_form_are_marked_until_they_are_published_again(results, folder):
    entry = {"methods": ["two", "three"], "commits": [COMMIT, "b" * 40], "differs": "the gradient"}
    (folder / "earlier_forms.yaml").write_text(yaml.safe_dump([entry]))
    marked = render({"protocol": "p"}, folder, Boards(folder))
    assert "| TWO‖ |" in marked and "| ONE |" in marked
    assert "‖ Run with an earlier implementation (TWO: the gradient)." in " ".join(marked.split())
    change_runs(results, "*/two/8/*/run.json", COMMIT, "c" * 40)
    publish(["t"], results, folder)
    assert "‖" not in render({"protocol": "p"}, folder, Boards(folder))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{methods: [two]}", "must be a list of entries with the keys methods, commits, differs"),
        ("- {methods: [two], commits: []}", "entry 1 must have the keys methods, commits, differs"),
        ("- {methods: two, commits: [], differs: x}", "entry 1 must be of type list, not 'two'"),
        ("- [", "cannot be read: "),
    ],
)
def test_a_list_of_earlier_forms_of_another_form_is_refused(folder, text, fault):
    (folder / "earlier_forms.yaml").write_text(text)
    with refused("earlier_forms.yaml", fault):
        leaderboard.read("p", folder)


@pytest.mark.thorough
def test_every_entry_of_earlier_forms_marks_a_row_that_is_there():
    made = {(run["method"], run["run.git_commit"]) for name in SHIPPED for run in shipped(name).runs}
    for one in earlier_forms.read(ROOT / "leaderboard"):
        assert set(one["methods"]) <= {method for method, commit in made if commit in one["commits"]}
        assert set(one["commits"]) <= {commit for method, commit in made if method in one["methods"]}
