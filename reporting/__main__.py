"""The command `python -m reporting`: figures, tables and pages from published results, without Snakemake."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tiebench.command_line import Parser, Reads, Writes, names, word
from tiebench.messages import one_line

FORMATS = ("md", "tex", "csv")
# Files that commands read in its folder.
OF_LEADERBOARD = ("*.csv", "*.json", "*.npz", "*.yaml")
EXAMPLES = """examples:
  python -m reporting list
  python -m reporting table quick --format tex --digits 2 --methods lsh,itq,talr_ap
  python -m reporting figure quick tie_ranges --width 3.4 --title none --output figure.pdf
  python -m reporting page quick --output quick.html
  python -m reporting publish unseen_classes
  python -m reporting docs --check
  python -m reporting summary --tables cifar10_splits,digits,scifact

All commands but docs and summary read what the workflow wrote:
results/<table>.json, its CSV files and the runs in results/runs.
"""


def parser() -> Parser:
    top = Parser(
        prog="python -m reporting",
        description="Figures, tables and pages from published results.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    one = commands.add_parser("list", help="tables in a folder of results, their blocks and figures")
    _results(one)

    one = commands.add_parser("table", help="a table as Markdown, LaTeX or CSV")
    one.add_argument(
        "table", metavar="TABLE", type=word, help="name of a table, as in results/TABLE.csv, or of a protocol"
    )
    one.add_argument(
        "--leaderboard",
        nargs="?",
        const="leaderboard",
        metavar="FOLDER",
        type=Reads(*OF_LEADERBOARD),
        help="the published scores of the protocol TABLE, without any run (default FOLDER: leaderboard)",
    )
    one.add_argument("--metric", type=word, help="with --leaderboard (default: the protocol's first)")
    one.add_argument("--bits", type=_lengths, metavar="A,B", help="with --leaderboard (default: all)")
    one.add_argument("--format", choices=FORMATS, default="md", help="md (default), tex or csv")
    words = "decimals of scores in md and tex, 1 to 17 (default 3)"
    one.add_argument("--digits", type=int, choices=range(1, 18), default=3, metavar="N", help=words)
    _selection(one)
    one.add_argument(
        "--output", metavar="FILE", type=Writes(), help="file to write (default: standard output)"
    )
    _results(one)

    one = commands.add_parser("figure", help="a figure of a table as PDF, SVG or PNG")
    one.add_argument("table", metavar="TABLE", type=word, help="name of a table, as in results/TABLE.csv")
    one.add_argument(
        "kind", metavar="KIND", type=word, help="name of a figure, as in reporting/figures/KIND.py"
    )
    one.add_argument("--width", type=float, metavar="INCHES", help="width of the figure; 3.4 fits a column")
    one.add_argument("--font-size", type=float, metavar="POINTS", help="size of ordinary text (default 8)")
    one.add_argument("--title", metavar="TEXT", type=word, help='title of the figure; "none" leaves it out')
    _selection(one)
    one.add_argument(
        "--output",
        metavar="FILE",
        type=Writes(),
        help="file to write, .pdf, .svg or .png (default: RESULTS/figures/KIND_TABLE.pdf)",
    )
    _results(one)

    one = commands.add_parser("page", help="one HTML page of one or more tables")
    one.add_argument("tables", metavar="TABLE", type=word, nargs="+", help="names of tables")
    one.add_argument(
        "--output", metavar="FILE", type=Writes(), help="file to write (default: RESULTS/TABLE.html)"
    )
    _results(one)

    one = commands.add_parser("publish", help="scores of tables and where they come from, to keep in git")
    one.add_argument("tables", metavar="TABLE", type=word, nargs="+", help="names of tables")
    _folder(one, "--folder", "leaderboard", Writes(folder=True), "folder to write to")
    one.add_argument(
        "--replace",
        action="store_true",
        help="drop what the folder has of these protocols, instead of adding",
    )
    one.add_argument(
        "--tuning",
        action="append",
        default=[],
        metavar="NAME",
        type=word,
        help="publish the trials of this search too, RESULTS/tuning/NAME.csv; may be given several times",
    )
    _folder(one, "--resources", "resources", Reads(), "folder of the splits and datasets of the runs")
    _results(one)

    one = commands.add_parser(
        "codes", help="whether runs that were made again have the codes of the leaderboard's, bit by bit"
    )
    one.add_argument("protocol", metavar="PROTOCOL", type=word, help="name of a protocol of the leaderboard")
    _leaderboard(one, "folder of the leaderboard")
    _results(one)

    one = commands.add_parser(
        "docs",
        help="tables and figures of the documentation, between their markers, from the leaderboard",
    )
    one.add_argument(
        "pages",
        metavar="PAGE",
        nargs="*",
        type=Writes(),
        help="pages, which are changed (default: README.md and those of docs/)",
    )
    one.add_argument("--check", action="store_true", help="write nothing; fail if something differs")
    _leaderboard(one, "folder to read")

    one = commands.add_parser(
        "summary",
        help="methods over several tables: ranks, profiles, win probabilities, orders, costs",
        description="Summarise the tables of leaderboard/ that its summary.yaml names, to "
        "RESULTS/summary.csv and RESULTS/figures/summary_*. The same files give the same bytes.",
    )
    one.add_argument(
        "--tables",
        type=names,
        metavar="A,B",
        help="protocols: these tables instead of the sets of summary.yaml",
    )
    one.add_argument("--methods", type=names, metavar="A,B", help="these methods only")
    one.add_argument("--metric", type=word, help="of all tables, such as ap@1000 (default: their own)")
    _leaderboard(one, "folder to read")
    _folder(one, "--results", "results", Writes(folder=True), "folder to write to")
    return top


def _folder(command: Parser, option: str, default: str, kind: Reads | Writes, what: str) -> None:
    words = f"{what} (default: {default})"
    command.add_argument(option, default=default, metavar="FOLDER", type=kind, help=words)


def _leaderboard(command: Parser, what: str) -> None:
    _folder(command, "--folder", "leaderboard", Reads(*OF_LEADERBOARD), what)


def _results(command: Parser) -> None:
    _folder(command, "--results", "results", Reads("*.csv", "*.json", "runs/*"), "folder of results")


def _selection(command: Parser) -> None:
    command.add_argument("--methods", type=names, metavar="A,B", help="these methods only")
    command.add_argument(
        "--blocks", type=names, metavar="A,B", help="these blocks only: PROTOCOL or PROTOCOL/METRIC"
    )


def _lengths(text: str) -> list[int]:
    return [int(name) for name in names(text)]


_lengths.__name__ = "list of numbers"  # argparse names it in its message


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0, or after one line on standard error 1, on Ctrl-C 130."""
    options = parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except BrokenPipeError:  # the reader, say `head`, has enough
        sys.stderr.close()
    except (ValueError, OSError) as error:
        print(f"error: {one_line(error, 2000)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    return 0


def _list(options: argparse.Namespace) -> None:
    from reporting import figures
    from reporting.records.read import published_table, published_tables

    tables = published_tables(options.results)
    if not tables:
        raise ValueError(
            f"{options.results} has no tables; make one with: snakemake --cores all -- results/quick.csv"
        )
    for name in tables:
        table = published_table(name, options.results)
        print(f"{name}: {table.heading}")
        for group in table.groups:
            print(f"  {group.name}: {', '.join(map(str, group.bits))} bits")
        print(f"  methods: {', '.join(table.methods)}")
        print(f"  figures: {', '.join(figures.applicable(table))}")


def _table(options: argparse.Namespace) -> None:
    from reporting import frames, published
    from reporting.leaderboard.boards import Boards
    from reporting.printed import latex, markdown
    from reporting.printed.cells import cells
    from tiebench.files import write_text

    if options.leaderboard is not None:
        if options.blocks:
            raise ValueError("--leaderboard goes with --metric and --bits, not with --blocks")
        boards, of = Boards(options.leaderboard), (options.metric, options.bits, options.methods)
        table, tidy, compared = boards.printed(options.table, *of)
    elif options.metric or options.bits:
        raise ValueError("--metric and --bits go with --leaderboard; of a table of results, choose --blocks")
    else:
        found = published.read(options.table, options.results)
        table, tidy, compared = published.select(found, options.methods, options.blocks)
    if options.format == "csv":
        text = frames.to_csv(frames.wide(tidy, table))
    elif options.format == "tex":
        text = latex.to_latex(cells(tidy, table, compared), options.digits)
        if options.leaderboard is not None:
            papers = dict.fromkeys(filter(None, (table.style(name).paper for name in table.rows)))
            text = f"% Papers: python -m methods --bibtex {' '.join(papers)}\n{text}"
    else:
        text = markdown.to_markdown(cells(tidy, table, compared), options.digits)
    if options.output is None:
        sys.stdout.write(text)
    else:
        write_text(options.output, text)


def _figure(options: argparse.Namespace) -> None:
    from reporting import figures, published
    from tiebench import figure_style
    from tiebench.messages import did_you_mean

    needs = figures.describe(options.kind).needs  # an unknown kind is told before anything is read
    target = Path(options.output or Path(options.results, "figures", f"{options.kind}_{options.table}.pdf"))
    if (kind := target.suffix.removeprefix(".")) not in figure_style.KINDS:
        raise ValueError(f"{target}: unknown kind of file{did_you_mean(kind, figure_style.KINDS)}")
    found = published.read(options.table, options.results)
    if options.kind not in (able := figures.applicable(found.table)):
        raise ValueError(
            f"figure {options.kind} does not apply to table {options.table}; figures that do: "
            f"{', '.join(able) or 'none'}"
        )
    given = {"width": options.width, "font_size": options.font_size, "title": options.title}
    given |= {"methods": options.methods, "blocks": options.blocks}
    given = {name: value for name, value in given.items() if value is not None}
    drawn = figures.draw(options.kind, found.table, found.results(needs), **given)
    figure_style.save(drawn, target)
    print(target)


def _page(options: argparse.Namespace) -> None:
    from reporting import published
    from reporting.page import document as page
    from tiebench.files import write_text

    views = [published.view(published.read(name, options.results)) for name in options.tables]
    name = options.tables[0] if len(views) == 1 else "report"
    target = options.output or Path(options.results, f"{name}.html")
    command = f"python -m reporting page {' '.join(options.tables)}"
    write_text(target, page.page(views, command))
    print(target)


def _publish(options: argparse.Namespace) -> None:
    from reporting.leaderboard.publishing import publish

    places = (options.results, options.folder, options.replace, options.resources)
    for path in publish(options.tables, *places, tunings=options.tuning):
        print(path)


def _codes(options: argparse.Namespace) -> None:
    from collections import Counter

    from reporting import leaderboard
    from reporting.leaderboard import digests

    outcomes = digests.compared(leaderboard.read(options.protocol, options.folder), options.results)
    for run, outcome in outcomes:
        if outcome == digests.OTHER:
            print("{protocol}, {method}, {bits} bits, seed {seed}: other codes".format(**run))
    counts = Counter(outcome for _, outcome in outcomes)
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in digests.OUTCOMES if counts[outcome]))
    if counts[digests.OTHER]:
        raise ValueError(
            f"{counts[digests.OTHER]} runs have other codes than those of the leaderboard; codes of trained "
            "networks also differ between processors and versions"
        )


def _docs(options: argparse.Namespace) -> None:
    from reporting.leaderboard import pages
    from reporting.leaderboard.boards import Boards

    paths = [Path(page) for page in options.pages] or pages.find()
    if not paths:
        raise ValueError("there is no README.md and no page of docs/ here: run this in the repository")
    boards = Boards(options.folder)
    if not options.check:
        for path in pages.rewrite(paths, boards):
            print(path)
        return
    faults = pages.outdated(paths, boards)
    for fault in faults:
        print(fault)
    if faults:
        raise ValueError(f"{len(faults)} generated parts are not up to date: run python -m reporting docs")


def _summary(options: argparse.Namespace) -> None:
    from reporting.leaderboard import summary
    from reporting.leaderboard.boards import Boards

    plan = summary.read(options.folder, options.metric, options.methods)
    for path in summary.write(plan, Boards(options.folder), options.results, options.tables):
        print(path)


COMMANDS = {
    "list": _list,
    "table": _table,
    "figure": _figure,
    "page": _page,
    "publish": _publish,
    "codes": _codes,
    "docs": _docs,
    "summary": _summary,
}

if __name__ == "__main__":
    sys.exit(main())
