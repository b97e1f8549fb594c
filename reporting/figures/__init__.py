"""Figures of a table, one file each: `<name>.py` here draws `results/figures/<name>_<table>.pdf`.

A file is found by itself. It defines

* `TITLE`, `CAPTION`: plain text for the page that shows the figure (AP_T and NDCG_T get subscripts);
* `NEEDS`: what it reads of the records besides scores and curves, some of "training" and "per_query";
* `REQUIRES` (optional): which tables it applies to, see `applicable`;
* `draw(table, records, options)`: a matplotlib Figure.

TITLE, CAPTION, NEEDS and REQUIRES are literals: they are read without importing the file, so nothing here
loads matplotlib until something is drawn.
"""

import ast
import functools
import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from reporting.collapsed import COLLAPSED, collapsed_methods
from reporting.filled import FILLED, filled_methods
from reporting.titles import is_unseen, method_title
from tiebench.messages import did_you_mean

FOLDER = Path(__file__).parent
DEFAULTS = {"NEEDS": (), "REQUIRES": {}}
RECORD_PARTS = ("training", "per_query")
REQUIREMENTS = ("metrics", "methods", "columns", "unseen", "training_sizes")
# Inches and points between which a layout is possible.
WIDTHS, FONT_SIZES = (2.0, 40.0), (4.0, 30.0)


@dataclass(frozen=True)
class Description:
    """What the file of a figure says of it, read without importing it."""

    name: str
    title: str
    caption: str
    needs: tuple[str, ...]
    requires: Mapping


@dataclass(frozen=True)
class Options:
    """How a figure is drawn.

    width: of the figure in inches, None for the figure's own; font_size: of ordinary text in points (8 is
    the layout's own: other sizes scale lines and markers too); title: None for the figure's own, a text
    instead of it, or False for neither title nor subtitle.
    """

    width: float | None = None
    font_size: float = 8.0
    title: str | bool | None = None
    # Not for users: what every heading ends in, whatever the title.
    note: str = field(default="", metadata={"internal": True})

    def __post_init__(self):
        for name, (low, high) in (("width", WIDTHS), ("font_size", FONT_SIZES)):
            value = getattr(self, name)
            if value is None and name == "width":
                continue
            known = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not known or not low <= value <= high:
                unit = "inches" if name == "width" else "points"
                raise ValueError(
                    f"figure option {name} must be a number of {unit} from {low:g} to {high:g}, not {value!r}"
                )
        if self.title not in (None, False) and not isinstance(self.title, str):
            raise ValueError(f"figure option title must be a text, false or null, not {self.title!r}")


DEFAULT = Options()


def names() -> list[str]:
    """Names of all figures, sorted."""
    return sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


@functools.cache
def describe(name: str) -> Description:
    """What the file of the figure `name` says of it. Does not import it.

    Raises ValueError for an unknown name, and for a file that lacks a literal or has one that is wrong.
    """
    if name not in names():
        raise ValueError(f"no figure is named {name!r}{did_you_mean(name, names())}")
    path = FOLDER / f"{name}.py"
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from error
    said = dict(DEFAULTS)
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            if isinstance(target, ast.Name) and target.id in ("TITLE", "CAPTION", "NEEDS", "REQUIRES"):
                try:
                    said[target.id] = ast.literal_eval(node.value)
                except (ValueError, TypeError):
                    raise ValueError(f"{path}: {target.id} must be a literal") from None
    for key in ("TITLE", "CAPTION"):
        if not isinstance(said.get(key), str):
            raise ValueError(f"{path} must define {key}, a text")
    for key, values, known in (
        ("NEEDS", said["NEEDS"], RECORD_PARTS),
        ("REQUIRES", said["REQUIRES"], REQUIREMENTS),
    ):
        for value in values:
            if value not in known:
                raise ValueError(f"{path}: {key} has an unknown entry {value!r}{did_you_mean(value, known)}")
    return Description(name, said["TITLE"], said["CAPTION"], tuple(said["NEEDS"]), dict(said["REQUIRES"]))


def applicable(table: Mapping) -> list[str]:
    """Names of the figures that a table has something to draw for, sorted. Imports no figure.

    A figure's REQUIRES may ask for: "metrics", a block with one of these metrics; "columns", at least so many
    columns (protocol, metric and bits) in the table; "methods", at least so many methods that stand in all of
    its columns; "unseen", a block of seen and one of unseen classes; "training_sizes", at least so many sizes
    of training sets, see `training_sizes`. A table without blocks has no figures.
    """
    columns: dict[tuple, set] = {}
    for block in table["blocks"]:
        for bits in block["bits"]:
            cell = (block["protocol"], block["metric"], bits)
            columns.setdefault(cell, set()).update(block.get("methods") or table["methods"])
    if not columns:
        return []
    metrics = {metric for _, metric, _ in columns}
    everywhere = len(set.intersection(*columns.values()))

    unseen = {is_unseen(table, protocol) for protocol, _, _ in columns}
    sizes = len(set(training_sizes(table).values()))

    def suits(requires: Mapping) -> bool:
        return (
            bool(metrics & set(requires.get("metrics", metrics)))
            and len(columns) >= requires.get("columns", 1)
            and everywhere >= requires.get("methods", 0)
            and (len(unseen) == 2 or not requires.get("unseen"))
            and sizes >= requires.get("training_sizes", 0)
        )

    return [name for name in names() if suits(describe(name).requires)]


def training_sizes(table: Mapping) -> dict[str, int]:
    """Protocol -> training items of each class, for protocols that differ in nothing else; {} if none do."""
    found: dict[str, dict[str, int]] = {}
    for protocol, settings in (table.get("settings") or {}).items():
        if settings.get("training_per_class") is not None:
            rest = [item for item in settings["split"].items() if item[0] != "training"]
            key = repr((settings["dataset"], sorted(rest, key=lambda item: item[0])))
            found.setdefault(key, {})[protocol] = settings["training_per_class"]
    largest = max(found.values(), key=len, default={})
    return largest if len(largest) > 1 else {}


def select(
    table: Mapping, methods: Sequence[str] | None = None, blocks: Sequence[str] | None = None
) -> Mapping:
    """The part of a table with these methods and blocks; None: all of them.

    methods: names; blocks: "<protocol>" or "<protocol>/<metric>". Order stays the table's, and so do the
    styles: a method looks the same in every selection.

    Raises ValueError for a name that the table does not have, and where nothing is left.
    """
    known = list(
        dict.fromkeys(
            [*table["methods"], *(m for block in table["blocks"] for m in block.get("methods") or [])]
        )
    )
    chosen = known if methods is None else list(methods)
    for method in chosen:
        if method not in known:
            end = did_you_mean(method, known)
            raise ValueError(f"table {table['name']} has no method {method!r}{end}")
    named = [(block["protocol"], f"{block['protocol']}/{block['metric']}") for block in table["blocks"]]
    for one in blocks or []:
        if not any(one in both for both in named):
            end = did_you_mean(one, dict.fromkeys(name for both in named for name in both))
            raise ValueError(f"table {table['name']} has no block {one!r}{end}")
    kept = []
    for block, both in zip(table["blocks"], named):
        rows = [method for method in block.get("methods") or table["methods"] if method in chosen]
        if rows and (blocks is None or set(both) & set(blocks)):
            kept.append({**block, "methods": rows})
    if not kept:
        raise ValueError(f"table {table['name']}: no block has the chosen methods, so nothing to draw")
    return {**table, "blocks": kept}


def draw(
    kind: str,
    table: Mapping,
    records: Iterable[Mapping],
    *,
    methods: Sequence[str] | None = None,
    blocks: Sequence[str] | None = None,
    **options,
):
    """The figure `kind` of a table as a matplotlib Figure.

    methods, blocks: what to draw of the table, see `select`; options: fields of `Options` (width, font_size,
    title). records: of `reporting.records.table_records`, with what the figure's NEEDS says.

    Raises ValueError for an unknown figure, option, method or block, and `drawing.NothingToDraw`, a
    ValueError, where the records have nothing that the figure shows.
    """
    describe(kind)
    known = [entry.name for entry in fields(Options) if not entry.metadata.get("internal")]
    for name in options:
        if name not in known:
            end = did_you_mean(name, [*known, "methods", "blocks"])
            raise ValueError(f"figure {kind}: unknown option {name!r}{end}")
    chosen = Options(**options)
    drawing = importlib.import_module("reporting.drawing")
    styles = importlib.import_module("reporting.method_styles")
    module = importlib.import_module(f"reporting.figures.{kind}")
    part = select({**table, "styles": styles.method_styles(table)}, methods, blocks)
    records = list(records)
    if found := collapsed_methods(part, records):
        # One place for all figures: the mark is part of the title that they write, the note of their heading.
        marked = {m: {"title": method_title(part, m) + COLLAPSED} for m in found}
        part["styles"] = {m: style | marked.get(m, {}) for m, style in part["styles"].items()}
        cells = (f"{method_title(table, m)} at {', '.join(map(str, bits))} bits" for m, bits in found.items())
        chosen = replace(chosen, note=f"{COLLAPSED} Collapsed codes: {'; '.join(cells)}.")
    if filled := filled_methods(part, records):
        marked = {method: {"title": method_title(part, method) + FILLED} for method in filled}
        part["styles"] = {method: style | marked.get(method, {}) for method, style in part["styles"].items()}
        chosen = replace(chosen, note=f"{chosen.note} {FILLED} From the leaderboard.".strip())
    return drawing.draw_scaled(module.draw, part, records, chosen)
