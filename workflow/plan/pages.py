"""The plan of figures, galleries and pages: their files and settings. Rules only call it."""

import os

from reporting import figures
from workflow.errors import ConfigurationError
from workflow.plan.runs import TABLE_ENDINGS, Cell

# Methods whose neighbours a gallery shows unless the table names some: its pictures are most of a page.
GALLERY_METHODS = 12


class PagePlan:
    """What is drawn and written of tables. plan: a `workflow.plan.runs.Plan`."""

    def __init__(self, plan):
        self.plan = plan

    def table_figures(self, table):
        """Names of the figures that a table has something to draw for; a table without runs has none."""
        return figures.applicable(self.plan.asked(table)) if self.plan.served_cells(table) else []

    def figure_runs(self, figure, table):
        if figure not in self.table_figures(table):
            known = [*self.table_figures(table), *(["gallery"] if self.gallery_cells(table) else [])]
            raise ConfigurationError(
                f"figure {figure} does not apply to table {table}; "
                f"figures that do: {', '.join(sorted(known)) or 'none'}"
            )
        files = {"training": "training.jsonl", "per_query": "per_query.npz"}
        needs = figures.describe(figure).needs
        runs = self.plan.table_runs(table, ["run.json", "scores.json", *(files[need] for need in needs)])
        return runs + self.plan.uncoded_files(table)

    def figure_code(self, figure):
        modules = ("reporting.figures", "reporting.records.read", f"reporting.figures.{figure}")
        return self.plan.code("workflow.scripts.plot_figure", *modules)

    def has_pictures(self, protocol):
        """Whether the items of a protocol's dataset can be shown: images, or vectors of pixels.

        Those of folds are not: no query of one has neighbours in another.
        """
        entry = self.plan.entry("protocols", protocol)
        if protocol in self.plan.configuration.folds:
            return False
        images = entry["input"]["kind"] in ("pixels", "network") or entry["end_to_end"] is not None
        return images or "picture" in self.plan["datasets"][entry["dataset"]]

    def gallery_cells(self, table):
        """Cells of a gallery: the fewest bits, of protocols whose items are pictures.

        One protocol of each dataset: the pictures of the others would be the same. The methods are those that
        the table names for its gallery, or GALLERY_METHODS of them, spread evenly over its rows.
        """
        named = (self.plan.entry("tables", table)["figures"].get("gallery") or {}).get("methods")
        asked = [
            cell
            for cell in self.plan.served_cells(table)
            if self.has_pictures(cell.protocol) and (named is None or cell.method in named)
        ]
        first: dict[str, str] = {}
        fewest: dict[str, int] = {}
        for cell in asked:
            dataset = self.plan["protocols"][cell.protocol]["dataset"]
            if first.setdefault(dataset, cell.protocol) == cell.protocol:
                fewest[cell.protocol] = min(cell.bits, fewest.get(cell.protocol, cell.bits))
        found: list[Cell] = []
        for protocol, bits in fewest.items():
            cells = [cell for cell in asked if (cell.protocol, cell.bits) == (protocol, bits)]
            found += cells if named else _spread(list(dict.fromkeys(cells)), GALLERY_METHODS)
        return found

    def gallery_files(self, table):
        """Codes of the gallery's runs, and the items, split and affinity of their protocols."""
        seed = self.plan.entry("tables", table)["seeds"][0]
        cells = self.gallery_cells(table)
        if not cells:
            raise ConfigurationError(
                f"table {table} has no gallery: the items of its datasets are not pictures"
            )
        files = []
        for cell in cells:
            dataset = self.plan.dataset_folder(cell.protocol)
            files.append(f"results/runs/{cell.protocol}/{cell.method}/{cell.bits}/{seed}/codes.npz")
            files += [f"{dataset}/items.npy", f"{dataset}/labels.npy"]
            files += [
                f"resources/protocols/{cell.protocol}/split.npz",
                *self.plan.affinity_files(cell.protocol),
            ]
        return list(dict.fromkeys(files))

    def gallery_settings(self, table):
        cells = self.gallery_cells(table)
        names = list(dict.fromkeys(cell.protocol for cell in cells))
        return {
            "asked": self.plan.table_settings(table),
            "cells": cells,
            "seed": self.plan.entry("tables", table)["seeds"][0],
            "queries": 3 if len(names) == 1 else 2,
            "datasets": {name: self.plan.dataset_folder(name) for name in names},
            "protocols": {
                name: {
                    "affinity": self.plan["protocols"][name]["affinity"],
                    "picture": self.plan["datasets"][self.plan["protocols"][name]["dataset"]].get("picture"),
                }
                for name in names
            },
        }

    def drawn(self, table):
        """Figure -> its SVG, of those of a table."""
        return {figure: f"results/figures/{figure}_{table}.svg" for figure in self.table_figures(table)}

    def page_tables(self, page):
        """Tables on a page: those of the report, or the one that the page is named for."""
        return self.plan["report"] if page == "report" else [page]

    def page_runs(self, page):
        names = ("run.json", "scores.json", "training.jsonl")
        files = [file for table in self.page_tables(page) for file in self.plan.table_runs(table, names)]
        return list(dict.fromkeys(files))

    def page_published(self, page):
        """Published files that a page shows: those of its tables, their figures and galleries."""
        found = []
        for table in self.page_tables(page):
            self.plan.entry("tables", table)
            found += [f"results/{table}{ending}" for ending in TABLE_ENDINGS]
            found += self.drawn(table).values()
            if self.gallery_cells(table):
                found += [f"results/figures/gallery_{table}{ending}" for ending in (".svg", ".png")]
        return found

    def page_templates(self):
        """Files besides code that a page is made of."""
        folder = self.plan.configuration.root / "reporting"
        files = [path for path in (folder / "assets").iterdir() if path.is_file()]
        return [os.path.relpath(file) for file in sorted([*files, *(folder / "page").glob("*.j2")])]

    def page_settings(self, page, configfiles=()):
        """Per table its name, figures (name -> SVG) and gallery, and the command that makes the page."""
        tables = [
            {
                "name": table,
                "figures": self.drawn(table),
                "gallery": f"results/figures/gallery_{table}.svg" if self.gallery_cells(table) else None,
            }
            for table in self.page_tables(page)
        ]
        words = ["snakemake --cores all"]
        if configfiles:
            words.append(f"--configfile {' '.join(map(str, configfiles))}")
        given = self.plan.configuration.overrides
        told = [key for key in ("skip", "report") if key in given and (key == "skip" or page == "report")]
        if told:
            words.append("--config " + " ".join(f"{key}='[{', '.join(self.plan[key])}]'" for key in told))
        words += ["--"] * (len(words) > 1) + [f"results/{page}.html"]
        return {"tables": tables, "command": " ".join(words)}


def _spread(values, most):
    """At most so many of the values, the first and the last among them, evenly spread."""
    if len(values) <= most:
        return values
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]
