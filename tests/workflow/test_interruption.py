"""Killed anywhere and started again with the same command, a run ends with the bytes of an uninterrupted one.

A hook outside of the project (sitecustomize on the Python path of the jobs) holds a job at a file that it is
about to publish, so that the kill always strikes at the same place; no test waits for a fixed time.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from conftest import ROOT  # isort: skip

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc"),
]

PATIENCE = 600.0  # seconds until a test gives up: only a broken run comes near

HOOK = """
import os
import pathlib
import sys
import time

module, _, name = os.environ.get("HOLD_AT", ":").partition(":")
if module and {f"workflow.scripts.{module}", "workflow.forks"} & set(sys.orig_argv):
    hold, reached = pathlib.Path(os.environ["HOLD_FILE"]), pathlib.Path(os.environ["HOLD_FILE"] + ".reached")
    plain_replace = os.replace

    def held_replace(source, target, **options):
        job = sys.argv[0].endswith(f"/{module}.py")  # not another one, nor the template of its fork
        there = f"/{os.fspath(target)}".endswith(f"/{name}")  # its name, with or without folders above
        if job and there and hold.exists() and not reached.exists():
            with open(f"{reached}.new", "w") as file:
                file.write(str(os.getpid()))
            plain_replace(f"{reached}.new", reached)
            while hold.exists():
                time.sleep(0.01)
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
    found = {one.pid: one.info for one in psutil.process_iter(["cwd", "cmdline"])}
    return {process: of["cmdline"] for process, of in found.items() if of["cwd"] == str(directory)}


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
            env=laboratory.variables(HOLD_AT=at, HOLD_FILE=self.hold, PYTHONPATH=hooks, **variables),
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
            made = laboratory.directory / path.relative_to(prepared.directory)
            assert made.read_bytes() == path.read_bytes()


# What is missing when the run starts, where its job is killed, and whether in the fork that does the work: or
# in the process that Snakemake started, which waits for it.
KILLS = {
    "third run of a training": (["results/runs/tiny/lsh/11"], "train_and_encode:11/0/run.json", False),
    "scoring, one of two files published": (
        ["results/runs/tiny/lsh/8/*/scores.json", "results/runs/tiny/lsh/8/*/per_query.npz"],
        "score_codes:scores.json",
        True,
    ),
    "writing the table, between its files": ([], "collect_table:tiny.csv", True),
}


@pytest.mark.parametrize(("missing", "at", "fork"), KILLS.values(), ids=KILLS.keys())
def test_a_killed_job_fails_the_run_and_a_rerun_makes_it_whole(laboratory, prepared, missing, at, fork):
    clear(laboratory, "results/tiny.*", *missing)
    with Held(laboratory, at, "results/tiny.csv") as run:
        job = run.job
        if not fork:
            found = processes_in(laboratory.directory).items()
            (job,) = [process for process, words in found if "workflow.scripts.train_and_encode" in words]
            assert job != run.job
        os.kill(job, signal.SIGKILL)
        until(lambda: run.job not in processes_in(laboratory.directory), run.process)
        status, errors = run.ended()
        assert status not in (0, None), errors
    assert not processes_in(laboratory.directory)
    finishes_with_the_same_bytes(laboratory, prepared)


def test_ctrl_c_ends_without_a_traceback_and_a_rerun_makes_it_whole(laboratory, prepared):
    """A terminal sends SIGINT to the whole process group: to Snakemake and to its jobs."""
    clear(laboratory, "results/runs/tiny/lsh/8", "results/tiny.*")
    with Held(laboratory, "train_and_encode:run.json", "results/tiny.csv") as run:
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
    at = "train_and_encode:run.json"
    with Held(laboratory, at, "results/tiny.csv", **variables) as run:
        words = processes_in(laboratory.directory)[run.job]
        assert ("workflow.forks" in words) == (not variables)
        os.kill(run.process.pid, signal.SIGKILL)
        # A job that lived on could write over the files of the rerun.
        until(lambda: not processes_in(laboratory.directory))
        assert run.hold.exists()
    finishes_with_the_same_bytes(laboratory, prepared)


def test_a_second_snakemake_in_one_folder_is_refused_and_the_first_finishes(laboratory, prepared):
    clear(laboratory, "results/tiny.*", "results/runs/tiny/lsh/8")
    with Held(laboratory, "train_and_encode:run.json", "results/tiny.csv") as run:
        before = laboratory.stamps()
        line = laboratory.refused("results/tiny.csv")
        assert "another snakemake is running" in line and str(laboratory.directory) in line
        assert laboratory.stamps() == before
        assert run.process.poll() is None
        run.hold.unlink()
        status, errors = run.ended()
        assert status == 0, errors
    assert laboratory.tables() == prepared.tables()
    assert laboratory.has_nothing_to_do("results/tiny.csv")


WRITERS = {
    "filled": "with filled(sys.argv[1]) as f: (f / 'features.npy').write_text('half')",
    "replaced": "with replaced(sys.argv[1] + '/table.csv') as f: f.write_text('half')",
}


@pytest.mark.parametrize("writer", WRITERS)
def test_what_a_killed_write_left_behind_is_no_result_and_goes_with_the_next_write(tmp_path, writer):
    """Features are gigabytes: what a SIGKILL leaves beside them must not pile up."""
    program = "import sys, time; from tiebench.files import filled, replaced\n" + WRITERS[writer]
    until_killed = program + "; print('in', flush=True); time.sleep(600)"
    for _ in range(2):
        command = [sys.executable, "-c", until_killed, tmp_path]
        killed = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert killed.stdout.readline() == "in\n"
        killed.kill()
        killed.communicate()
        assert [path for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
    subprocess.run([sys.executable, "-c", program, tmp_path], cwd=ROOT, check=True, capture_output=True)
    (file,) = tmp_path.iterdir()
    assert file.name in ("features.npy", "table.csv") and file.read_text() == "half"
