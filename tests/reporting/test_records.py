"""Published results read back: frames of all scores from runs that are written by hand."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from leaderboards import make_run
from models import block

from reporting import load_results
from reporting.records.read import published_table, published_tables, table_results, table_runs
from reporting.tables.model import Table

TABLE = {"name": "small", "methods": ["itq", "dpsh"], "seeds": [0, 1]}
TABLE["blocks"] = [block(bits=[8]), block(metric="precision_radius_2", bits=[8], methods=["itq"])]
REFUSED = [{"protocol": "digits", "method": "dpsh", "bits": 8, "reason": "it needs labels"}]
ITEMS = np.array([7, 2, 5])


@pytest.fixture
def folder(tmp_path):
    """A table of two methods, one of them refused, and its split of three queries."""
    settings = {"table": TABLE, "published": [], "refused": REFUSED, "claims": []}
    (tmp_path / "results").mkdir()
    (tmp_path / "results/small.json").write_text(json.dumps(settings))
    (tmp_path / "results/small.tidy.csv").write_text("table\n")
    for seed in (0, 1):
        middle = np.array([0.25, 0.5, 0.75]) + seed / 8
        arrays = {"ap": middle, "ap_min": middle - 0.125, "ap_max": middle + 0.125}
        arrays["precision_radius_2"] = np.array([1.0, 0.0, 0.5])
        prints = {"dataset": "of items", "split": "of split"}
        more = {"seconds": 1.5 + seed, "fingerprints": prints}
        make_run(tmp_path / "results", "digits", "itq", 8, seed, arrays, **more)
    protocol = tmp_path / "resources/protocols/digits"
    protocol.mkdir(parents=True)
    np.savez(protocol / "split.npz", query=ITEMS, database=np.arange(9), training=np.arange(9))
    (protocol / "split.json").write_text(json.dumps({"fingerprint": "of split"}))
    for name, fingerprint in (("another", "of others"), ("digits", "of items")):
        dataset = tmp_path / "resources/datasets" / name
        dataset.mkdir(parents=True)
        (dataset / "dataset.json").write_text(json.dumps({"fingerprint": fingerprint}))
        np.save(dataset / "ids.npy", np.array([f"{name}-{index}" for index in range(9)]))
    return tmp_path


def load(folder, **options):
    return load_results("small", results=folder / "results", resources=folder / "resources", **options)


def test_one_row_per_run_and_metric(folder):
    frame = load(folder)
    assert list(frame.columns) == [
        "table", "protocol", "metric", "method", "bits", "seed", "score", "min", "max", "seconds", "memory",
        "status", "reason",
    ]  # fmt: skip
    cells = [("ap", "itq", "done"), ("ap", "dpsh", "refused"), ("precision_radius_2", "itq", "done")]
    assert frame[["metric", "method", "status", "seed"]].values.tolist() == [
        [*cell, seed] for cell in cells for seed in (0, 1)
    ]
    done = frame[(frame["metric"] == "ap") & (frame["method"] == "itq")]
    assert done[["score", "min", "max"]].values.tolist() == [[0.5, 0.375, 0.625], [0.625, 0.5, 0.75]]
    assert done["seconds"].tolist() == [1.5, 2.5] and done["memory"].tolist() == [100.0, 100.0]
    assert frame["min"].isna().tolist() == [False, False, True, True, True, True]
    assert frame["reason"].tolist() == ["", "", "it needs labels", "it needs labels", "", ""]
    refused = frame[frame["status"] == "refused"]
    assert refused[["score", "min", "max", "seconds", "memory"]].isna().all(axis=None)
    assert frame["bits"].dtype == frame["seed"].dtype == np.int64


def test_one_row_per_query_with_its_item_and_id(folder):
    frame = load(folder, per_query=True)
    done = frame[(frame["metric"] == "ap") & (frame["seed"] == 1) & (frame["method"] == "itq")]
    assert done["score"].tolist() == [0.375, 0.625, 0.875]
    assert done["max"].tolist() == [0.5, 0.75, 1.0]
    assert done["query"].tolist() == [0, 1, 2]
    assert done["item"].tolist() == [7, 2, 5]
    assert done["item_id"].tolist() == ["digits-7", "digits-2", "digits-5"]
    refused = frame[frame["status"] == "refused"]
    assert len(refused) == 2 and refused["query"].isna().all() and refused["score"].isna().all()
    assert len(frame) == 3 * 4 + 2
    # The mean of the queries is the run's score.
    means = frame[frame["status"] == "done"].groupby(["metric", "method", "bits", "seed"])["score"].mean()
    runs = load(folder)
    runs = runs[runs["status"] == "done"].set_index(["metric", "method", "bits", "seed"])["score"]
    pd.testing.assert_series_equal(means.sort_index(), runs.sort_index())


def test_scores_per_query_are_read_of_what_claims_name_too(folder):
    sides = {"left": {"metric": ["ap_min", "ap"]}, "right": {"metric": "ap_max"}}
    for claims, more in (([], []), ([{"metric": "recall@2"}, sides], ["ap_max", "ap_min", "recall@2"])):
        settings = {"table": TABLE, "refused": REFUSED, "claims": [{"claims": claims}]}
        for seed in (0, 1):
            path = folder / f"results/runs/digits/itq/8/{seed}/per_query.npz"
            np.savez(path, **dict(np.load(path)) | {"recall@2": ITEMS / 8})
        found = table_results(Table.from_json(settings), folder / "results", ["per_query"])
        assert all(
            sorted(run.per_query) == sorted(["ap", "precision_radius_2", *more])
            for run in found
            if run.per_query
        )
        assert sum(bool(run.per_query) for run in found) == 2


def test_a_dataset_without_ids_has_the_index_as_id_and_without_resources_none(folder):
    (folder / "resources/datasets/digits/ids.npy").unlink()
    assert set(load(folder, per_query=True)["item_id"]) == {"7", "2", "5", ""}
    frame = load_results("small", folder / "results", per_query=True, resources=folder / "nowhere")
    assert frame["item"].isna().all() and set(frame["item_id"]) == {""}
    assert frame["query"].notna().sum() == 12


def test_runs_of_another_split_are_not_given_items(folder):
    (folder / "resources/protocols/digits/split.json").write_text('{"fingerprint": "of a later split"}')
    with pytest.raises(ValueError, match=r"split\.npz is not the split that the runs of digits"):
        load(folder, per_query=True)
    assert len(load(folder)) == 6


def test_a_missing_run_and_a_missing_score_have_their_reason(folder):
    (folder / "results/runs/digits/itq/8/0/scores.json").unlink()
    path = folder / "results/runs/digits/itq/8/1/scores.json"
    path.write_text(json.dumps({"status": "done", "reason": None, "metrics": {"ap": 0.5}, "curves": {}}))
    frame = load(folder)
    assert frame["status"].tolist() == ["missing", "done", "refused", "refused", "missing", "missing"]
    assert frame["reason"][0].endswith("scores.json does not exist")
    assert frame["reason"][5] == "the run has no score named precision_radius_2"
    assert math.isnan(frame["min"][1])


def test_a_deleted_run_under_a_finished_table_says_how_to_make_it_again(folder):
    path = folder / "results/runs/digits/itq/8/1/scores.json"
    path.unlink()
    table = published_table("small", folder / "results")
    with pytest.raises(FileNotFoundError, match="does not exist; to make it again: snakemake") as caught:
        table_runs(table, folder / "results/runs")
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_table_is_one_line_with_the_nearest_name(folder):
    assert published_tables(folder / "results") == ["small"]
    with pytest.raises(ValueError, match=r"no table 'smal'; did you mean 'small'\?.* -- \S+/smal\.csv\Z"):
        load_results("smal", folder / "results")


def test_damaged_settings_are_named(folder):
    (folder / "results/small.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"small\.json is not the settings of a table; delete it"):
        load(folder)
