"""Codes and images to the retrieval gallery of a table: PDF, SVG and PNG."""

from workflow.scripts import _job


def work(options):
    from reporting.page import gallery
    from reporting.tables.model import Table
    from tiebench import figure_style
    from workflow.stages import gallery_data

    settings = options.settings
    cells = [tuple(cell) for cell in settings["cells"]]
    found = gallery_data.collect(
        cells, settings["datasets"], settings["protocols"], settings["seed"], settings["queries"]
    )
    figure = gallery.draw(Table.from_json(settings["asked"]), found)
    for kind in figure_style.KINDS:
        figure_style.save(figure, f"{options.stem}.{kind}")


if __name__ == "__main__":
    arguments = _job.parser("plot_gallery")
    arguments.add_argument("--stem", required=True, help="path of the figure without its endings")
    _job.run(work, arguments, lambda options: "figures")
