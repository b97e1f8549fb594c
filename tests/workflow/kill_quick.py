"""Kill the quick table at random, again and again, and compare what comes out of it in the end.

    python tests/workflow/kill_quick.py --kills 30

Not a test of every day: a table is made without disturbance; then again, and every few seconds something
happens to it, chosen at random:

* kill: SIGKILL to one process of it, the engine, a job or a job's child;
* kill all: SIGKILL to all of its processes at once, as when a machine dies;
* terminate, interrupt: SIGTERM or Ctrl-C to the engine;
* disk full: the file system of results/ is full for a while (needs the right to mount a tmpfs).

Each time the same command is given again. Whenever the table is finished it must have the bytes of the
undisturbed one; then its results are removed, and it continues until the requested number of kills.
"""

import argparse
import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".snakemake", "results", "resources", "*.pyc")
CAPACITY = 128 << 20  # of the file system of results/
LONGEST = 3600  # seconds that an undisturbed table may take


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0, help="of what happens when")
    parser.add_argument("--target", default="results/quick.csv")
    parser.add_argument("--longest", type=float, default=25, help="seconds between two kills, at most")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tiebench-kills-") as place:
        checkout = Path(place, "checkout")
        shutil.copytree(ROOT, checkout, ignore=LEFT_OUT)
        (checkout / "results").mkdir()
        mounted = _mount(checkout / "results")
        try:
            kinds = ["kill", "kill", "kill all", "terminate", "interrupt", *["disk full"] * mounted]
            return _harass(checkout, options, draw, kinds, begin)
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", checkout / "results"], check=False)


def _harass(checkout, options, draw, kinds, begin):
    started = _start(checkout, options.target)
    try:
        failed = started.wait(LONGEST)
    finally:
        _end(started)
    if failed:
        print("the undisturbed table failed", file=sys.stderr)
        return 1
    expected = _tables(checkout)
    print(f"undisturbed: {len(expected)} CSV files in {time.monotonic() - begin:.0f} s", flush=True)
    _clear(checkout)
    counts, finished = Counter(), 0
    while counts.total() < options.kills or not finished:
        running = _start(checkout, options.target)
        try:
            # After the last kill it runs to its end.
            left = draw.uniform(0.5, options.longest) if counts.total() < options.kills else LONGEST
            code = running.wait(left)
        except subprocess.TimeoutExpired:
            kind = draw.choice(kinds)
            counts[kind] += 1
            _disturb(kind, running, checkout, draw)
            print(f"{counts.total():3} {kind}", flush=True)
            continue
        finally:
            _end(running)
        if code:
            print("a table that was not disturbed failed", file=sys.stderr)
            return 1
        found = _tables(checkout)
        if found != expected:
            wrong = sorted(name for name in expected if found.get(name) != expected[name])
            print(f"after {dict(counts)}: other bytes in {', '.join(wrong)}", file=sys.stderr)
            return 1
        finished += 1
        print(f"    finished, the same bytes ({finished})", flush=True)
        _clear(checkout)
    kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(counts.items()))
    seconds = time.monotonic() - begin
    print(f"{counts.total()} kills ({kinds}), {finished} tables of the same bytes, {seconds:.0f} s")
    return 0


def _start(checkout, target):
    """The command that a user gives, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "2", target],
        cwd=checkout,
        start_new_session=True,
        # In the background of a shell, Ctrl-C would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _disturb(kind, running, checkout, draw):
    if kind == "kill":
        engine = psutil.Process(running.pid)
        with_children = [engine, *engine.children(recursive=True)]
        draw.choice(with_children).kill()
    elif kind == "kill all":
        os.killpg(running.pid, signal.SIGKILL)
    elif kind in ("terminate", "interrupt"):
        running.send_signal(signal.SIGTERM if kind == "terminate" else signal.SIGINT)
    else:
        filler = checkout / "results" / ".filler"
        try:
            with filler.open("wb") as file:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
        except OSError:
            pass
        time.sleep(draw.uniform(1, 10))
        filler.unlink()
    if kind == "kill":  # of one job: the others go on, and the engine ends by itself
        time.sleep(draw.uniform(0, 5))


def _end(running):
    """See to it that nothing of a command is left: a machine that died has no processes, either."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        running.wait(20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _tables(checkout):
    files = sorted((checkout / "results").glob("*.csv"))
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _clear(checkout):
    for path in (checkout / "results").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _mount(folder):
    """Whether results/ now is a small file system of its own."""
    size = f"size={CAPACITY}"
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode:
        print("no right to mount a file system: the disk is not filled", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
