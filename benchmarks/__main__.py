"""python -m benchmarks: speed and memory of the suite compared with its peers, as Markdown."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from tiebench.command_line import Parser, Writes, word

BENCHMARKS = {
    "evaluation": "codes to scores, compared with published libraries, compiled code and the machine's "
    "limits",
    "metrics": "each metric: its share of the time of a score",
    "losses": "training losses with their gradient, compared with plain autograd and the paper's formulation",
    "methods": "the most expensive training step of each method, compared with its usual implementation",
    "encoding": "items to codes, compared with a matrix product and scikit-learn; images to features",
    "training": "images per second of end-to-end training, compared with a bare loop and the network alone",
    "rankings": "TREC runs to scores, compared with pytrec_eval and ranx",
    "parts": "a database of 100 million codes, counted in parts",
    "billion": "a billion codes, counted in parts; 9 GB of disk (only if named)",
    "quick": "the whole quick table as a user runs it, and where its time is spent (--quick: only if named)",
    "plans": "snakemake -n of 9,600 runs, compared with a bare Snakefile (--quick: 960)",
    "statistics": "how often verdicts err and what they see, drawn from the published runs (only if named)",
    "page": "the page of 40 methods, 4 code lengths and 10 seeds: its bytes, its first paint in Chromium "
    "(only if named)",
    "fits": "seconds and memory of training every method, a quarter of an hour (only if named)",
    "differences": "AP of the forms in which papers, released code and this suite differ: half an hour, "
    "with a file of features (only if named)",
    "orders": "in which order NumPy, torch and FAISS list tied items, and what they then report, with a "
    "file of features (only if named)",
}
ONLY_IF_NAMED = ("billion", "statistics", "page", "fits", "differences", "orders")
_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

OPTIONAL = """

Published libraries (faiss-cpu, torchmetrics, pytorch-metric-learning) are timed if they are installed:
pip install --group benchmarks
So are pytrec_eval and ranx, of runs: pip install ranx pytrec_eval-terrier"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the list of benchmarks, but wraps the description."""

    def _fill_text(self, text, width, indent):
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def main(arguments=None):
    parser = Parser(
        prog="python -m benchmarks",
        description="Time scoring, training losses and methods against other implementations, on one thread, "
        "and print Markdown tables. Takes about a quarter of an hour on an otherwise idle machine.",
        epilog="\n".join(["benchmarks:", *(f"  {name:<12}{what}" for name, what in BENCHMARKS.items())])
        + OPTIONAL,
        formatter_class=_Formatter,
    )
    parser.add_argument(
        "benchmarks",
        nargs="*",
        metavar="BENCHMARK",
        type=word,
        help=f"what to measure: {' '.join(BENCHMARKS)} (default: all but {', '.join(ONLY_IF_NAMED)})",
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds: about two minutes")
    parser.add_argument(
        "--output", metavar="FILE.md", type=Writes(), help="also write the tables to this file"
    )
    options = parser.parse_args(arguments)
    for name in options.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r}; choose from: {', '.join(BENCHMARKS)}")
    output = None if options.output is None else Path(options.output)
    if output is not None and not output.absolute().parent.is_dir():
        parser.error(f"--output: no such folder: {output.parent}")

    # Libraries read these once, when they are imported.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    from benchmarks import report as reporting
    from benchmarks.timing import Disagreement, Failed

    report = reporting.Report()
    report.write(reporting.header(threads=1))
    top = len(report)
    summary = []
    try:
        for name in BENCHMARKS:
            if not options.benchmarks and name in ONLY_IF_NAMED:
                continue
            if not options.benchmarks and options.quick and name == "quick":
                report.write("The quick table: skipped (with --quick it runs only if it is named).")
            elif not options.benchmarks or name in options.benchmarks:
                summary += importlib.import_module(f"benchmarks.{name}").run(report, options.quick)
    except (Disagreement, Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    tables = len(report)
    if summary:
        report.write("## Targets", "Reported, not enforced. They assume an otherwise idle machine.")
        report.rows(["quantity", "target", "measured"], summary)
    if output is not None:
        report.lead_with(tables, top)
        report.save(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
