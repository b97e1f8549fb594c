"""The retrieval gallery of a table as a figure: PDF, SVG and PNG."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from reporting.page import gallery
    from reporting.tables.model import Table
    from tiebench import figure_style
    from tiebench.files import read_result_npz

    figure = gallery.draw(Table.from_json(options.settings), read_result_npz(options.gallery))
    Path(options.stem).parent.mkdir(parents=True, exist_ok=True)
    for kind in ("pdf", "svg", "png"):
        figure_style.save(figure, f"{options.stem}.{kind}")


if __name__ == "__main__":
    arguments = _job.parser("plot_gallery")
    arguments.add_argument("--gallery", required=True, help="what collect_gallery found")
    arguments.add_argument("--stem", required=True, help="path of the figure without its endings")
    _job.run(work, arguments, lambda options: "figures")
