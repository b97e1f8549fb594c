"""Modules run in processes of their own: what they print, and the memory of this one."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# `python -m benchmarks` sets these for itself.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


class Failed(Exception):
    """A program to be timed failed; the message holds its output."""


class Killed(Failed):
    """A program was ended by a signal, `signal`."""

    def __init__(self, message, signal):
        super().__init__(message)
        self.signal = signal


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


def python(module, *arguments, **variables):
    """What python -m module prints, in this checkout. Raises `Failed`, or `Killed`, with its last lines.

    variables: of the environment, besides those of this process.
    """
    words = [str(argument) for argument in arguments]
    made = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=ROOT,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = f"{module} {' '.join(words)}: {' / '.join(made.stdout.splitlines()[-5:])}"
    if made.returncode < 0:
        raise Killed(said, -made.returncode)
    if made.returncode:
        raise Failed(said)
    return made.stdout
