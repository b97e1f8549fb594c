"""The data of a page's interactive charts, as small as they can be drawn from, and the look of each method.

Everything here is a pure function of a table and its results; what is returned can be written as JSON. The
script `assets/page.js` draws it.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reporting.drawing.method_styles import CONTRAST, contrast, method_style, method_styles
from reporting.tables.model import Group, Table
from reporting.tables.runs import PARTS, Results, Run
from tiebench.figure_style import SURFACE
from tiebench.metrics import label

MAX_POINTS = 60
# Of a table with more curves of training than this, a page has the first seeds alone, fewer points of each.
MANY_CURVES, FIRST_SEEDS, FEWER_POINTS = 300, 3, 30
DIGITS = 5
TRAINING_DIGITS = 4
COUNTERS = ("epoch", "iteration", "sweep", "bit")

# Markers of matplotlib as Chart.js point styles, turned by so many degrees.
MARKERS = {
    "o": ("circle", 0),
    "s": ("rect", 0),
    "^": ("triangle", 0),
    "v": ("triangle", 180),
    "D": ("rectRot", 0),
    "P": ("cross", 0),
    "X": ("crossRot", 0),
    "*": ("star", 0),
    "<": ("triangle", 270),
    ">": ("triangle", 90),
    "p": ("rectRounded", 0),
    "h": ("rectRounded", 45),
}
# Point styles that have no inside.
STROKES = ("cross", "crossRot", "star")
# Pixels.
LINE_WIDTH = 1.6
# The page's two backgrounds are white and this.
DARK_SURFACE = "#15181B"


@dataclass(frozen=True)
class Kind:
    """A chart that a page may have: title and caption for people, what it shows in a sentence (`says`), and
    the static figures that show the same (`figures`: names of modules of reporting.figures)."""

    name: str
    title: str
    caption: str
    says: str
    figures: tuple[str, ...] = ()


KINDS = (
    Kind(
        "ranges",
        "What ties can do to the score",
        "A bar runs from the score of the worst order of tied items to that of the best: a program that "
        "breaks ties its own way can report any value on it. The dot is the exact mean over all orders.",
        "Bar chart, one bar per method, from the score of the worst order of tied items to that of the best, "
        "with a dot at the exact mean over all orders",
        ("tie_ranges",),
    ),
    Kind(
        "bits",
        "Score against code length",
        "Means over seeds. The tooltip gives the smallest and the largest seed.",
        "Line chart of the score against the code length in bits, one line per method",
        ("metric_by_bits",),
    ),
    Kind(
        "recall",
        "Precision and recall",
        "One point per Hamming radius: precision and recall of the items within it, means over queries and "
        "seeds. Radius 0 is at the left.",
        "Line chart of precision against recall, one line per method and one point per Hamming radius",
        ("precision_recall",),
    ),
    Kind(
        "precision",
        "Precision among the first K",
        "The expected share of relevant items among the K nearest, over all orders of tied items.",
        "Line chart of the precision among the first K items against K on a logarithmic axis, one line per "
        "method",
        ("precision_at",),
    ),
    Kind(
        "distances",
        "Hamming distances",
        "Shares of the relevant and of the irrelevant pairs of query and item at each distance: the less the "
        "two overlap, the better the ranking.",
        "Chart of the shares of relevant and of irrelevant pairs at each Hamming distance, for one method",
        ("distances",),
    ),
    Kind(
        "cost",
        "Score against time",
        "Means over seeds. Training is the whole fit, encoding that of database and queries.",
        "Scatter chart of the score against seconds on a logarithmic axis, one point per method",
        ("cost",),
    ),
    Kind(
        "training",
        "Training",
        "The training objective against seconds. Objectives of different methods have different units: with "
        "all of them, each runs from its own smallest value (0) to its largest (1), one seed. A large table "
        "has the first three seeds.",
        "Line chart of the training objective against seconds of training",
        ("training",),
    ),
)


# -- methods --------------------------------------------------------------------------------------


def chart_styles(tables: Iterable[Table]) -> dict[str, dict]:
    """How each method of the tables is drawn, as in the figures (`method_styles.method_style`), for Chart.js.

    {method: {"name", "colour", "dark", "marker", "rotation", "fill", "dash"}}: `dark` stands for the colour
    on the dark page; marker is a point style, rotation in degrees, fill "filled", "hollow" or "stroke"; dash
    a list of lengths of strokes and gaps in pixels ([] for a solid line).
    """
    tables = list(tables)
    methods = dict.fromkeys(method for table in tables for method in table.methods)
    styles = {method: of for table in tables for method, of in table.styles.items()}
    together = Table(name="", groups=(), methods=tuple(methods), seeds=(), styles=styles)
    together = replace(together, styles=method_styles(together))
    result = {}
    for method in together.styles:
        drawn = method_style(together, method)
        marker, rotation = MARKERS[drawn["marker"]]
        hollow = "hollow" if drawn["markerfacecolor"] == SURFACE else "filled"
        solid = drawn["linestyle"] == "solid"
        result[method] = {
            "name": together.method_title(method),
            "colour": drawn["color"],
            "dark": on_dark(drawn["color"]),
            "marker": marker,
            "rotation": rotation,
            "fill": "stroke" if marker in STROKES else hollow,
            "dash": [] if solid else [short(part * LINE_WIDTH, 3) for part in drawn["linestyle"][1]],
        }
    return result


def on_dark(rgb: str) -> str:
    """The colour itself if it is visible on the dark page, else the nearest lighter one that is."""
    channels = [int(rgb[start : start + 2], 16) for start in (1, 3, 5)]
    for step in range(21):
        mixed = [round(part + (255 - part) * step / 20) for part in channels]
        lighter = "#" + "".join(f"{part:02X}" for part in mixed)
        if contrast(lighter, DARK_SURFACE) >= CONTRAST:
            return lighter
    raise AssertionError("white is visible on the dark page")


# -- data -----------------------------------------------------------------------------------------


def charts(table: Table, results: Results) -> dict:
    """The numbers behind the charts of a table, ready for JSON; floats to five significant digits.

    {"blocks": [...], "runs": {protocol: {bits: {method: ...}}}, "cuts": [[K, ...], ...], "kinds": [...]}:

    * a block has protocol, title, metric, name ([text, subscript]), bits, methods; `scores`: method -> per
      bits [mean, smallest, largest seed, number of seeds] or None; `ranges`: method -> per bits [worst order,
      exact mean, best order], means over the seeds that have all three, or None;
    * of each cell of `runs` (bits as text), means over seeds: precision, recall (per radius), relevant,
      irrelevant (per distance), cuts (index into "cuts") and precision_at; seconds as fit and encode; and
      training: per seed {"seed", "counter", "step", "seconds", "objective"}, at most 60 points of it, first
      and last among them; in a table of more than 300 such curves the first three seeds and 30 points. A cell
      has only what its runs have;
    * kinds: names of those of KINDS for which there is anything to draw.

    Holes are None or absent. Raises what `Run.outcome` raises.
    """
    blocks: list[dict] = []
    runs: dict[str, dict[str, dict]] = {}
    cuts: dict[tuple, int] = {}
    curves = sum(len(run.training) > 1 for run in results)
    seeds, points = (FIRST_SEEDS, FEWER_POINTS) if curves > MANY_CURVES else (None, MAX_POINTS)
    for group in table.groups:
        name, subscript = label(group.metric)
        blocks.append(
            {
                "protocol": group.protocol,
                "title": group.title,
                "metric": group.metric,
                "name": [name, subscript],
                "bits": list(group.bits),
                "methods": list(group.methods),
                "scores": _over(group, partial(_scores, results, group)),
                "ranges": _over(group, partial(_range, results, group)),
            }
        )
        for bits in group.bits:
            for method in group.methods:
                cell = list(results.cell(group.protocol, method, bits).values())
                if entry := _curves(cell, cuts) | _seconds(cell) | _training(cell, seeds, points):
                    runs.setdefault(group.protocol, {}).setdefault(str(bits), {})[method] = entry
    data = {"blocks": blocks, "runs": runs, "cuts": [list(values) for values in cuts]}
    return data | {"kinds": _kinds(data)}


def _over(group: Group, of_cell: Callable[[str, int], list | None]) -> dict[str, list]:
    """Method -> one value per bits; methods without any value are left out."""
    result = {}
    for method in group.methods:
        row = [of_cell(method, bits) for bits in group.bits]
        if any(value is not None for value in row):
            result[method] = row
    return result


def _scores(results: Results, group: Group, method: str, bits: int) -> list | None:
    scores = list(results.scores(group.protocol, group.metric, method, bits).values())
    if not scores:
        return None
    return [short(statistics.mean(scores)), short(min(scores)), short(max(scores)), len(scores)]


def _range(results: Results, group: Group, method: str, bits: int) -> list | None:
    triples = results.ranges(group.protocol, group.metric, method, bits)
    return [short(statistics.mean(column)) for column in zip(*triples, strict=True)] or None


def _curves(cell: Sequence[Run], cuts: dict[tuple, int]) -> dict:
    given = [run.curves for run in cell if run.status == "done" and run.curves]
    result: dict[str, Any] = {}
    for name, curve in (
        ("precision", "precision"),
        ("recall", "recall"),
        ("relevant", "relevant_at"),
        ("irrelevant", "irrelevant_at"),
    ):
        if mean := _mean_curve([curves[curve] for curves in given if curves.get(curve)]):
            result[name] = mean
    if "precision" not in result or "recall" not in result:
        result = {name: values for name, values in result.items() if name not in ("precision", "recall")}
    at = [curves for curves in given if curves.get("cuts") and curves.get("precision_at")]
    at = [curves for curves in at if curves["cuts"] == at[0]["cuts"]]
    if mean := _mean_curve([curves["precision_at"] for curves in at]):
        result["cuts"] = cuts.setdefault(tuple(at[0]["cuts"]), len(cuts))
        result["precision_at"] = mean
    return result


def _mean_curve(curves: Sequence[Sequence]) -> list | None:
    """Mean over seeds at each place, of the seeds that have a value there; None where no seed has one."""
    curves = [curve for curve in curves if len(curve) == len(curves[0])]
    means = []
    for place in zip(*curves, strict=True):
        known = [value for value in place if value is not None and math.isfinite(value)]
        means.append(short(statistics.mean(known)) if known else None)
    return means if any(mean is not None for mean in means) else None


def _seconds(cell: Sequence[Run]) -> dict:
    result = {}
    for part in PARTS:
        if given := [seconds for run in cell if (seconds := run.seconds_of(part)) is not None]:
            result[part] = short(statistics.mean(given))
    return result


def _training(cell: Sequence[Run], seeds: int | None, points: int) -> dict:
    """seeds: how many to keep, None for all; points: of each curve."""
    curves: list[dict] = []
    for run in cell:
        if len(curves) == seeds:
            break
        lines = [
            (row, line)
            for row, line in enumerate(run.training, start=1)
            if line.get("objective") is not None and math.isfinite(line["objective"])
        ]
        if len(lines) < 2:
            continue
        counter = next((name for name in COUNTERS if name in lines[0][1]), "")
        lines = [lines[index] for index in thinned(len(lines), points)]
        curves.append(
            {
                "seed": run.seed,
                "counter": counter or "step",
                "step": [line.get(counter, row) for row, line in lines],
                "seconds": [short(line.get("seconds", math.nan), TRAINING_DIGITS) for _, line in lines],
                "objective": [short(line["objective"], TRAINING_DIGITS) for _, line in lines],
            }
        )
    return {"training": curves} if curves else {}


def _kinds(data: Mapping) -> list[str]:
    cells = [cell for of_bits in data["runs"].values() for row in of_bits.values() for cell in row.values()]
    scored = any(block["scores"] for block in data["blocks"])
    there = {
        "ranges": any(block["ranges"] for block in data["blocks"]),
        "bits": any(block["scores"] and len(block["bits"]) > 1 for block in data["blocks"]),
        "recall": any("recall" in cell for cell in cells),
        "precision": any("precision_at" in cell for cell in cells),
        "distances": any("relevant" in cell or "irrelevant" in cell for cell in cells),
        "cost": scored and any("fit" in cell or "encode" in cell for cell in cells),
        "training": any("training" in cell for cell in cells),
    }
    return [kind.name for kind in KINDS if there[kind.name]]


def thinned(count: int, most: int = MAX_POINTS) -> list[int]:
    """At most `most` of the indices 0 to count - 1, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def short(value: float, digits: int = DIGITS) -> float | int | None:
    """A number to so many significant digits, whole ones as int; None for what is not finite."""
    if not math.isfinite(value):
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded
