"""Scores that ship: what is written of a published table, what is refused, and the files of this checkout."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reporting import frames, health, leaderboard, statistics, table_files
from reporting.__main__ import main
from reporting.records import table_records, uncoded_scores

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.name.removesuffix(".tidy.csv") for path in (ROOT / "leaderboard").glob("*.tidy.csv"))
SIZES = {"p_fold1": 6, "p_fold2": 3}


@pytest.fixture
def results(tmp_path):
    """A published table whose protocol has two folds, with its runs."""
    generator = np.random.default_rng(0)
    for protocol, size in SIZES.items():
        for method in ("one", "two"):
            for seed in (0, 1):
                folder = tmp_path / "runs" / protocol / method / "8" / str(seed)
                folder.mkdir(parents=True)
                ap = generator.random(size)
                np.savez(folder / "per_query.npz", ap=ap)
                scores = {"metrics": {"ap": ap.mean(), "queries": size}, "curves": {}, "status": "done"}
                (folder / "scores.json").write_text(json.dumps(scores | {"reason": None}))
                run = {"protocol": protocol, "method": method, "bits": 8, "seed": seed, "seconds": 1.5}
                run |= {"git_commit": "a" * 40, "versions": {"numpy": "2"}, "device": "cpu", "threads": 1}
                run |= {"fingerprints": {"split": protocol}, "hyperparameters": {"epochs": 3}}
                (folder / "run.json").write_text(json.dumps(run))
        (tmp_path / "uncoded").mkdir(exist_ok=True)
        uncoded = {"metrics": {"ap": size / 10, "queries": size}}
        (tmp_path / "uncoded" / f"{protocol}.json").write_text(json.dumps(uncoded))
    table = {
        "name": "t", "methods": ["one", "two"], "seeds": [0, 1], "folds": {"p": list(SIZES)},
        "protocols": {"p": "The protocol"}, "settings": {"p": {"split": {"kind": "k"}}},
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
    rows, about = leaderboard.read("p", folder)
    own = frames.from_csv((results / "t.tidy.csv").read_text())
    pd.testing.assert_frame_equal(rows[rows["protocol"] == "p"].reset_index(drop=True), own)
    for method in ("one", "two"):
        of = rows[rows["method"] == method].set_index("protocol")["mean"]
        expected = [
            np.mean([np.load(path)["ap"].mean() for path in results.glob(f"runs/{p}/{method}/8/*/*.npz")])
            for p in SIZES
        ]
        assert list(of[list(SIZES)]) == pytest.approx(expected)
        assert of["p"] == pytest.approx(np.average(expected, weights=list(SIZES.values())))
    uncoded = rows[rows["method"] == "uncoded"].set_index("protocol")["mean"]
    assert dict(uncoded) == pytest.approx({"p": 0.5, "p_fold1": 0.6, "p_fold2": 0.3})
    assert about["git_commits"] == ["a" * 40] and about["runs"] == 8 and about["seconds"] == 12.0
    assert about["hyperparameters"] == {"one, 8 bits": [{"epochs": 3}], "two, 8 bits": [{"epochs": 3}]}
    assert [one["split"] for one in about["fingerprints"]] == list(SIZES)
    (folder / "p.tidy.csv").write_text("changed")
    with pytest.raises(ValueError, match="is not the file that"):
        leaderboard.read("p", folder)


def test_what_cannot_be_vouched_for_is_not_written(results):
    table = json.loads((results / "t.json").read_text())["table"]
    publish_table(results, table | {"name": "again"})
    with pytest.raises(ValueError, match="p, ap, one, 8 bits is in two tables"):
        leaderboard.publish(["t", "again"], results, results / "leaderboard")
    path = results / "runs" / "p_fold2" / "two" / "8" / "1" / "run.json"
    path.write_text(path.read_text().replace("a" * 40, "b" * 40 + "+"))
    with pytest.raises(ValueError, match="code that no commit has"):
        leaderboard.publish(["t"], results, results / "leaderboard")
    publish_table(results, table | {"name": "holes", "blocks": [{**table["blocks"][0], "metric": "ndcg"}]})
    with pytest.raises(ValueError, match="p: one, 8 bits is missing: the run has no score named ndcg"):
        leaderboard.publish(["holes"], results, results / "leaderboard")
    assert not (results / "leaderboard").exists()


@pytest.mark.parametrize("protocol", SHIPPED)
def test_the_files_of_this_checkout_belong_together(protocol):
    rows, about = leaderboard.read(protocol, ROOT / "leaderboard")
    assert about["protocol"] == protocol and len(rows)
    assert set(rows["status"]) <= {"done", "refused", "uncoded"}
    scored = rows[rows["status"] == "done"]
    assert scored["mean"].between(0, 1).all() and (scored["seeds"] == len(about["seeds"])).all()
