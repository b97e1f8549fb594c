"""python -m benchmarks: what the suite costs beside its peers, as Markdown."""

import argparse
import importlib
import os
import sys
from pathlib import Path

ROOMS = ("evaluation", "losses", "methods", "training", "parts")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time the evaluation, the training losses and the methods beside their peers, on one "
        "thread, and print Markdown tables. About six minutes; nothing else should keep the machine busy.",
    )
    parser.add_argument(
        "rooms", nargs="*", metavar="ROOM", help=f"what to time: {' '.join(ROOMS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: about 40 seconds")
    parser.add_argument("--output", metavar="FILE.md", type=Path, help="write the tables to this file, too")
    options = parser.parse_args(arguments)
    for room in options.rooms:
        if room not in ROOMS:
            parser.error(f"there is no benchmark {room!r}; choose from: {', '.join(ROOMS)}")
    if options.output is not None and not options.output.absolute().parent.is_dir():
        parser.error(f"--output: there is no folder {options.output.parent}")

    # Libraries read these once, when they are imported.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    from benchmarks import report as reporting
    from benchmarks.timing import Disagreement

    report = reporting.Report()
    report.write(reporting.header(threads=1))
    summary = []
    try:
        for room in ROOMS:
            if not options.rooms or room in options.rooms:
                summary += importlib.import_module(f"benchmarks.{room}").run(report, options.quick)
    except Disagreement as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    report.write("## Figures to reach", "Reported, not enforced; meant for a quiet machine.")
    report.rows(["figure", "reach", "seen"], summary)
    if options.output is not None:
        report.save(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
