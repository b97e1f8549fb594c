"""Scores to the tie-range figure (Figure 4 of the paper): PDF, SVG and PNG."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from workflow.records import table_records
    from workflow.reporting import figures

    settings = options.settings
    figure = figures.tie_ranges(settings["table"], table_records(settings))
    Path(options.stem).parent.mkdir(parents=True, exist_ok=True)
    for kind in ("pdf", "svg", "png"):
        figures.save(figure, f"{options.stem}.{kind}")


if __name__ == "__main__":
    arguments = _job.parser("plot_tie_ranges")
    arguments.add_argument("--stem", required=True, help="path of the figure without its endings")
    _job.run(work, arguments)
