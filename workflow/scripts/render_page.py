"""The published files of one table, or of several, to one self-contained HTML page."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from reporting import published
    from reporting.page import document
    from tiebench.files import write_text

    settings = options.settings
    views = [
        published.view(published.read(shown["name"]), drawn=shown["figures"], gallery_file=shown["gallery"])
        for shown in settings["tables"]
    ]
    write_text(options.output, document.page(views, settings["command"]))
    _job.log.info("page: %s", Path(options.output).resolve())


if __name__ == "__main__":
    arguments = _job.parser("render_page")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments, lambda options: "figures")
