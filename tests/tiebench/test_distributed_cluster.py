"""A database in many files on a cluster of two processes, and in a bucket that moto serves on this machine.

The cluster and the protocol of S3 are real; there is no network between machines, and no cloud.
"""

import os
import re
import signal

import numpy as np
import pytest
from part_databases import arrays, assert_same_bytes, count, needed, whole, write, write_queries
from refusals import refused

from tiebench.__main__ import main
from tiebench.counting import distributed, part_files

BUCKET = "s3://database"


@pytest.fixture(scope="module")
def s3():
    """A file system of an empty bucket; the environment gives its address to the processes of the cluster."""
    needed("moto")
    fsspec = needed("fsspec")
    needed("s3fs")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{address}:{port}")
        names = {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "DEFAULT_REGION": "us-east-1"}
        for name, value in names.items():
            patch.setenv(f"AWS_{name}", value)
        files = fsspec.filesystem("s3")
        files.mkdir(BUCKET)
        yield files
    server.stop()


@pytest.fixture(scope="module")
def cluster(s3):
    dask = needed("distributed")
    with dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as made:
        yield made


@pytest.fixture
def client(cluster):
    from distributed import Client

    with Client(cluster) as made:
        made.wait_for_workers(2)
        yield made


@pytest.fixture
def bucket(s3):
    """Writes a database into the bucket; returns its patterns."""

    def put(folder, made, form):
        write(folder, made, form)
        s3.put(str(folder), f"{BUCKET}/{form}", recursive=True)
        patterns = f"{BUCKET}/{form}/part*"
        return (f"{patterns}.codes.npy", f"{patterns}.labels.npy") if form == "npy" else (patterns, None)

    yield put
    s3.rm(s3.find(BUCKET))


@pytest.mark.parametrize("form", ["npz", "npy", "parquet", "zarr"])
def test_workers_count_a_bucket_to_the_same_bytes(tmp_path, client, bucket, form):
    made = arrays(labels="several" if form == "parquet" else "classes")
    paths = bucket(tmp_path, made, form)
    seen = []
    found = count(made, paths, client=client, part_items=60, progress=seen.append)
    assert_same_bytes(found, whole(made))
    assert seen[-1].parts == seen[-1].of_parts == len(seen) and seen[-1].items == 300
    assert_same_bytes(count(made, paths, part_items=60), whole(made))


def test_the_parts_of_a_killed_worker_are_counted_again(tmp_path, cluster, client):
    made = arrays(items=24_000, queries=300)
    paths = write(tmp_path, made, "npy", files=2)
    first, killed = {worker.pid for worker in cluster.workers.values()}, []

    def progress(now):
        if now.parts == 3:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    keep = tmp_path / "kept"
    found = count(made, paths, client=client, part_items=1000, keep=keep, progress=progress)
    assert_same_bytes(found, whole(made))
    assert len(killed) == 1 and killed[0] in first
    assert len(list(keep.iterdir())) == 24


def test_an_interrupted_count_on_workers_resumes(tmp_path, client):
    made = arrays()
    paths, keep = write(tmp_path, made, "npy"), tmp_path / "kept"

    def stop(now):
        if now.parts == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count(made, paths, client=client, part_items=30, keep=keep, progress=stop)
    kept, seen = sorted(keep.iterdir()), []
    assert len(kept) in (3, 4)  # the interruption came before the fourth was told, and after it was kept
    times = [file.stat().st_mtime_ns for file in kept]
    found = count(made, paths, client=client, part_items=30, keep=keep, progress=seen.append)
    assert_same_bytes(found, whole(made))
    assert seen[-1].kept == len(kept) and [file.stat().st_mtime_ns for file in kept] == times


def test_errors_of_workers_are_one_line_that_names_the_file(tmp_path, client, bucket, s3):
    made = arrays()
    paths = bucket(tmp_path, made, "npz")
    wrong = {"database": made["database"][:, :2], "database_labels": made["database_labels"]}
    np.savez(tmp_path / "wrong.npz", **wrong)
    s3.put(str(tmp_path / "wrong.npz"), f"{BUCKET}/npz/part3.npz")
    for given, message in (
        (paths, f"{BUCKET}/npz/part3.npz: database must be packed codes, uint8 of shape (n, 3)"),
        ((f"{BUCKET}/npz/part8.npz", None), f"{BUCKET}/npz/part8.npz: "),
        (("s3://nowhere/part0.npz", None), "s3://nowhere/part0.npz: "),
    ):
        with refused(pattern=f"^{re.escape(message)}"):
            count(made, given, client=client)


def test_a_part_that_no_worker_survives_is_an_error_that_names_its_file():
    needed("distributed")
    from distributed import KilledWorker

    class Future:
        def result(self):
            raise KilledWorker("task", None, 3)

    part = distributed._Part(part_files.PartFile("s3://b/a.npz"), 0, 5, "x")
    with refused("s3://b/a.npz: 4 workers died over it"):
        distributed._result(Future(), part)


def test_the_command_counts_on_a_scheduler(tmp_path, cluster, bucket, capsys, monkeypatch):
    made = arrays()
    pattern, _ = bucket(tmp_path, made, "parquet")
    monkeypatch.chdir(tmp_path)
    write_queries(tmp_path, made)
    assert main(["score", "whole.npz", "--at", "10"]) == 0
    expected = capsys.readouterr().out
    given = ["score-parts", pattern, "--queries", "queries.npz", "--at", "10", "--scheduler"]
    assert main([*given, cluster.scheduler_address]) == 0
    printed = capsys.readouterr()
    assert printed.out == expected and "300 of 300 items" in printed.err


def test_the_command_starts_workers(tmp_path, s3, printed, monkeypatch):
    """Not the cluster of the other tests: one process of its own."""
    needed("distributed")
    made = arrays()
    monkeypatch.chdir(tmp_path)
    write(tmp_path, made, "npz")
    write_queries(tmp_path, made)
    found = printed("score-parts", "part?.npz", "--queries", "queries.npz", "--workers", "1")
    assert found == printed("score", "whole.npz")


def test_a_scheduler_without_workers_is_an_error(tmp_path, capsys, monkeypatch):
    dask = needed("distributed")
    made = arrays(items=20)
    monkeypatch.chdir(tmp_path)
    write(tmp_path, made, "npz")
    write_queries(tmp_path, made)
    with dask.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty:
        address = empty.scheduler_address
        assert main(["score-parts", "part?.npz", "--queries", "queries.npz", "--scheduler", address]) == 1
    assert f"error: {address}: the scheduler has no workers" in capsys.readouterr().err
