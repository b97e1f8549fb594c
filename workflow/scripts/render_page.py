"""The runs of one table, or of several, to one self-contained HTML page."""

from workflow.scripts import _job


def work(options):
    from pathlib import Path

    from reporting import page
    from tiebench.files import write_text

    settings = options.settings
    views = [_view(of_table) for of_table in settings["tables"]]
    title = "TieBench report" if len(views) > 1 else views[0].table["title"] or views[0].table["name"]
    write_text(options.output, page.page(title, views, {"command": settings["command"]}))
    _job.log.info("page: %s", Path(options.output).resolve())


def _view(settings):
    """Everything of one table that stands on a page."""
    from reporting import claims, frames, page, statistics, table_files
    from reporting.records import ALSO, table_records

    table = settings["table"]
    records = table_records(settings, also=ALSO)
    tidy = frames.tidy(table, records, settings["published"])
    compared = statistics.comparisons(table, records)
    judged = claims.judge(settings["claims"], table, records)
    return page.TableView(
        table=table,
        records=records,
        tidy=tidy,
        published=settings["published"],
        figures=_figures(settings, records),
        statistics=compared,
        claims=judged,
        files={
            f"{table['name']}{ending}": text
            for ending, text in table_files.table_files(table, tidy, compared, judged).items()
        },
    )


def _figures(settings, records):
    """Every figure that has something to draw, by name, as `page.Drawing`."""
    import numpy as np

    from reporting import drawing, embedding, figures, gallery, page

    table, found = settings["table"], {}
    for name in figures.applicable(table):
        try:
            svg = drawing.render(figures.draw(name, table, records), "svg").decode()
        except drawing.NothingToDraw as error:  # say because all cells are refused
            _job.log.warning("%s", error)
            continue
        described = figures.describe(name)
        found[name] = page.Drawing(described.title, described.caption, svg)
    if settings["gallery"]:
        with np.load(settings["gallery"], allow_pickle=False) as kept:
            drawn = gallery.draw(table, dict(kept))
        files = (drawing.render(drawn, kind) for kind in ("svg", "png"))
        svg = embedding.smallest_svg(next(files).decode(), next(files))
        found["gallery"] = page.Drawing(gallery.TITLE, gallery.CAPTION, svg)
    return found


if __name__ == "__main__":
    arguments = _job.parser("render_page")
    arguments.add_argument("--output", required=True)
    _job.run(work, arguments)
