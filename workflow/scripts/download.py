"""A source file from its mirrors, checked against what is recorded of it."""

from pathlib import Path

from workflow.scripts import _job


def work(options):
    from workflow.downloads.fetch import fetch

    file = options.settings["file"]
    url = fetch(options.settings, options.output, _job.Progress("download"))
    _job.log.info("%s: %d bytes from %s", file, Path(options.output).stat().st_size, url)


if __name__ == "__main__":
    arguments = _job.parser("download")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
