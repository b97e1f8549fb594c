"""python -m benchmarks: speed and memory of the suite compared with its peers, as Markdown."""

import argparse
import importlib
import math
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple

from benchmarks.commands import Failed
from tiebench.command_line import Parser, Writes, word
from workflow.forks import use_threads


class Benchmark(NamedTuple):
    """What a module of this package measures, and beside what; by_default: also if it is not named; options:
    those of the command that are arguments of its `run`."""

    what: str
    beside: str = ""
    by_default: bool = True
    options: tuple[str, ...] = ()


BENCHMARKS = {
    "evaluation": Benchmark(
        "codes to scores",
        "the field's argsort loop, scikit-learn, NumPy, FAISS, torchmetrics, pytorch-metric-learning",
    ),
    "losses": Benchmark("training losses with their gradient", "the paper's appendix, plain autograd"),
    "methods": Benchmark(
        "the most expensive training step of methods", "its usual implementation: NumPy, SciPy, scikit-learn"
    ),
    "encoding": Benchmark(
        "items to codes, images to features", "a matrix product, scikit-learn; the forward pass"
    ),
    "training": Benchmark("images per second of end-to-end training", "a bare loop, the network alone"),
    "gpu": Benchmark(
        "scoring, losses and trainings on a CUDA device",
        "one core, PyTorch's cdist and sort, plain autograd, a bare loop",
        by_default=False,
    ),
    "rankings": Benchmark("TREC runs to scores", "pytrec_eval, ranx, plain Python"),
    "plans": Benchmark("snakemake -n of 9,600 runs (--quick: 960)", "a bare Snakefile"),
    "search": Benchmark("trials of a search of hyper-parameters", "a bare loop of the same steps"),
    "page": Benchmark(
        "the page of 40 methods, 4 code lengths and 10 seeds: bytes, first paint in Chromium",
        by_default=False,
    ),
    "statistics": Benchmark(
        "how often verdicts err and what they see, drawn from the published runs", by_default=False
    ),
    "fits": Benchmark("seconds and memory of training every method, a quarter of an hour", by_default=False),
    "growth": Benchmark(
        "seconds and memory of methods as items, dimensions, bits or classes grow, hours for all of them",
        "the cost that papers state",
        by_default=False,
        options=("methods", "axes", "seconds"),
    ),
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
Published libraries (faiss-cpu, torchmetrics, pytorch-metric-learning) are timed
if they are installed:
pip install --group benchmarks  # pip 25.1 or newer
So are pytrec_eval and ranx, of runs: pip install ranx pytrec_eval-terrier"""
RECORDS = Path(__file__).parent / "results"

AXES = ("items", "dimensions", "bits", "classes")  # of growth, which imports NumPy


def described():
    """The table of `BENCHMARKS` as text."""
    lines = ["benchmarks (*: only if named), and what they are compared with:"]
    for name, one in BENCHMARKS.items():
        told = [one.what, f"beside {one.beside}"][: 1 + bool(one.beside)]
        told = [line for text in told for line in textwrap.wrap(text, 63, subsequent_indent="  ")]
        lines.append(f"  {name + ('' if one.by_default else '*'):<13}{told[0]}")
        lines += [f"{'':<15}{line}" for line in told[1:]]
    return "\n".join(lines)


def command_line(name, options):
    """What was typed to run a benchmark with its own options, those that are None left out."""
    words = ["python", "-m", "benchmarks", name]
    for option, value in options.items():
        if value is not None:
            words += [f"--{option}", *(map(str, value) if isinstance(value, list) else [f"{value:g}"])]
    return " ".join(words)


def _seconds(text):
    """The type of --seconds. Raises ArgumentTypeError, one line, for what is no positive number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value


def main(arguments=None):
    parser = Parser(
        prog="python -m benchmarks",
        description="Time scoring, losses and methods against other implementations, on one thread,\n"
        "and print Markdown tables. Takes about a quarter of an hour on an otherwise\n"
        "idle machine.",
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
    parser.add_argument(
        "--record",
        action="store_true",
        help="write what pages of docs/ show to benchmarks/results/; then: python -m reporting docs",
    )
    growth = parser.add_argument_group("options of growth")
    growth.add_argument("--methods", nargs="+", metavar="METHOD", type=word, help="default: all")
    growth.add_argument(
        "--axes", nargs="+", choices=AXES, metavar="AXIS", help=f"{', '.join(AXES)} (default: all)"
    )
    growth.add_argument(
        "--seconds",
        metavar="S",
        type=_seconds,
        help="of a processor for a training and its encoding; where one takes longer, its axis ends (60)",
    )
    options = parser.parse_args(arguments)
    for name in options.benchmarks:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r}; choose from: {', '.join(BENCHMARKS)}")
    for name, one in BENCHMARKS.items():
        for option in one.options:
            if getattr(options, option) is not None and name not in options.benchmarks:
                parser.error(f"--{option} is an option of {name}, which is not named")
    if options.record and options.quick:
        parser.error("--record keeps whole measurements, not those of --quick")
    output = None if options.output is None else Path(options.output)
    if output is not None and not output.absolute().parent.is_dir():
        parser.error(f"--output: no such folder: {output.parent}")
    given = options.benchmarks or [name for name, one in BENCHMARKS.items() if one.by_default]
    chosen = {name: one for name, one in BENCHMARKS.items() if name in given}

    # Libraries read these once, when they are imported.
    use_threads(1)
    from benchmarks import report as reporting
    from benchmarks.timing import Disagreement

    report = reporting.Report()
    report.write(reporting.header())
    try:
        for name, one in chosen.items():
            more = {option: getattr(options, option) for option in one.options}
            report.begin(command_line(name, more))
            importlib.import_module(f"benchmarks.{name}").run(report, options.quick, **more)
    except (Disagreement, Failed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    report.finish(output)
    if options.record:
        report.record(RECORDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
