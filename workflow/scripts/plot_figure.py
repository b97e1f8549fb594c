"""Runs of a table to one of its figures: PDF, SVG and PNG."""

from workflow.scripts import _job


def work(options):
    import importlib
    from pathlib import Path

    from reporting import drawing
    from reporting.records import table_records

    settings = options.settings
    module = importlib.import_module(f"reporting.figures.{options.figure}")
    figure = module.draw(settings["table"], table_records(settings, also=module.NEEDS))
    Path(options.stem).parent.mkdir(parents=True, exist_ok=True)
    for kind in ("pdf", "svg", "png"):
        drawing.save(figure, f"{options.stem}.{kind}")


if __name__ == "__main__":
    arguments = _job.parser("plot_figure")
    arguments.add_argument("--figure", required=True, help="a module of reporting/figures")
    arguments.add_argument("--stem", required=True, help="path of the figure without its endings")
    _job.run(work, arguments)
