"""Scores to a table: CSV, tidy CSV, Markdown and LaTeX."""

from workflow.scripts import _job


def work(options):
    from workflow.files import write_text
    from workflow.records import table_records
    from workflow.reporting import tables

    settings = options.settings
    table = settings["table"]
    tidy = tables.tidy(table, table_records(settings), settings["published"])
    write_text(f"{options.stem}.tidy.csv", tables.to_csv(tidy))
    write_text(f"{options.stem}.csv", tables.to_csv(tables.wide(tidy, table)))
    write_text(f"{options.stem}.md", tables.to_markdown(tidy, table))
    write_text(f"{options.stem}.tex", tables.to_latex(tidy, table))
    for row in tidy[tidy["status"] != "done"].itertuples():
        _job.log.warning(
            "%s/%s/%d bits is %s: %s", row.protocol, row.method, row.bits, row.status, row.reason
        )


if __name__ == "__main__":
    arguments = _job.parser("collect_table")
    arguments.add_argument("--stem", required=True, help="path of the table without its endings")
    _job.run(work, arguments)
