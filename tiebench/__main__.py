"""The command `tiebench`, also `python -m tiebench`. See docs/use-the-library.md."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tiebench import __version__, commands
from tiebench.command_line import Parser
from tiebench.discovery import Plugin
from tiebench.messages import did_you_mean, one_line, shorten

DESCRIPTION = "Tie-aware ranking metrics of binary codes."


class _Parser(Parser):
    """Says what to type where the command is missing: the most common mistake."""

    words: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        if "argument COMMAND: invalid choice" in message or "are required: COMMAND" in message:
            words = [word for word in self.words if not word.startswith("-")]
            # Path.exists raises for a folder that may not be entered.
            file = next((word for word in words if Path(word).suffix or os.path.exists(word)), None)  # noqa: PTH110
            near = did_you_mean(words[0], commands.KIND.find()) if words else ""
            if file is not None and "did you mean" not in near:
                message = f"the command is missing: tiebench score {shorten(file)}"
            elif words:
                message = f"there is no command {shorten(words[0])!r}{near}"
            else:
                message = "the command is missing: tiebench score FILE.npz, or tiebench metrics"
        super().error(message)


def _parser(words: Sequence[str]) -> tuple[_Parser, dict[str, tuple[Plugin, Parser]]]:
    """The parser, and name -> (command, parser). Only commands among `words` are imported."""
    parser = _Parser("tiebench", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tiebench {__version__}")
    adding = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    found = {}
    for name, command in commands.KIND.find().items():
        one = adding.add_parser(
            name,
            help=command.said.help,
            description=command.said.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in words:
            file = command.load()
            file.add_arguments(one)
            one.epilog = getattr(file, "EPILOG", None)
        found[name] = command, one
    return parser, found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 0, 1 after an error in what was given, 130 on Ctrl-C."""
    words = sys.argv[1:] if arguments is None else arguments
    parser, found = _parser(words)
    parser.words = words
    options = parser.parse_args(arguments)
    command, one = found[options.command]
    try:
        return int(command.load().run(options, one))
    except (ValueError, OSError, MemoryError) as error:
        reason = one_line(error)
        if isinstance(error, MemoryError):
            reason = command.said.out_of_memory
        print(f"error: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
