"""Modules run in processes of their own: seconds, processor seconds, memory, output."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORES = 2
# The module; its largest memory into a file: ru_maxrss begins with that of the process before it.
_MEASURED = f"""
import pathlib, runpy, sys
sys.path.append({str(ROOT)!r})
from benchmarks.commands import peak_bytes
module, file = sys.argv.pop(1), sys.argv.pop(1)
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    pathlib.Path(file).write_text(str(peak_bytes()))
"""


class Failed(Exception):
    """A program to be timed failed; the message holds its output."""


class Killed(Failed):
    """A program was ended by a signal, `signal`."""

    def __init__(self, message, signal):
        super().__init__(message)
        self.signal = signal


@dataclass(frozen=True)
class Spent:
    """Seconds of wall clock and of processors (descendants included), largest memory, what was printed."""

    wall: float
    processor: float
    megabytes: float
    text: str


def peak_bytes():
    """Largest resident size of this process so far.

    On Linux a child process inherits ru_maxrss of its parent, so VmHWM is preferred.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def timed(folder, module, *arguments, environment=None):
    """Run python -m module in a folder. Raises `Failed`, or `Killed`, with the last lines of what it printed.

    environment: variables; by default those of a user, who limits no threads.
    """
    words = [str(argument) for argument in arguments]
    if environment is None:
        from workflow.forks import THREAD_VARIABLES  # here: the measured process imports this module, too

        # PYTHONPATH would lead to the code of another checkout.
        left_out = {"PYTHONPATH", *THREAD_VARIABLES}
        environment = {key: value for key, value in os.environ.items() if key not in left_out}
    with tempfile.TemporaryFile() as output, tempfile.NamedTemporaryFile("r") as peak:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", _MEASURED, module, peak.name, *words],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text, bytes_at_most = output.read().decode().strip(), peak.read()
    said = f"{module} {' '.join(words)}: {' / '.join(text.splitlines()[-5:])}"
    if process.returncode < 0:
        raise Killed(said, -process.returncode)
    if process.returncode:
        raise Failed(said)
    return Spent(wall, usage.ru_utime + usage.ru_stime, int(bytes_at_most) / 1e6, text)


def python(module, *arguments, **variables):
    """What python -m module prints, in this checkout; see `timed`.

    variables: of the environment, besides those of this process.
    """
    return timed(ROOT, module, *arguments, environment=os.environ | variables).text
