"""Published tables of results as one HTML file that needs nothing else: no request, no other file."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import jinja2
import pandas as pd
from markupsafe import Markup

from reporting import health, statistics
from reporting.budgets import AS_GIVEN, budget_sentence
from reporting.charts import KINDS, chart_styles, charts
from reporting.collapsed import COLLAPSED, collapse_sentence, collapsed_methods
from reporting.embedding import data_url, inline_svg, lighter, packed, swatch
from reporting.filled import FILLED, filled_marks, filled_methods, filled_sentence, is_filled
from reporting.frames import NO_RECORD, by_cell, published_values, score_of, seeds_of, uncoded_in
from reporting.layout import Group, by_family, family, groups, panels
from reporting.printing import NOT_RANKED, as_published, bounds_sentence, marks, notes, uncoded_sentence
from reporting.titles import (
    EN_DASH,
    FAMILIES,
    LEADERBOARD,
    UNCODED,
    UNCODED_TITLE,
    dagger_sentence,
    family_title,
    method_title,
    row_title,
)
from tiebench.metrics import label, resolve

ASSETS = Path(__file__).parent / "assets"
CONTEXT = ("command",)
# Verdicts on claims, and outcomes of the comparisons that they rest on: never shown by colour alone.
SYMBOLS = {
    "reproduced": "✓",
    "not reproduced": "✗",
    "not decidable": "?",
    "for": "✓",
    "against": "✗",
    "open": "?",
}
# What a mark of an open comparison says to a screen reader, by verdict.
OPEN_WORDS = {
    statistics.WORSE_OVER_QUERIES: "too few seeds to tell from the best",
    statistics.WORSE_OVER_SEEDS: "too few queries to tell from the best",
    statistics.UNDECIDED: "not decided whether it is worse than the best",
}
RUN_FILES = ("run.json", "training.jsonl", "scores.json")


def page(title: str, views: Sequence["TableView"], context: Mapping) -> str:
    """The results of tables as one self-contained HTML document with the heading `title`.

    `context` may give "command": what makes this page again.

    For each view the page holds the scores in the layout of the paper, published values beside them, claims
    with their verdicts, charts, figures, missing results with their reasons, runs, versions and
    fingerprints, and its files as data: links. The same arguments give the same text, whatever the order of
    the records. Links to files of runs are relative to the folder `results`, where the page is meant to lie.

    Raises ValueError for an unknown key in `context`, for no view, for two views of tables of one name, and
    whatever `frames.by_cell`, `frames.score_of` or `inline_svg` raise.
    """
    if unknown := sorted(set(context) - set(CONTEXT)):
        raise ValueError(f"page {title!r}: unknown context {unknown[0]!r} (known: {', '.join(CONTEXT)})")
    names = [view.table["name"] for view in views]
    if not names:
        raise ValueError(f"page {title!r}: there is no table")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"page {title!r}: two tables are named {twice[0]!r}")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"metric": _metric, "plain_metric": _plain_metric, "subscripts": subscripts}
    metrics = list(dict.fromkeys(group.metric for view in views for group in groups(view.table)))
    methods = _methods(views)
    found = chart_styles(view.table for view in views)
    styles = {method: found[method] for method in methods}
    for view in views:
        for mark, of in (
            (COLLAPSED, collapsed_methods(view.table, view.records)),
            (FILLED, filled_methods(view.table, view.records)),
        ):
            styles |= {method: styles[method] | {"name": styles[method]["name"] + mark} for method in of}
    colours = [style["colour"] for style in styles.values()]
    data = {
        "styles": styles,
        "tables": {view.table["name"]: charts(view.table, view.records) for view in views},
    }
    kinds = {name: entry["kinds"] for name, entry in data["tables"].items()}
    return environment.get_template("page.html.j2").render(
        title=title,
        context={name: context.get(name) for name in CONTEXT},
        views=[_view(view, kinds[view.table["name"]], colours) for view in views],
        methods=[{"id": method} | styles[method] for method in methods],
        bits=sorted({bits for view in views for group in groups(view.table) for bits in group.bits}),
        metrics=metrics,
        definitions=[_definition(metric) for metric in metrics],
        swatch=swatch,
        health_columns=health.PRINTED,
        collapsed=COLLAPSED,
        filled=FILLED,
        symbols=SYMBOLS,
        run_files=RUN_FILES,
        lighter=lighter(colours),
        data=_json(data),
        style=_asset("page.css"),
        script=_asset("page.js"),
        # Only tools for developers read the last line, and they would look for a file beside the page.
        library=Markup(re.sub(r"\n//# sourceMappingURL=.*\n?$", "\n", _asset("chart.umd.min.js"))),
        dash=EN_DASH,
    )


def _methods(views: Iterable["TableView"]) -> list[str]:
    """Methods of all views, family after family as far as the tables say, otherwise as they first appear."""
    family_of: dict[str, str] = {}
    for view in views:
        for group in groups(view.table):
            for method in group.methods:
                family_of[method] = family_of.get(method) or family(view.table, method)
    known = {name: place for place, name in enumerate(FAMILIES)}
    return sorted(family_of, key=lambda method: known.get(family_of[method], len(known)))


def _view(view: "TableView", kinds: Sequence[str], colours: Sequence[str]) -> dict:
    """Everything that the template shows of one table."""
    table, tidy_frame = view.table, view.tidy
    reasons, note_of = notes(tidy_frame, table)
    printed = published_values(table, view.published)
    shown = {
        tuple(cell) for cell in tidy_frame[["protocol", "metric", "method", "bits"]].itertuples(index=False)
    }
    comparisons = _statistics(view)
    compared = {
        (row["protocol"], row["metric"], row["method"], row["bits"]): row
        for row in comparisons.to_dict(orient="records")
    }
    open_marks = statistics.cell_marks(comparisons) if len(comparisons) else {}
    runs = _runs(table, view.records)
    codes = health.rows(table, view.health)
    scores = _panels(view, note_of, compared, open_marks)
    return {
        "id": re.sub(r"[^A-Za-z0-9]+", "-", table["name"]),
        "name": table["name"],
        "title": table.get("title") or table["name"],
        "description": (table.get("description") or "").strip(),
        "seeds": table["seeds"],
        "methods": list(dict.fromkeys(method for group in groups(table) for method in group.methods)),
        "groups": groups(table),
        "panels": scores,
        "several": bool((tidy_frame["seeds"] > 1).any()),
        "legend": _legend(table, tidy_frame, comparisons),
        "notes": reasons,
        "sources": _sources(table, view.published, printed, shown),
        "remarks": _remarks(table, printed, shown),
        "downloads": [_download(name, text) for name, text in view.files.items()],
        "claims": [_claim(claim) for claim in view.claims],
        "health": codes,
        "collapsed": sum(row["collapsed"] != "" for row in codes),
        "figures": _figures(view, kinds, colours),
        "runs": runs,
        "done": sum(run["status"] == "done" for run in runs),
        "made_with": _made_with(runs),
        "fingerprints": _fingerprints(runs),
    }


def _legend(table: Mapping, tidy_frame: pd.DataFrame, comparisons: pd.DataFrame) -> str:
    methods = [method for group in groups(table) for method in group.methods]
    words = [dagger_sentence(table, methods, NOT_RANKED), uncoded_sentence(tidy_frame)]
    words += [bounds_sentence(tidy_frame, table), collapse_sentence(tidy_frame, table)]
    words += [filled_sentence(tidy_frame), budget_sentence(tidy_frame, table)]
    words.append(statistics.marks_legend(comparisons) if len(comparisons) else "")
    return " ".join(filter(None, words))


# -- text -----------------------------------------------------------------------------------------


def _metric(metric: str) -> Markup:
    text, subscript = label(metric)
    return Markup("{}<sub>{}</sub>").format(text, subscript) if subscript else Markup("{}").format(text)


def _plain_metric(metric: str) -> str:
    return "_".join(filter(None, label(metric)))


def _definition(metric: str) -> dict:
    """What the table of metrics says of a metric."""
    entry, value = resolve(metric)
    return {
        "metric": metric,
        "description": entry.description.format(value),
        "source": entry.source,
        "has_range": entry.has_range,
        "without_relevant": None if entry.without_relevant is None else f"{entry.without_relevant:g}",
    }


def subscripts(text: str) -> Markup:
    """Plain text with AP_T and NDCG_T set as they are in the paper."""
    escaped = str(Markup.escape(text))
    return Markup(re.sub(r"\b(AP|NDCG)_T\b", r"\1<sub>T</sub>", escaped))


def _asset(name: str) -> Markup:
    text = (ASSETS / name).read_text(encoding="utf-8")
    if re.search(r"</(script|style)", text, flags=re.IGNORECASE):
        raise ValueError(f"{name}: it would close the element that contains it")
    return Markup(text)


def _json(data: object) -> Markup:
    """Data as JSON that can stand in a <script> element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _signed(value: float | None, digits: int = 4) -> str:
    return f"{value:+.{digits}f}".replace("-", "−") if _known(value) else EN_DASH


def _probability(value: float | None) -> str:
    """A p-value for people: "0.012", "< 0.001"; an en dash for none."""
    if not _known(value):
        return EN_DASH
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# -- scores ---------------------------------------------------------------------------------------


def _panels(view: "TableView", note_of: Mapping, compared: Mapping, open_marks: Mapping) -> list[dict]:
    """Panels as {"groups", "columns": [{bits, edge}], "families": [{"title", "rows"}]}."""
    table, tidy_frame = view.table, view.tidy
    cells = {
        (row["protocol"], row["metric"], row["method"], row["bits"]): row
        for row in tidy_frame.to_dict(orient="records")
    }
    mark = marks(tidy_frame, table)
    whole, marked = filled_marks(tidy_frame)
    found = by_cell(table, view.records)
    result = []
    for panel in panels(table):
        columns = [(group, bits) for group in panel.groups for bits in group.bits]
        pieces = by_family(table, panel.methods)
        families = []
        for of, methods in pieces:
            rows = []
            for method in methods:
                row = []
                for group, bits in columns:
                    cell = (group.protocol, group.metric, method, bits)
                    runs = found.get((group.protocol, method, bits), {})
                    seeds = {seed: score_of(record, group.metric)[0] for seed, record in runs.items()}
                    about = (
                        mark.get(cell, ""),
                        note_of.get(cell, ""),
                        compared.get(cell),
                        open_marks.get(cell),
                    )
                    row.append(_cell(table, cells.get(cell), seeds, *about, filled=cell in marked))
                index = panel.methods.index(method)
                name = row_title(table, method) + FILLED * (method in whole)
                rows.append({"index": index, "name": name, "id": method, "cells": row})
            title = (family_title(of) or "Other") if len(pieces) > 1 else ""
            families.append({"title": title, "rows": rows})
        if uncoded_in(tidy_frame, panel.groups):
            row = []
            for group, bits in columns:
                found_cell = cells.get((group.protocol, group.metric, UNCODED, bits))
                row.append(_cell(table, found_cell, {}, "", "", None, None))
            row = {"index": len(panel.methods), "name": UNCODED_TITLE, "id": None, "cells": row}
            families.append({"title": "", "rows": [row]})
        result.append(
            {
                "groups": panel.groups,
                "columns": [
                    {"bits": bits, "edge": index == 0 or group is not columns[index - 1][0]}
                    for index, (group, bits) in enumerate(columns)
                ],
                "families": families,
            }
        )
    return result


def _cell(
    table: Mapping,
    row: Mapping | None,
    seeds: Mapping,
    mark: str,
    note: str,
    comparison: Mapping | None,
    open_mark: str | None,
    filled: bool = False,
) -> dict | None:
    """A cell of scores for the template; `about` has what is known of it, a line for each thing."""
    if row is None:
        return None
    hole = math.isnan(row["mean"])
    about = []
    if row["status"] == UNCODED:
        about.append(f"{row['mean']:.5f}, ranked by the features themselves: no code")
    elif not hole:
        words = {"best": ", best of its column", "second": ", second of its column"}.get(mark, "")
        seed_word = "seed" if row["seeds"] == 1 else "seeds"
        about.append(f"Mean {row['mean']:.5f} over {row['seeds']} {seed_word}{words}")
    if row["status"] == LEADERBOARD:
        about.append("From the leaderboard, not run here")
    if row["collapsed"]:
        about.append(f"Collapsed codes: {row['collapsed']} of {row['seeds']} runs")
    if not math.isnan(row["std"]):
        each = ", ".join(f"{score:.4f}" for score in seeds.values() if score is not None)
        about.append(f"Seeds {each}; standard deviation {row['std']:.4f}")
        about.append(f"95% Student interval over seeds {row['ci_low']:.4f} to {row['ci_high']:.4f}")
    about += _comparison_words(table, comparison)
    if not math.isnan(row["difference"]):
        about.append(f"{_signed(row['difference'])} from the published value")
    if not hole and row["trials"] > 1:
        about.append(f"Hyper-parameters: the best of {row['trials']} trials ({row['budget']})")
    elif not hole and row["budget"] == AS_GIVEN:
        about.append("Hyper-parameters as given")
    if row["reason"]:
        about.append(row["reason"])
    return {
        "value": "" if hole else repr(row["mean"]),
        "mean": EN_DASH if hole else f"{row['mean']:.3f}",
        "std": "" if math.isnan(row["std"]) else f"{row['std']:.3f}",
        "published": as_published(row["published"]),
        "mark": mark,
        "open": "" if hole else open_mark or "",
        "open_words": OPEN_WORDS.get(comparison["verdict"], "not decided") if comparison is not None else "",
        "note": note,
        "collapsed": row["collapsed"] > 0,
        "filled": filled,
        "about": "\n".join(about),
    }


def _statistics(view: "TableView") -> pd.DataFrame:
    """The rows of `view.statistics` that are of this table."""
    if view.statistics is None:
        return pd.DataFrame()
    return view.statistics[view.statistics["table"] == view.table["name"]]


def _comparison_words(table: Mapping, comparison: Mapping | None) -> list[str]:
    """What the statistics say of a cell, in sentences."""
    if comparison is None:
        return []
    said = []
    if _known(comparison["ci_low"]) and _known(comparison["ci_high"]):
        said.append(
            f"95% bootstrap interval over queries {comparison['ci_low']:.4f} to {comparison['ci_high']:.4f}"
        )
    if comparison["verdict"] not in ("", "best") and _known(comparison["difference"]):
        words = f"{_signed(comparison['difference'])} from the best"
        if comparison.get("best"):
            words += (
                f" ({method_title(table, comparison['best'])})" if isinstance(comparison["best"], str) else ""
            )
        if _known(comparison["difference_low"]) and _known(comparison["difference_high"]):
            low, high = _signed(comparison["difference_low"]), _signed(comparison["difference_high"])
            words += f", interval {low} to {high}"
        if _known(comparison["p_adjusted"]):
            words += f", adjusted p {_equals(comparison['p_adjusted'])}"
        said.append(f"{words}: {comparison['verdict']}")
        if comparison["over_seeds"] == statistics.TOO_FEW and comparison["verdict"] != statistics.WORSE:
            known = not pd.isna(comparison["seeds_needed"])
            needed = f": about {int(comparison['seeds_needed'])} would decide" if known else ""
            said.append(f"{comparison['over_seeds'].capitalize()} to decide over seeds{needed}")
    return said


def _equals(p: float) -> str:
    text = _probability(p)
    return text if text.startswith("<") else f"= {text}"


def _sources(table: Mapping, published: Iterable[Mapping], printed: Mapping, shown: set) -> list[dict]:
    used = {source for cell, (_, source, _) in printed.items() if cell in shown}
    by_name = {source["source"]: source for source in published}
    return [by_name[name] for name in table.get("published") or [] if name in used]


def _remarks(table: Mapping, printed: Mapping, shown: set) -> list[tuple[str, str]]:
    """(methods, note) for the notes that published values on the page carry."""
    methods_of: dict[str, dict[str, None]] = {}
    for cell, (_, _, note) in printed.items():
        if note and cell in shown:
            methods_of.setdefault(note, {})[method_title(table, cell[2])] = None
    return [(", ".join(methods), note) for note, methods in methods_of.items()]


# -- claims -----------------------------------------------------------------------------


def _claim(claim: Mapping) -> dict:
    return {
        "id": re.sub(r"[^A-Za-z0-9]+", "-", str(claim["id"])),
        "claim": claim["claim"],
        "source": ", ".join(str(claim[part]) for part in ("source", "of") if claim.get(part)),
        "verdict": claim["verdict"],
        "summary": claim.get("summary") or "",
        "elsewhere": claim["elsewhere"][:1].upper() + claim["elsewhere"][1:],
        "figures": [
            {
                "words": figure["words"],
                "left": f"{figure['left']:.4f}" if _known(figure["left"]) else EN_DASH,
                "right": f"{figure['right']:.4f}" if _known(figure["right"]) else EN_DASH,
                "difference": _signed(figure["difference"]),
                "interval": f"{_signed(figure['low'])} to {_signed(figure['high'])}"
                if _known(figure["low"]) and _known(figure["high"])
                else EN_DASH,
                "p": _probability(figure["p"]),
                "p_adjusted": _probability(figure.get("p_adjusted")),
                "outcome": figure["outcome"],
                "reason": figure.get("reason") or "",
            }
            for figure in claim.get("figures") or []
        ],
    }


# -- runs -----------------------------------------------------------------------------------------


def _runs(table: Mapping, records: Iterable[Mapping]) -> list[dict]:
    """Every run that the table asks for, once, in its order; one without a record is missing."""
    found = by_cell(table, records)
    wanted: dict[tuple, list[Group]] = {}
    for group in groups(table):
        for method in group.methods:
            for bits in group.bits:
                wanted.setdefault((group.protocol, method, bits), []).append(group)
    result = []
    for (protocol, method, bits), asking in wanted.items():
        of_cell = found.get((protocol, method, bits), {})
        for seed in seeds_of(table, of_cell):
            record = of_cell.get(seed)
            run = (record or {}).get("run") or {}
            parts = run.get("seconds_by_part") or {}
            status = "missing" if record is None else record["status"]
            reason = NO_RECORD if record is None else record.get("reason") or ""
            if is_filled(record) and status == "done":
                status, reason = LEADERBOARD, "not run here"
            scores = [
                (metric, score)
                for metric in dict.fromkeys(group.metric for group in asking)
                if (score := score_of(record, metric)[0]) is not None
            ]
            result.append(
                {
                    "protocol": protocol,
                    "title": asking[0].title,
                    "method": method,
                    "name": method_title(table, method),
                    "bits": bits,
                    "seed": seed,
                    "status": status,
                    "reason": reason,
                    "scores": scores,
                    "numbers": [
                        _number(parts.get("fit"), 2),
                        _number(parts.get("encode"), 2),
                        _number(run.get("peak_memory_mb"), 0),
                    ],
                    "hyperparameters": sorted(
                        (name, _plain(value)) for name, value in (run.get("hyperparameters") or {}).items()
                    ),
                    "folder": "/".join(
                        quote(str(part), safe="") for part in ("runs", protocol, method, bits, seed)
                    )
                    if status == "done" and "folds" not in run  # whose runs are in folders of their own
                    else "",
                    "log": quote(str(run.get("log") or "").removeprefix("results/")),
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


def _download(name: str, text: str) -> dict:
    return {"name": name, "href": data_url(name, text)}


def _figures(view: "TableView", kinds: Sequence[str], colours: Sequence[str]) -> list[dict]:
    """Charts, each with the figures that show the same, and then the figures without a chart."""
    kind_of = {figure: kind.name for kind in KINDS if kind.name in kinds for figure in kind.figures}
    drawn: dict[str, list] = {}
    for name, drawing in view.figures.items():
        of_kind = drawn.setdefault(kind_of.get(name, name), [])
        of_kind.append(_drawing(drawing, name, view.table["name"], colours))
    result = []
    for kind in KINDS:
        if kind.name in kinds:
            result.append({"kind": kind, "title": kind.title, "drawings": drawn.pop(kind.name, [])})
    for drawings in drawn.values():
        result.append({"kind": None, "title": drawings[0]["title"], "drawings": drawings})
    return result


def _drawing(drawing: "Drawing", name: str, table: str, colours: Sequence[str]) -> dict:
    return {
        "title": drawing.title,
        "caption": drawing.caption,
        "svg": inline_svg(drawing.svg, f"{table}-{name}", drawing.title, colours),
        "name": f"{name}_{table}.svg",
        "packed": packed(drawing.svg),
    }


# -- arguments ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawing:
    """A static figure: title and caption in plain text, and the text of an SVG file."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True)
class TableView:
    """A table and everything that a page shows of it.

    table: its entry in the settings, with name, families and styles; records: what
    `records.table_records` gives, with "training"; tidy: of `frames.tidy`; published: sources of published
    values; figures: name -> Drawing; statistics: of `statistics.comparisons`, or None; claims: of
    `claims.judge`; files: name -> text of what the page offers for download;
    health: of `health.frame`, or None.
    """

    table: Mapping
    records: list
    tidy: pd.DataFrame
    published: list
    figures: Mapping[str, Drawing]
    statistics: pd.DataFrame | None
    claims: list[Mapping]
    files: Mapping[str, str]
    health: pd.DataFrame | None = None
