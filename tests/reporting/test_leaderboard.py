"""Scores that ship: what is written of a published table, what is refused, and the files of this checkout."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reporting import frames, health, leaderboard, statistics, table_files
from reporting.__main__ import main
from reporting.leaderboard.publishing import publish
from reporting.records import table_records, uncoded_scores

ROOT = Path(__file__).parents[2]
SHIPPED = leaderboard.protocols(ROOT / "leaderboard")
SIZES = {"p_fold1": 6, "p_fold2": 3}
RANGES = ("ap_min", "ap", "ap_max", "ap@2", "wap")


def make_run(folder, protocol, method, seed, size, generator):
    """A run of 8 bits with random scores, as the workflow writes it."""
    place = folder / "runs" / protocol / method / "8" / str(seed)
    place.mkdir(parents=True)
    values = {name: generator.random(size) for name in RANGES}
    np.savez(place / "per_query.npz", **values)
    means = {name: float(of.mean()) for name, of in values.items()} | {"queries": size, "bits": 8}
    health = {"ones": [0.25, 0.5, 0.75], "constant_bits": seed, "entropy": 3 + generator.random()}
    health |= {"collapsed": "few codes" if method == "two" and seed else None, "correlation_max": None}
    scores = {"metrics": means, "curves": {}, "health": health, "status": "done", "reason": None}
    (place / "scores.json").write_text(json.dumps(scores))
    run = {"protocol": protocol, "method": method, "bits": 8, "seed": seed, "peak_memory_mb": 100.0 * size}
    run |= {"seconds": 1.5, "seconds_by_part": {"fit": 1.0 + generator.random(), "encode": 0.25}}
    run |= {"git_commit": "a" * 40, "versions": {"numpy": "2"}, "device": "cpu", "threads": 1}
    run |= {"fingerprints": {"dataset": "d" * 64, "split": protocol}, "hyperparameters": {"epochs": 3}}
    (place / "run.json").write_text(json.dumps(run))


@pytest.fixture
def results(tmp_path):
    """A published table whose protocol has two folds, with its runs."""
    generator = np.random.default_rng(0)
    for protocol, size in SIZES.items():
        for method in ("one", "two", "three"):
            for seed in (0, 1):
                make_run(tmp_path, protocol, method, seed, size, generator)
        (tmp_path / "uncoded").mkdir(exist_ok=True)
        uncoded = {"metrics": {"ap": size / 10, "queries": size}}
        (tmp_path / "uncoded" / f"{protocol}.json").write_text(json.dumps(uncoded))
    styles = {method: {"title": method.upper(), "family": "listwise"} for method in ("one", "two", "three")}
    table = {
        "name": "t", "methods": ["one", "two"], "seeds": [0, 1], "folds": {"p": list(SIZES)},
        "styles": styles, "protocols": {"p": "The protocol"},
        "settings": {"p": {"affinity": {"kind": "class"}}},
        "blocks": [{"protocol": "p", "metric": "ap", "bits": [8]}],
    }  # fmt: skip
    publish_table(tmp_path, table)
    return tmp_path


def publish_table(folder, table):
    settings = {"table": table, "refused": [], "published": [], "claims": [], "uncoded": ["p"]}
    records = table_records(settings, folder / "runs", also=["per_query"])
    tidy = frames.tidy(table, records, (), uncoded_scores(settings, folder))
    files = table_files.table_files(
        table, tidy, statistics.comparisons(table, records), [], health.frame(table, records)
    )
    for ending, text in files.items():
        (folder / f"{table['name']}{ending}").write_text(text)
    (folder / f"{table['name']}.json").write_text(json.dumps(settings))


def test_what_is_written_are_the_table_s_rows_its_folds_and_what_made_them(results, capsys):
    folder = results / "leaderboard"
    assert main(["publish", "t", "--results", str(results), "--folder", str(folder)]) == 0
    assert capsys.readouterr().out.split() == [str(folder / f"p{e}") for e in leaderboard.ENDINGS]
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
    assert about["git_commits"] == ["a" * 40] and about["runs"] == 8 and about["seconds"] == 12.0
    assert about["hyperparameters"] == {"one, 8 bits": [{"epochs": 3}], "two, 8 bits": [{"epochs": 3}]}
    assert [one["split"] for one in about["fingerprints"]] == list(SIZES)
    assert about["methods"]["two"]["title"] == "TWO" and "three" not in about["methods"]
    for name in ("p.tidy.csv", "p.runs.csv"):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("0.", "0.1", 1))
        with pytest.raises(ValueError, match=f"{name} is not the file that"):
            leaderboard.read("p", folder)
        (folder / name).write_text(text)


def test_runs_are_read_back_as_the_records_that_the_results_have(results):
    publish(["t"], results, results / "leaderboard")
    found = {
        tuple(record[key] for key in leaderboard.KEY): record
        for record in leaderboard.read("p", results / "leaderboard").records()
    }
    settings = json.loads((results / "t.json").read_text())
    merged = table_records(settings, results / "runs")
    assert len(merged) == 4 and len(found) == 12
    for expected in merged:
        record = found[tuple(expected[key] for key in leaderboard.KEY)]
        assert record["source"] == "leaderboard" and record["status"] == "done"
        assert {"bits": 8} | record["metrics"] == expected["metrics"]  # to the last bit
        for key in ("seconds", "peak_memory_mb", "seconds_by_part"):
            assert record["run"][key] == expected["run"][key]
        assert record["run"]["fingerprints"] == expected["run"]["fingerprints"]
        for key in ("constant_bits", "entropy", "collapsed", "correlation_max"):
            assert record["health"][key] == expected["health"][key]
        assert (min(record["health"]["ones"]), max(record["health"]["ones"])) == (0.25, 0.75)


def test_rows_of_other_methods_are_added_and_replace_those_of_the_same_cells(results):
    folder = results / "leaderboard"
    publish(["t"], results, folder)
    before = leaderboard.read("p", folder)
    table = json.loads((results / "t.json").read_text())["table"]
    path = results / "runs" / "p_fold2" / "two" / "8" / "1" / "scores.json"
    scores = json.loads(path.read_text())
    scores["metrics"]["ap"] = 0.75
    path.write_text(json.dumps(scores))
    publish_table(results, table | {"name": "more", "methods": ["two", "three"]})
    publish(["more"], results, folder)
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
    publish(["more"], results, folder, replace=True)
    assert sorted(leaderboard.read("p", folder).methods) == ["three", "two"]


def test_scores_of_another_split_or_affinity_are_not_added(results):
    folder = results / "leaderboard"
    publish(["t"], results, folder)
    text = (folder / "p.provenance.json").read_text()
    table = json.loads((results / "t.json").read_text())["table"]
    settings = {"p": {"affinity": {"kind": "labels"}}}
    publish_table(results, table | {"name": "levels", "settings": settings})
    with pytest.raises(ValueError, match=r"affinity of p is .*labels.*, not .*class.*--replace"):
        publish(["levels"], results, folder)
    for path in results.glob("runs/p_fold2/*/*/*/run.json"):
        path.write_text(path.read_text().replace('"split": "p_fold2"', '"split": "drawn anew"'))
    with pytest.raises(ValueError, match="p_fold2 has another split here"):
        publish(["t"], results, folder)
    assert (folder / "p.provenance.json").read_text() == text
    publish(["t"], results, folder, replace=True)
    assert leaderboard.read("p", folder).fingerprints()["p_fold2"]["split"] == "drawn anew"


def test_what_cannot_be_vouched_for_is_not_written(results):
    table = json.loads((results / "t.json").read_text())["table"]
    publish_table(results, table | {"name": "again"})
    with pytest.raises(ValueError, match="p, ap, one, 8 bits is in two tables"):
        publish(["t", "again"], results, results / "leaderboard")
    blocks = [{**table["blocks"][0], "metric": "ap@2"}]
    publish_table(results, table | {"name": "one_seed", "blocks": blocks, "seeds": [1]})
    with pytest.raises(ValueError, match="8 bits has other seeds in another table"):
        publish(["t", "one_seed"], results, results / "leaderboard")
    path = results / "runs" / "p_fold2" / "two" / "8" / "1" / "run.json"
    path.write_text(path.read_text().replace("a" * 40, "b" * 40 + "+"))
    with pytest.raises(ValueError, match="code that no commit has"):
        publish(["t"], results, results / "leaderboard")
    publish_table(results, table | {"name": "holes", "blocks": [{**table["blocks"][0], "metric": "ndcg"}]})
    with pytest.raises(ValueError, match="p: one, 8 bits is missing: the run has no score named ndcg"):
        publish(["holes"], results, results / "leaderboard")
    assert not (results / "leaderboard").exists()


def test_an_unknown_protocol_has_the_nearest_name(results):
    publish(["t"], results, results / "board" / "leaderboard")
    with pytest.raises(ValueError, match=r"has no protocol 'pp'; did you mean 'p'\? Known: p"):
        leaderboard.read("pp", results / "board" / "leaderboard")


@pytest.mark.parametrize("protocol", SHIPPED)
def test_the_files_of_this_checkout_belong_together(protocol):
    board = leaderboard.read(protocol, ROOT / "leaderboard")
    rows, about = board.tidy, board.about
    assert about["protocol"] == protocol and len(rows)
    assert set(rows["status"]) <= {"done", "refused", "uncoded"}
    scored = rows[rows["status"] == "done"]
    assert scored["mean"].between(0, 1).all()
    assert set(about["methods"]) == set(rows["method"]) - {"uncoded"}
    assert about["runs"] == len(board.runs)
    assert {run["protocol"] for run in board.runs} == set(board.fingerprints())
    # Each row is what its runs say.
    of_cell = {}
    for record in board.records():
        for metric, value in record["metrics"].items():
            key = (record["protocol"], metric, record["method"], record["bits"])
            of_cell.setdefault(key, []).append(value)
    for row in scored.itertuples():
        values = of_cell[row.protocol, row.metric, row.method, row.bits]
        found = [row.mean, row.std, row.ci_low, row.ci_high]
        assert row.seeds == len(values)
        assert found == pytest.approx(list(frames.t_interval(values)), nan_ok=True)
