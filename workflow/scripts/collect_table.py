"""Scores to a table: CSV, tidy CSV, statistics, claims, Markdown, LaTeX, and its settings for reporting."""

from workflow.scripts import _job


def work(options):
    from reporting import frames
    from reporting.claims import verdicts
    from reporting.printed import health, table_files
    from reporting.records.read import table_results
    from reporting.statistics import columns
    from reporting.tables.model import Table
    from reporting.tables.titles import LEADERBOARD, UNCODED
    from tiebench.files import write_json, write_text
    from workflow.stages.run_records import run_title

    table = Table.from_json(options.settings)
    results = table_results(table, also=["per_query"])
    tidy = frames.tidy(table, results)
    compared = columns.comparisons(table, results)
    judged = verdicts.judge(table.claims, table, results)
    codes = health.frame(table, results)
    files = table_files.table_files(table, tidy, compared, judged, codes)
    for ending, text in files.items():
        write_text(f"{options.stem}{ending}", text)
    write_json(f"{options.stem}.json", options.settings)
    for row in tidy[~tidy["status"].isin(["done", UNCODED, LEADERBOARD])].itertuples():
        _job.log.warning(
            "%s/%s/%d bits is %s: %s", row.protocol, row.method, row.bits, row.status, row.reason
        )
    for row in codes.itertuples():
        if row.collapsed:
            title = run_title(row.protocol, row.method, row.bits, row.seed)
            _job.log.warning("%s: collapsed codes: %s", title, row.collapsed)


if __name__ == "__main__":
    arguments = _job.parser("collect_table")
    arguments.add_argument("--stem", required=True, help="path of the table without its endings")
    _job.run(work, arguments)
