"""A table, its figures and its runs to one self-contained HTML page."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from workflow.files import write_text
    from workflow.records import table_records
    from workflow.reporting import page, tables

    settings = options.settings
    table = settings["table"]
    tidy = tables.from_csv(Path(options.tidy).read_text(encoding="utf-8"))
    drawn = {
        Path(path).stem.removesuffix(f"_{table['name']}"): Path(path).read_text(encoding="utf-8")
        for path in options.figures
    }
    command = f"snakemake --cores all {options.output}"
    html = page.page(table, table_records(settings), tidy, drawn, settings["published"], {"command": command})
    write_text(options.output, html)
    _job.log.info("page: %s", Path(options.output).resolve())


if __name__ == "__main__":
    arguments = _job.parser("render_page")
    arguments.add_argument("--output", required=True)
    arguments.add_argument("--tidy", required=True, help="the table's tidy CSV")
    arguments.add_argument("--figures", nargs="*", default=[], help="SVG files")
    _job.run(work, arguments)
