"""One table of results as one HTML file that needs nothing else: no request, no other file."""

import base64
import html
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from workflow.reporting.frames import (
    EN_DASH,
    NO_RECORD,
    by_cell,
    groups,
    marks,
    notes,
    panels,
    published_values,
    to_csv,
    wide,
)
from workflow.reporting.names import method_name, metric_name

CONTEXT = ("command", "generator", "captions", "paragraphs")
CAPTIONS = {
    "tie_ranges": "How to read it. Items at one Hamming distance from a query are tied, and a ranking may "
    "list them in any order. A bar runs from the mean AP (mAP) of the worst of these orders to that of the "
    "best; a program that breaks ties its own way can report any value on the bar. The dot, with its value "
    "beside it, is AP_T: the exact mean over all orders. Where the bars of two methods overlap, a comparison "
    "that leaves ties to chance or to the program does not say which is better; the dots do."
}
# Colours of figures that follow the page's light or dark scheme.
SCHEME = {"#000000": "currentColor", "#ffffff": "var(--surface)", "#d0d0d0": "var(--line)"}


def page(
    table: Mapping,
    records: Iterable[Mapping],
    tidy_frame: pd.DataFrame,
    figures: Mapping[str, str],
    published: Iterable[Mapping],
    context: Mapping,
) -> str:
    """The results of a table as one self-contained HTML document.

    `tidy_frame` is what `frames.tidy` made of the same table, records and published figures. `figures` maps
    a figure's name to the text of an SVG. `context` may give: "command" (what makes this page again),
    "generator" (name and version of the program), "captions" (figure name -> caption, before the built-in
    one), "paragraphs" (list of further introductory text); plain text, all of them.

    The page holds the scores in the layout of the paper, published values beside them, figures, holes with
    their reasons, runs, versions and fingerprints, definitions of the metrics, and both CSV files as data:
    links. The same arguments give the same text.

    Raises ValueError for an unknown key in `context`, and whatever `frames.tidy` raises for such records.
    """
    if unknown := sorted(set(context) - set(CONTEXT)):
        raise ValueError(
            f"page of {table['name']}: unknown context {unknown[0]!r} (known: {', '.join(CONTEXT)})"
        )
    records, published = list(records), list(published)
    reasons, note_of = notes(tidy_frame, table)
    printed = published_values(table, published)
    runs = _runs(table, records)
    shown = {
        tuple(cell) for cell in tidy_frame[["protocol", "metric", "method", "bits"]].itertuples(index=False)
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["metric"] = _metric
    captions = CAPTIONS | dict(context.get("captions") or {})
    metrics = list(dict.fromkeys(group.metric for group in groups(table)))
    return environment.get_template("page.html.j2").render(
        table=table,
        title=table.get("title") or table["name"],
        context={name: context.get(name) for name in CONTEXT},
        methods=len({cell[2] for cell in shown}),
        panels=_panels(table, tidy_frame, note_of),
        several=bool((tidy_frame["seeds"] > 1).any()),
        notes=reasons,
        figures=[
            {"name": name, "svg": inline_svg(text, name), "caption": _subscripts(captions.get(name, ""))}
            for name, text in figures.items()
        ],
        sources=_sources(table, published, printed, shown),
        remarks=_remarks(printed, shown),
        runs=runs,
        done=sum(run["status"] == "done" for run in runs),
        made_with=_made_with(runs),
        fingerprints=_fingerprints(runs),
        metrics=metrics,
        families={re.split(r"[@_]", metric)[0] for metric in metrics},
        cutoffs=[metric for metric in metrics if "@" in metric],
        downloads=[
            _download(f"{table['name']}.csv", to_csv(wide(tidy_frame, table)), "means, one row per method"),
            _download(f"{table['name']}.tidy.csv", to_csv(tidy_frame), "every statistic, one row per cell"),
        ],
        dash=EN_DASH,
    )


def _metric(metric: str) -> Markup:
    text, subscript = metric_name(metric)
    return Markup("{}<sub>{}</sub>").format(text, subscript) if subscript else Markup("{}").format(text)


def _subscripts(text: str) -> Markup:
    """Plain text with AP_T and NDCG_T set as they are in the paper."""
    escaped = str(Markup.escape(text))
    return Markup(re.sub(r"\b(AP|NDCG)_T\b", r"\1<sub>T</sub>", escaped))


# -- scores ---------------------------------------------------------------------------------------


def _panels(table: Mapping, tidy_frame: pd.DataFrame, note_of: Mapping) -> list[dict]:
    cells = {
        (row["protocol"], row["metric"], row["method"], row["bits"]): row
        for row in tidy_frame.to_dict(orient="records")
    }
    mark = marks(tidy_frame)
    result = []
    for panel in panels(table):
        columns = [(group.protocol, group.metric, bits) for group in panel.groups for bits in group.bits]
        rows = []
        for index, method in enumerate(panel.methods):
            row = []
            for protocol, metric, bits in columns:
                cell = (protocol, metric, method, bits)
                row.append(_cell(cells.get(cell), mark.get(cell, ""), note_of.get(cell, "")))
            rows.append({"index": index, "name": method_name(method), "id": method, "cells": row})
        edges = [
            index
            for index, column in enumerate(columns)
            if index == 0 or column[:2] != columns[index - 1][:2]
        ]
        result.append({"groups": panel.groups, "rows": rows, "edges": edges})
    return result


def _cell(row: Mapping | None, mark: str, note: str) -> dict | None:
    if row is None:
        return None
    hole = math.isnan(row["mean"])
    said = (
        [] if hole else [f"mean {row['mean']!r} over {row['seeds']} seed{'s' if row['seeds'] != 1 else ''}"]
    )
    if not math.isnan(row["std"]):
        said.append(f"standard deviation {row['std']!r}")
        said.append(f"95% interval of the mean {row['ci_low']:.4f} to {row['ci_high']:.4f}")
    if not math.isnan(row["difference"]):
        said.append(f"{row['difference']:+.4f} from the published value")
    if row["reason"]:
        said.append(row["reason"])
    return {
        "value": "" if hole else repr(row["mean"]),
        "mean": EN_DASH if hole else f"{row['mean']:.3f}",
        "std": "" if math.isnan(row["std"]) else f"{row['std']:.3f}",
        "published": _as_printed(row["published"]),
        "mark": mark,
        "note": note,
        "title": "; ".join(said),
    }


def _as_printed(value: float) -> str:
    """A published value with at least three decimals, more where it has them; "" for NaN."""
    if math.isnan(value):
        return ""
    return f"{value:.{max(3, len(repr(value).partition('.')[2]))}f}"


def _sources(table: Mapping, published: Iterable[Mapping], printed: Mapping, shown: set) -> list[dict]:
    used = {source for cell, (_, source, _) in printed.items() if cell in shown}
    by_name = {source["source"]: source for source in published}
    return [by_name[name] for name in table.get("published") or [] if name in used]


def _remarks(printed: Mapping, shown: set) -> list[tuple[str, str]]:
    """(methods, note) for the notes that published values on the page carry."""
    methods_of: dict[str, dict[str, None]] = {}
    for cell, (_, _, note) in printed.items():
        if note and cell in shown:
            methods_of.setdefault(note, {})[method_name(cell[2])] = None
    return [(", ".join(methods), note) for note, methods in methods_of.items()]


# -- runs -----------------------------------------------------------------------------------------


def _runs(table: Mapping, records: Iterable[Mapping]) -> list[dict]:
    """Every run that the table asks for, once, in its order; one without a record is missing."""
    found = by_cell(table, records)
    wanted = {
        (group.protocol, method, bits): group.title
        for group in reversed(groups(table))
        for method in reversed(group.methods)
        for bits in reversed(group.bits)
    }
    result = []
    for (protocol, method, bits), title in reversed(wanted.items()):
        for seed in table["seeds"]:
            record = found.get((protocol, method, bits), {}).get(seed)
            run = (record or {}).get("run") or {}
            result.append(
                {
                    "protocol": protocol,
                    "title": title,
                    "method": method,
                    "name": method_name(method),
                    "bits": bits,
                    "seed": seed,
                    "status": "missing" if record is None else record["status"],
                    "reason": NO_RECORD if record is None else record.get("reason") or "",
                    "seconds": _number(run.get("seconds"), 1),
                    "memory": _number(run.get("peak_memory_mb"), 0),
                    "hyperparameters": sorted(
                        (name, _plain(value)) for name, value in (run.get("hyperparameters") or {}).items()
                    ),
                    "run": run,
                }
            )
    return result


def _number(value: float | None, decimals: int) -> dict | None:
    return None if value is None else {"value": repr(value), "text": f"{value:,.{decimals}f}"}


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)


def _made_with(runs: Iterable[Mapping]) -> list[dict]:
    """Distinct (git commit, device, versions) of the runs that are done, with how many used each."""
    counts: dict[tuple, int] = {}
    for run in runs:
        if run["status"] == "done":
            made = run["run"]
            versions = tuple(
                sorted((name, _plain(text)) for name, text in (made.get("versions") or {}).items())
            )
            key = (
                _plain(made.get("git_commit") or "unknown"),
                _plain(made.get("device") or "unknown"),
                versions,
            )
            counts[key] = counts.get(key, 0) + 1
    return [
        {"commit": commit, "device": device, "versions": versions, "runs": count}
        for (commit, device, versions), count in counts.items()
    ]


def _fingerprints(runs: Iterable[Mapping]) -> list[dict]:
    """Distinct fingerprints by protocol: [{protocol, title, dataset, split, seeds}]."""
    seeds_of: dict[tuple, dict[int, None]] = {}
    for run in runs:
        if run["status"] == "done":
            prints = run["run"].get("fingerprints") or {}
            key = (run["protocol"], run["title"])
            key += tuple(_plain(prints.get(name) or "unknown") for name in ("dataset", "split"))
            seeds_of.setdefault(key, {})[run["seed"]] = None
    return [
        {
            "protocol": protocol,
            "title": title,
            "dataset": dataset,
            "split": split,
            "seeds": ", ".join(map(str, sorted(seeds))),
        }
        for (protocol, title, dataset, split), seeds in seeds_of.items()
    ]


# -- files and figures ----------------------------------------------------------------------------


def _download(name: str, text: str, what: str) -> dict:
    content = base64.b64encode(text.encode()).decode()
    return {"name": name, "what": what, "href": f"data:text/csv;charset=utf-8;base64,{content}"}


def inline_svg(text: str, name: str) -> Markup:
    """An SVG file as an element to stand in an HTML page, beside others.

    XML prolog, document type, metadata and namespaces go; every id, and every reference to one, gets a
    prefix made from `name`; the style sheet inside applies to this figure alone; black, white and the grey
    of grid lines follow the page's colour scheme; the size is left to the page.

    Raises ValueError where `text` has no <svg> element.
    """
    start = re.search(r"<svg\b", text)
    if start is None:
        raise ValueError(f"figure {name}: not an SVG file")
    prefix = "figure-" + re.sub(r"[^A-Za-z0-9]+", "-", name)
    text = text[start.start() :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'\b(?:xlink:)?href="#([^"]+)"', rf'href="#{prefix}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", text)
    text = re.sub(r'(<style type="text/css">)\s*\*', rf"\1#{prefix} *", text)
    for colour, variable in SCHEME.items():
        text = text.replace(colour, variable)
    opening, rest = text.split(">", 1)
    width, height = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', opening).groups()
    label = html.escape(name.replace("_", " "), quote=True)
    return Markup(
        f'<svg id="{prefix}" viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{rest.rstrip()}'
    )
