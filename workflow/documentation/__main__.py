"""The command `python -m workflow.documentation`: builds the site. Warnings are errors."""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tiebench.command_line import Parser, Writes, word
from workflow.forks import use_threads

ROOT = Path(__file__).parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; returns the exit status."""
    parser = Parser(
        prog="python -m workflow.documentation",
        description="Build the documentation site from docs/, the code and the leaderboards.",
    )
    parser.add_argument(
        "output", nargs="?", default="site", type=Writes(folder=True), help="folder of the site"
    )
    parser.add_argument(
        "--sources",
        metavar="FOLDER",
        type=Writes(folder=True),
        help="keep the pages that Sphinx reads there",
    )
    parser.add_argument(
        "--source-url",
        default="",
        metavar="URL",
        type=word,
        help="address of the repository's files, as https://host/owner/name/blob/main: the API reference "
        "links to the line that defines each object; without it there are no such links",
    )
    parser.also_reads("the repository", ROOT)
    for name in ("docs", "leaderboard"):
        parser.also_reads("the pages", ROOT / name, "*")
    options = parser.parse_args(arguments)
    # Threads of small products wait for each other, longest where something else runs.
    use_threads(1)
    from workflow.documentation import sources

    try:
        from sphinx.cmd.build import main as sphinx
    except ModuleNotFoundError as error:
        parser.exit(1, f"error: {error.name} is not installed: run `make docs`\n")
    with tempfile.TemporaryDirectory() as folder:
        pages, doctrees = Path(options.sources or Path(folder, "pages")), Path(folder, "doctrees")
        sources.write(pages, ROOT)
        settings = ["-b", "html", "-c", str(Path(__file__).parent), "-d", str(doctrees)]
        os.environ["SOURCE_URL"] = options.source_url
        strict = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
        return sphinx([*settings, *strict, str(pages), options.output])


if __name__ == "__main__":
    sys.exit(main())
