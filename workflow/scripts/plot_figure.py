"""Runs of a table to one of its figures: PDF, SVG and PNG."""

from workflow.scripts import _job


def work(options):
    from reporting import figures
    from reporting.drawing import axes
    from reporting.records.read import table_results
    from reporting.tables.model import Table
    from tiebench import figure_style

    table = Table.from_json(options.settings)
    results = table_results(table, also=figures.describe(options.figure).needs)
    try:
        figure = figures.draw(options.figure, table, results)
    except axes.NothingToDraw as error:  # say because all cells are refused: the page leaves it out
        _job.log.warning("%s", error)
        figure = axes.message(str(error))
    for kind in figure_style.KINDS:
        figure_style.save(figure, f"{options.stem}.{kind}")


if __name__ == "__main__":
    arguments = _job.parser("plot_figure")
    arguments.add_argument("--figure", required=True, help="a module of reporting/figures")
    arguments.add_argument("--stem", required=True, help="path of the figure without its endings")
    _job.run(work, arguments, lambda options: "figures")
