"""The runs of a table to one self-contained HTML page."""

from workflow.scripts import _job


def work(options):
    import importlib
    import pkgutil
    from pathlib import Path

    from workflow.files import write_text
    from workflow.records import ALSO, table_records
    from workflow.reporting import drawing, figures, frames, page

    settings = options.settings
    table = settings["table"]
    records = table_records(settings, also=ALSO)
    tidy = frames.tidy(table, records, settings["published"])
    drawn = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(figures.__path__)):
        figure = importlib.import_module(f"workflow.reporting.figures.{name}")
        if figure.applies(table):
            drawn[name] = drawing.render(figure.draw(table, records), "svg").decode()
    command = f"snakemake --cores all {options.output}"
    html = page.page(table, records, tidy, drawn, settings["published"], {"command": command})
    write_text(options.output, html)
    _job.log.info("page: %s", Path(options.output).resolve())


if __name__ == "__main__":
    arguments = _job.parser("render_page")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
