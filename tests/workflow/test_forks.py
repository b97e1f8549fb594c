"""Jobs as forks of templates: each is as a process of its own would be, and ends as it says."""

import json
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from workflow.scripts.train_and_encode import _Clock

from conftest import ROOT  # isort: skip

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="forks are made on Linux only"),
]

# A job as workflow/scripts/_job.py starts one, and what it does, by its first argument.
JOB = """
import json, os, signal, sys
from pathlib import Path
from workflow import forks

process = os.getpid()
kind, threads, act = sys.argv[1:4]
if (status := forks.run_in_fork(kind, int(threads))) is not None:
    sys.exit(status)
if act == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if act == "fail":
    raise RuntimeError("as a job fails")
if act == "exit":
    sys.exit(int(sys.argv[4]))
from workflow.scripts.train_and_encode import _forget_peak_memory, _peak_memory_mb

_forget_peak_memory()
if act == "allocate":
    bytearray(os.urandom(2**10) * 2**17)
print(json.dumps({
    "process": os.getpid(), "parent": os.getppid(), "imported": sorted({"numba", "torch"} & set(sys.modules)),
    "arguments": sys.argv[1:], "folder": str(Path.cwd()), "variables": dict(os.environ),
    "threads": int(Path("/proc/self/status").read_text().split("Threads:")[1].split()[0]),
    "peak": _peak_memory_mb(),
}))
print("read:", sys.stdin.read(), file=sys.stderr)
"""
# What starts templates, as Snakemake's process does, then jobs, whose ends it tells as lines of JSON.
ENGINE = """
import json, os, subprocess, sys
from workflow import forks

forks.start_templates()
for arguments, variables, folder in json.loads(sys.argv[1]):
    module = ["job"] if arguments[0] in forks.TEMPLATES else []
    command = [sys.executable, "-m", *module, *arguments]
    env = os.environ | (variables or {})
    done = subprocess.run(command, input="given", capture_output=True, text=True, cwd=folder, env=env)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


@pytest.fixture
def jobs(tmp_path):
    """Function: jobs, each (arguments, variables, folder), to their (status, stdout, stderr)."""
    (tmp_path / "job.py").write_text(JOB)

    def run(*asked, **variables):
        env = {key: value for key, value in os.environ.items() if key != "TIEBENCH_FORKS"} | variables
        env["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(tmp_path)])
        listed = json.dumps([[*words, *[None] * (3 - len(words))] for words in asked])
        command = [sys.executable, "-c", ENGINE, listed]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
        assert not done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def test_a_fork_has_what_its_job_was_given(jobs, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    first = ["kernels", "1", "tell", "a b", "é"], {"GIVEN": "1"}, str(tmp_path / "elsewhere")
    found = []
    for status, output, errors in jobs(first, (["kernels", "1", "tell"],)):
        assert status == 0
        assert errors == "read: given\n"
        found.append(json.loads(output))
    one, other = found
    assert one["arguments"] == first[0]
    assert one["folder"] == first[2]
    assert one["variables"]["GIVEN"] == "1"
    assert one["variables"]["OMP_NUM_THREADS"] == "1"
    assert "TIEBENCH_FORKS" not in one["variables"]
    assert one["threads"] == 1
    # Nothing of the first job is left in the second, of the same template.
    assert one["parent"] == other["parent"]
    assert one["process"] != other["process"]
    assert "GIVEN" not in other["variables"]
    assert other["arguments"] == ["kernels", "1", "tell"]
    assert other["folder"] == str(tmp_path)
    # A run.json names the version of torch if its method uses torch.
    assert one["imported"] == ["numba"]


def test_a_job_ends_as_its_fork_ends(jobs):
    ends = (["exit", "3"], ["kill"], ["fail"])
    exit_, killed, failed = jobs(*((["kernels", "1", *end],) for end in ends))
    assert exit_ == [3, "", ""]
    assert killed == [128 + 9, "", ""]
    assert failed[0] == 1
    assert failed[2].splitlines()[-1] == "RuntimeError: as a job fails"


def test_a_job_that_ends_before_it_asks_for_a_fork_ends_alone(jobs, tmp_path):
    (tmp_path / "hasty.py").write_text(
        "import os, socket; from workflow import forks\n"
        "token = os.environ[forks.VARIABLE].split()[0]\n"
        'socket.socket(socket.AF_UNIX).connect(forks._address(token, "kernels"))'
    )
    _, (status, output, errors) = jobs((["hasty"],), (["kernels", "1", "tell"],))
    assert (status, errors) == (0, "read: given\n")
    assert json.loads(output)["imported"] == ["numba"]  # it was forked


def test_an_error_is_one_line_and_in_the_log(jobs, tmp_path):
    words = ["workflow.scripts.score_codes", "--log", "log", "--folder", "f", "--runs", "8/0"]
    words += ["--dataset", "absent", "--protocol-folder", "absent"]
    said = []
    for variables in ({}, {"TIEBENCH_FORKS": "off"}):
        ((status, output, errors),) = jobs((words,), **variables)
        assert (status, output) == (1, "")
        (line,) = errors.splitlines()
        assert line.startswith("error: ")
        logged = (tmp_path / "log").read_text().splitlines()
        assert logged[-1].endswith(f"ERROR {line}")
        said.append(line)
        assert (tmp_path / "log.traceback").exists()
        (tmp_path / "log").unlink()
    assert said[0] == said[1]


def test_the_peak_memory_of_a_fork_is_its_own(jobs):
    ended = jobs((["kernels", "1", "allocate"],), (["kernels", "1", "tell"],))
    allocated, told = (json.loads(output)["peak"] for _, output, _ in ended)
    assert 100 < allocated - told < 300  # of 128 MB, and once more as they are copied


@pytest.mark.parametrize(
    ("kind", "threads", "variables"),
    [
        ("kernels", "2", {}),
        ("kernels", "1", {"TIEBENCH_FORKS": "off"}),
        ("kernels", "1", {"TIEBENCH_FORKS": "0123456789abcdef /another/python"}),
    ],
)
def test_a_job_without_a_template_does_its_work_itself(jobs, kind, threads, variables):
    ((status, output, _),) = jobs(([kind, threads, "tell"],), **variables)
    assert status == 0
    assert json.loads(output)["imported"] == []


@pytest.mark.parametrize(
    ("method", "threads", "waits"),
    [
        (SimpleNamespace(), 1, False),
        (SimpleNamespace(device="cpu"), 1, False),
        (SimpleNamespace(device="cpu"), 2, True),
        (SimpleNamespace(device="cuda"), 1, True),
    ],
)
def test_seconds_of_one_thread_of_a_processor_leave_out_that_it_waits(method, threads, waits):
    clock = _Clock(method, threads)
    with clock("fit"):
        time.sleep(0.2)
    assert (clock.seconds["fit"] >= 0.2) == waits
