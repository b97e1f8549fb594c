"""python -m benchmarks: what the suite costs beside its peers, as Markdown."""

import argparse
import importlib
import os
import sys
from pathlib import Path

ROOMS = {
    "evaluation": "codes to scores, beside published libraries, compiled peers and the machine's limits",
    "losses": "training losses with their gradient, beside plain autograd and the paper's formulation",
    "methods": "the step that each method's training spends its time in, beside its usual form",
    "encoding": "items to codes beside a matrix product and scikit-learn; images to features",
    "training": "images a second of training end to end, beside the network alone",
    "parts": "a database of 100 million codes, counted in parts",
    "quick": "the whole quick table as a user runs it, and where its seconds go (--quick: only if named)",
}
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

OPTIONAL = """

Published libraries (faiss-cpu, torchmetrics, pytorch-metric-learning) are timed where they are installed:
pip install --group benchmarks"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the list of rooms, but wraps the description."""

    def _fill_text(self, text, width, indent):
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Time the evaluation, the training losses and the methods beside their peers, on one "
        "thread, and print Markdown tables. About a quarter of an hour; nothing else should keep the machine "
        "busy.",
        epilog="rooms:\n" + "\n".join(f"  {name:<12}{what}" for name, what in ROOMS.items()) + OPTIONAL,
        formatter_class=_Formatter,
    )
    parser.add_argument(
        "rooms", nargs="*", metavar="ROOM", help=f"what to time: {' '.join(ROOMS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: about two minutes")
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
    from benchmarks.timing import Disagreement, Failed

    report = reporting.Report()
    report.write(reporting.header(threads=1))
    top = len(report)
    summary = []
    try:
        for room in ROOMS:
            if not options.rooms and options.quick and room == "quick":
                report.write("The quick table: skipped (with --quick it runs only where it is named).")
            elif not options.rooms or room in options.rooms:
                summary += importlib.import_module(f"benchmarks.{room}").run(report, options.quick)
    except (Disagreement, Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    tables = len(report)
    report.write("## Figures to reach", "Reported, not enforced; meant for a quiet machine.")
    report.rows(["figure", "reach", "seen"], summary)
    if options.output is not None:
        report.lead_with(tables, top)
        report.save(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
