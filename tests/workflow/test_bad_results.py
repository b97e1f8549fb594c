"""Results that were edited, are half there, or find no place: one line of the real Snakefile, then as new."""

import shutil
import subprocess
import sys

import numpy as np
import pytest

pytestmark = pytest.mark.thorough

TABLE = "results/tiny.csv"


def remove_table(laboratory):
    for path in (laboratory.directory / "results").glob("tiny.*"):
        path.unlink()


def run_folder(laboratory, method="lsh", bits=8, seed=0):
    return laboratory.directory / "results" / "runs" / "tiny" / method / str(bits) / str(seed)


def error_of(done):
    """The one line that a run ended in, which jobs beside one another may each say."""
    assert done.returncode != 0
    assert "Traceback" not in done.stdout + done.stderr
    (line,) = {line for line in done.stderr.splitlines() if line.startswith("error: ")}
    return line


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-40])


def of_other_bits(path):
    with np.load(path) as codes:
        arrays = dict(codes) | {"bits": 7}
    np.savez(path, **arrays)


DELETE = "; delete it to regenerate it"
# What a run's file is made -> words of the line.
DAMAGED = {
    "run.json cut short": ("run.json", cut_short, ["lsh/8/0/run.json: invalid JSON", DELETE]),
    "codes.npz of other bits": (
        "codes.npz",
        of_other_bits,
        ["lsh/8/0/codes.npz has 7 bits, the run has 8", DELETE],
    ),
}


@pytest.mark.parametrize(("name", "damage", "words"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_of_a_run_is_one_line_and_removing_it_makes_it_whole(
    laboratory, prepared, name, damage, words
):
    remove_table(laboratory)
    path = run_folder(laboratory) / name
    damage(path)
    others = {
        place: stamp
        for place, stamp in laboratory.stamps("results/runs/**/*").items()
        if not place.startswith("results/runs/tiny/lsh/")
    }
    line = error_of(laboratory.run(TABLE))
    assert [word for word in words if word not in line] == [], line
    after = laboratory.stamps("results/runs/**/*")
    assert {place: after.get(place) for place in others} == others
    assert not list((laboratory.directory / "results").glob("tiny.*"))
    path.unlink(missing_ok=True)
    laboratory.made(TABLE)
    assert laboratory.tables() == prepared.tables()


# Other results: file -> words of the line of the job that reads it.
READ = {
    "results/runs/tiny/lsh/8/0/scores.json": ["lsh/8/0/scores.json: invalid JSON"],
    "resources/protocols/tiny/split.npz": ["tiny/split.npz is not a readable .npz"],
    "resources/protocols/tiny/features.npy": ["tiny/features.npy: not a NumPy array"],
}


@pytest.mark.parametrize(("name", "words"), READ.items(), ids=READ.keys())
def test_a_damaged_result_is_made_again_once_it_is_deleted(laboratory, prepared, name, words):
    remove_table(laboratory)
    path = laboratory.directory / name
    cut_short(path)
    line = error_of(laboratory.run(TABLE))
    assert [word for word in [*words, DELETE] if word not in line] == [], line
    path.unlink()
    laboratory.made(TABLE)
    assert laboratory.tables() == prepared.tables()


def test_edited_codes_are_scored_again(laboratory, prepared):
    """Codes that fit, but are others: the scores of those that were there before must not stand."""
    path = run_folder(laboratory) / "codes.npz"
    with np.load(path) as codes:
        arrays = dict(codes)
    np.savez(path, **(arrays | {"database": arrays["database"][::-1]}))
    laboratory.made(TABLE)
    before, after = (
        (place.directory / "results" / "runs" / "tiny" / "lsh" / "8" / "0" / "scores.json").read_bytes()
        for place in (prepared, laboratory)
    )
    assert before != after
    assert laboratory.tables() != prepared.tables()


@pytest.fixture
def small_disk(laboratory):
    """mount(options): results/ on a disk of its own, where this user may mount one."""
    results = laboratory.directory / "results"
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
    line = error_of(laboratory.run(TABLE, options=["--cores", "1"]))
    assert "No space left on device: 'results/" in line
    results = laboratory.directory / "results"
    assert not [path for path in results.rglob("*") if path.suffix in (".npz", ".json", ".csv", ".jsonl")]
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
