"""Scores to a table: CSV, tidy CSV, Markdown and LaTeX."""

from workflow.scripts import _job


def work(options):
    from workflow.files import write_text
    from workflow.records import table_records
    from workflow.reporting import frames, latex, markdown

    settings = options.settings
    table = settings["table"]
    tidy = frames.tidy(table, table_records(settings), settings["published"])
    write_text(f"{options.stem}.tidy.csv", frames.to_csv(tidy))
    write_text(f"{options.stem}.csv", frames.to_csv(frames.wide(tidy, table)))
    write_text(f"{options.stem}.md", markdown.to_markdown(tidy, table))
    write_text(f"{options.stem}.tex", latex.to_latex(tidy, table))
    for row in tidy[tidy["status"] != "done"].itertuples():
        _job.log.warning(
            "%s/%s/%d bits is %s: %s", row.protocol, row.method, row.bits, row.status, row.reason
        )


if __name__ == "__main__":
    arguments = _job.parser("collect_table")
    arguments.add_argument("--stem", required=True, help="path of the table without its endings")
    _job.run(work, arguments)
