"""Killed anywhere and started again with the same command, a run ends with the bytes of an uninterrupted one.

A hook outside of the project (sitecustomize on the Python path of the jobs) holds a job at a file that it is
about to write, so that the kill always strikes at the same place; no test waits for a fixed time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc"),
]

PATIENCE = 600.0  # seconds until a test gives up: only a broken run comes near

HOOK = """
import io
import os
import pathlib
import sys
import time

module, action, name = os.environ.get("HOLD_AT", "::").split(":")
if module and {f"workflow.scripts.{module}", "workflow.forks"} & set(sys.orig_argv):
    hold, reached = pathlib.Path(os.environ["HOLD_FILE"]), pathlib.Path(os.environ["HOLD_FILE"] + ".reached")
    plain_open, plain_replace = io.open, os.replace

    def wait(path):
        job = sys.argv[0].endswith(f"/{module}.py")  # not another one, nor the template of its fork
        there = f"/{os.fspath(path)}".endswith(f"/{name}")  # a file's name, with folders above it or without
        if job and there and hold.exists() and not reached.exists():
            with plain_open(f"{reached}.new", "w") as file:
                file.write(str(os.getpid()))
            plain_replace(f"{reached}.new", reached)
            while hold.exists():
                time.sleep(0.01)

    if action == "open":

        def held_open(file, *arguments, **options):
            opened = plain_open(file, *arguments, **options)
            if isinstance(file, (str, os.PathLike)):
                wait(file)
            return opened

        io.open = held_open
    else:

        def held_replace(source, target, **options):
            wait(target)
            return plain_replace(source, target, **options)

        os.replace = held_replace
"""


def until(condition, process=None):
    """The first true value of condition(), polled; fails when `process` ends before."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        if process is not None and process.poll() is not None:
            raise AssertionError(f"ended before: {process.communicate()}")
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def processes_in(directory):
    """Process id -> command line of what runs in a folder (and is not a zombie)."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "cwd").readlink() == directory:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode().split("\0")
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return {process: words for process, words in found.items() if words != [""]}


class Held:
    """A snakemake, one of whose jobs waits at the file that HOLD_AT names; ends with the block."""

    def __init__(self, laboratory, at, *targets, **variables):
        hooks = laboratory.place / "hooks"
        hooks.mkdir(exist_ok=True)
        (hooks / "sitecustomize.py").write_text(HOOK)
        self.hold = laboratory.place / "hold"
        self.hold.touch()
        self.reached = laboratory.place / "hold.reached"
        self.laboratory = laboratory
        self.process = subprocess.Popen(
            laboratory.command(*targets),
            cwd=laboratory.place,
            env=laboratory.variables(
                HOLD_AT=at, HOLD_FILE=str(self.hold), PYTHONPATH=str(hooks), **variables
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # Tests that run in the background of a shell inherit that Ctrl-C is ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    def __enter__(self):
        try:
            until(self.reached.exists, self.process)
            self.job = int(self.reached.read_text())
            assert self.job in processes_in(self.laboratory.directory)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.hold.unlink(missing_ok=True)
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own: no other processes
        self.process.communicate()

    def ended(self):
        """Exit status and stderr of the snakemake, once it ends by itself."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, errors


def clear(laboratory, *patterns):
    """Remove results, so that a run has them to make."""
    for pattern in patterns:
        found = list(laboratory.directory.glob(pattern))
        assert found
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def finishes_with_the_same_bytes(laboratory, prepared):
    laboratory.made("results/tiny.csv")
    assert laboratory.tables() == prepared.tables()
    for name in ("codes.npz", "model.npz", "scores.json", "per_query.npz"):
        paths = sorted(prepared.directory.glob(f"results/runs/**/{name}"))
        assert len(paths) == 8
        for path in paths:
            assert (
                laboratory.directory / path.relative_to(prepared.directory)
            ).read_bytes() == path.read_bytes()


# What is missing when the run starts -> where its job is killed.
KILLS = {
    "training, before its first epoch": (
        ["results/runs/tiny/talr_ap/8", "results/tiny.*"],
        "train_and_encode:open:training.jsonl",
    ),
    "training, in the third of the four runs of its job": (
        ["results/runs/tiny/lsh/11", "results/tiny.*"],
        "train_and_encode:replace:11/0/run.json",
    ),
    "scoring, one of two files published": (
        [
            "results/runs/tiny/lsh/8/*/scores.json",
            "results/runs/tiny/lsh/8/*/per_query.npz",
            "results/tiny.*",
        ],
        "score_codes:replace:scores.json",
    ),
    "writing the table, between its files": (["results/tiny.*"], "collect_table:replace:tiny.csv"),
}


@pytest.mark.parametrize(("missing", "at"), KILLS.values(), ids=KILLS.keys())
def test_a_killed_job_fails_the_run_and_a_rerun_makes_it_whole(laboratory, prepared, missing, at):
    clear(laboratory, *missing)
    with Held(laboratory, at, "results/tiny.csv") as run:
        os.kill(run.job, signal.SIGKILL)
        status, errors = run.ended()
        assert status not in (0, None), errors
    assert not processes_in(laboratory.directory)
    finishes_with_the_same_bytes(laboratory, prepared)


# What is missing when the run starts -> where its job is when Ctrl-C comes.
INTERRUPTIONS = {
    "in training": (
        ["results/runs/tiny/lsh/8", "results/tiny.*"],
        "train_and_encode:open:training.jsonl",
    ),
    "in writing the table": (["results/tiny.*"], "collect_table:replace:tiny.csv"),
}


@pytest.mark.parametrize(("missing", "at"), INTERRUPTIONS.values(), ids=INTERRUPTIONS.keys())
def test_ctrl_c_ends_without_a_traceback_and_a_rerun_makes_it_whole(laboratory, prepared, missing, at):
    """A terminal sends SIGINT to the whole process group: to Snakemake and to its jobs."""
    clear(laboratory, *missing)
    with Held(laboratory, at, "results/tiny.csv") as run:
        os.killpg(run.process.pid, signal.SIGINT)
        status, errors = run.ended()
    assert status not in (0, None)
    assert "Traceback" not in errors
    assert [line for line in errors.splitlines() if line.startswith("error: ")] in (
        ["error: interrupted"],
        [],  # Snakemake was faster, and ended the job
    )
    until(lambda: not processes_in(laboratory.directory))
    left = [path.name for path in laboratory.directory.glob("results/**/*") if path.name.startswith(".")]
    assert left == []
    finishes_with_the_same_bytes(laboratory, prepared)


@pytest.mark.parametrize("variables", [{}, {"TIEBENCH_FORKS": "off"}], ids=["fork", "no fork"])
def test_a_killed_snakemake_takes_its_jobs_along_and_needs_no_unlocking(laboratory, prepared, variables):
    """The job is held between the codes that it has published and run.json."""
    clear(laboratory, "results/tiny.*", "results/runs/tiny/lsh/8")
    at = "train_and_encode:replace:run.json"
    with Held(laboratory, at, "results/tiny.csv", **variables) as run:
        words = processes_in(laboratory.directory)[run.job]
        assert ("workflow.forks" in words) == (not variables)
        os.kill(run.process.pid, signal.SIGKILL)
        # A job that lived on could write over the files of the rerun.
        until(lambda: not processes_in(laboratory.directory))
        assert run.hold.exists()
    finishes_with_the_same_bytes(laboratory, prepared)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_job_that_is_ended_takes_its_fork_along(laboratory, prepared, number):
    """The process that Snakemake started, which waits for the fork that does the work."""
    clear(laboratory, "results/tiny.*", "results/runs/tiny/lsh/8")
    with Held(laboratory, "train_and_encode:replace:run.json", "results/tiny.csv") as run:
        found = processes_in(laboratory.directory).items()
        (job,) = [process for process, words in found if "workflow.scripts.train_and_encode" in words]
        assert job != run.job
        os.kill(job, number)
        until(lambda: run.job not in processes_in(laboratory.directory), run.process)
        status, errors = run.ended()
        assert status not in (0, None), errors
    assert not processes_in(laboratory.directory)
    finishes_with_the_same_bytes(laboratory, prepared)


def test_a_second_snakemake_in_one_folder_is_refused_and_the_first_finishes(laboratory, prepared):
    clear(laboratory, "results/tiny.*", "results/runs/tiny/lsh/8")
    with Held(laboratory, "train_and_encode:replace:run.json", "results/tiny.csv") as run:
        before = laboratory.stamps()
        second = laboratory.run("results/tiny.csv")
        assert second.returncode != 0
        assert "another snakemake is running" in second.stderr
        assert str(laboratory.directory) in second.stderr
        assert "Traceback" not in second.stderr
        assert laboratory.stamps() == before
        assert run.process.poll() is None
        run.hold.unlink()
        status, errors = run.ended()
        assert status == 0, errors
    assert laboratory.tables() == prepared.tables()
    assert "Nothing to be done" in laboratory.made("results/tiny.csv").stderr


WRITERS = {
    "filled": "with filled(sys.argv[1]) as f: (f / 'features.npy').write_text('half')",
    "replaced": "with replaced(sys.argv[1] + '/table.csv') as f: f.write_text('half')",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_killed_write_left_behind_is_no_result_and_goes_with_the_next_write(tmp_path, writer):
    """Features are gigabytes: what a SIGKILL leaves beside them must not pile up."""
    start = "import sys, time; from tiebench.files import filled, replaced\n" + WRITERS[writer]
    until_killed = start + "; print('in', flush=True); time.sleep(600)"
    command = [sys.executable, "-c"]
    root = Path(__file__).parents[2]
    for _ in range(2):
        killed = subprocess.Popen(
            [*command, until_killed, tmp_path],
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert killed.stdout.readline() == "in\n"
        killed.kill()
        killed.communicate()
        assert not [
            path for path in tmp_path.rglob("*") if not path.relative_to(tmp_path).parts[0].startswith(".")
        ]
    subprocess.run([*command, start, tmp_path], cwd=root, check=True, capture_output=True)
    (name,) = [path.name for path in tmp_path.iterdir()]
    assert name in ("features.npy", "table.csv")
    assert (tmp_path / name).read_text() == "half"
