"""Results that were edited, are half there, or find no place: one line of the real Snakefile, then as new."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.thorough

TABLE = "results/tiny.csv"


def remove_table(laboratory):
    for path in laboratory.results.glob("tiny.*"):
        path.unlink()


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-40])


def of_other_bits(path):
    with np.load(path) as codes:
        arrays = dict(codes) | {"bits": 7}
    np.savez(path, **arrays)


RUN = "results/runs/tiny/lsh/8/0"
# What a file is made -> words of the line.
DAMAGED = {
    "run.json cut short": (f"{RUN}/run.json", cut_short, "lsh/8/0/run.json: invalid JSON"),
    "codes.npz of other bits": (f"{RUN}/codes.npz", of_other_bits, "8/0/codes.npz has 7 bits, the run has 8"),
    "split.npz cut": ("resources/protocols/tiny/split.npz", cut_short, "split.npz is not a readable .npz"),
}


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_one_line_and_removing_it_makes_it_whole(laboratory, prepared, name, damage, words):
    remove_table(laboratory)
    path = laboratory.directory / name
    damage(path)
    before = laboratory.stamps("results/runs/tiny/talr_ap/**/*")
    line = laboratory.refused(TABLE)
    assert words in line and "; delete it to regenerate it" in line
    if name.startswith(RUN):
        assert laboratory.stamps("results/runs/tiny/talr_ap/**/*") == before
    assert not list(laboratory.results.glob("tiny.*"))
    path.unlink(missing_ok=True)
    laboratory.made(TABLE)
    assert laboratory.tables() == prepared.tables()


def test_edited_codes_are_scored_again(laboratory, prepared):
    """Codes that fit, but are others: the scores of those that were there before must not stand."""
    path = laboratory.run_folder() / "codes.npz"
    with np.load(path) as codes:
        arrays = dict(codes)
    np.savez(path, **(arrays | {"database": arrays["database"][::-1]}))
    laboratory.made(TABLE)
    assert laboratory.metrics() != prepared.metrics()
    assert laboratory.tables() != prepared.tables()


@pytest.fixture
def small_disk(laboratory):
    """mount(options): results/ on a disk of its own, where this user may mount one."""
    results = laboratory.results
    shutil.rmtree(results)
    results.mkdir()

    def mount(options):
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(results)]
        try:
            done = subprocess.run(command, capture_output=True)
        except FileNotFoundError:
            pytest.skip("there is no mount")
        if done.returncode:
            pytest.skip("this user may not mount")

    yield mount
    subprocess.run(["umount", str(results)], capture_output=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tmpfs is Linux's")
def test_a_full_disk_is_one_line_and_with_more_room_the_run_is_finished(laboratory, prepared, small_disk):
    small_disk("size=24k")
    line = laboratory.refused(TABLE, options=["--cores", "1"])
    assert "No space left on device: 'results/" in line
    assert not [
        path for path in laboratory.results.rglob("*") if path.suffix in (".npz", ".json", ".csv", ".jsonl")
    ]
    small_disk("remount,size=20m")
    laboratory.made(TABLE)
    assert laboratory.tables() == prepared.tables()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="tmpfs is Linux's")
def test_results_that_cannot_be_written_are_told_before_any_job(laboratory, small_disk):
    small_disk("ro")
    done = laboratory.run(TABLE)
    assert done.returncode != 0
    assert "Read-only file system: 'results" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
