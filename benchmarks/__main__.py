"""python -m benchmarks: speed and memory of the suite compared with its peers, as Markdown."""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import THREAD_VARIABLES, Failed
from tiebench.command_line import Parser, Writes, word


class Benchmark(NamedTuple):
    """What a module of this package measures, and beside what; by_default: also if it is not named."""

    what: str
    beside: str = ""
    by_default: bool = True


BENCHMARKS = {
    "evaluation": Benchmark(
        "codes to scores",
        "the field's argsort loop, scikit-learn, NumPy, FAISS, torchmetrics, pytorch-metric-learning",
    ),
    "metrics": Benchmark("each metric", "a whole score"),
    "losses": Benchmark("training losses with their gradient", "the paper's appendix, plain autograd"),
    "methods": Benchmark(
        "the most expensive training step of methods", "its usual implementation: NumPy, SciPy, scikit-learn"
    ),
    "encoding": Benchmark(
        "items to codes, images to features", "a matrix product, scikit-learn; the forward pass"
    ),
    "training": Benchmark("images per second of end-to-end training", "a bare loop, the network alone"),
    "rankings": Benchmark("TREC runs to scores", "pytrec_eval, ranx, plain Python"),
    "billion": Benchmark("a billion codes, counted in parts; 9 GB of disk", by_default=False),
    "quick": Benchmark("the quick table as a user runs it (not with --quick unless named)"),
    "plans": Benchmark("snakemake -n of 9,600 runs (--quick: 960)", "a bare Snakefile"),
    "statistics": Benchmark(
        "how often verdicts err and what they see, drawn from the published runs", by_default=False
    ),
    "page": Benchmark(
        "the page of 40 methods, 4 code lengths and 10 seeds: bytes, first paint in Chromium",
        by_default=False,
    ),
    "fits": Benchmark("seconds and memory of training every method, a quarter of an hour", by_default=False),
    "differences": Benchmark(
        "AP of this suite's forms of methods, half an hour, with a file of features",
        "the forms of papers and of released code",
        by_default=False,
    ),
    "orders": Benchmark(
        "in which order ties are listed and what is then reported, with a file of features",
        "NumPy, torch, FAISS",
        by_default=False,
    ),
}

OPTIONAL = """\
Published libraries (faiss-cpu, torchmetrics, pytorch-metric-learning) are timed if they are installed:
pip install --group benchmarks
So are pytrec_eval and ranx, of runs: pip install ranx pytrec_eval-terrier"""


def described():
    """The table of `BENCHMARKS` as text."""
    lines = ["benchmarks (*: only if named), and what they are compared with:"]
    for name, (what, beside, by_default) in BENCHMARKS.items():
        lines.append(f"  {name + ('' if by_default else '*'):<13}{what}")
        lines += [f"{'':<15}beside {beside}"] * bool(beside)
    return "\n".join(lines)


def main(arguments=None):
    parser = Parser(
        prog="python -m benchmarks",
        description="Time scoring, losses and methods against other implementations, on one thread,\n"
        "and print Markdown tables. Takes about a quarter of an hour on an otherwise idle machine.",
        epilog=f"{described()}\n\n{OPTIONAL}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "benchmarks", nargs="*", metavar="BENCHMARK", type=word, help="what to measure, of those below"
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
    chosen = options.benchmarks or [name for name, one in BENCHMARKS.items() if one.by_default]

    # Libraries read these once, when they are imported.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    from benchmarks import report as reporting
    from benchmarks.timing import Disagreement

    report = reporting.Report()
    report.write(reporting.header(threads=1))
    try:
        for name in BENCHMARKS:
            if name == "quick" and options.quick and not options.benchmarks:
                report.write("The quick table: skipped (with --quick it runs only if it is named).")
            elif name in chosen:
                importlib.import_module(f"benchmarks.{name}").run(report, options.quick)
    except (Disagreement, Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    report.finish(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
