"""The objective of each method while it trains, or AP_T: whether it has settled, how far seeds differ."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reporting.drawing.axes import LABEL, NothingToDraw, heading, room_for, views
from reporting.drawing.method_styles import shades
from reporting.drawing.options import DEFAULT, Options
from reporting.drawing.sheets import Section, label_axes, sheet, sheet_width
from reporting.records.training_logs import COUNTERS, counts, have, number, with_objective
from reporting.tables.model import Group, Table
from reporting.tables.runs import Results
from tiebench import figure_style as look

TITLE = "Training"
CAPTION = (
    "How to read it. The objective of each method against its own steps: epochs, iterations, sweeps, or "
    "bits where it learns one after the other; one line per code length and seed, of more than 300 runs "
    "three seeds. Every method has an objective of its own, so panels do not share an axis and are not to be "
    "compared in height; the question is whether a line has become level where it ends. Where all methods "
    "train a network on images, the figure shows AP_T instead, on one axis: of training items among "
    "themselves, as they were seen in the second half of each epoch. Long logs are drawn "
    "with the points that matter to their shape. Methods that have nothing to train are left out. Seconds "
    "are in the figure of costs."
)
NEEDS = ("training",)

# Points of all lines together, but for their ends, which bounds the size of the file.
POINTS = 2400
# A figure of more lines than this shows the first seeds of each cell only.
LINES, FIRST_SEEDS = 300, 3
# What a dropped point may be off, as a share of what its line spans: less than can be seen.
TOLERANCE = 0.01
OBJECTIVE, AP = "objective", "ap"
# Quantity -> title, subtitle, label of an axis.
TEXTS = {
    OBJECTIVE: (
        "Objective while training",
        "One line per seed. Each method has its own objective, steps and axes.",
        "objective",
    ),
    AP: ("Average precision of training items while training", "One line per seed.", "AP_T"),
}


def draw(table: Table, results: Results, options: Options = DEFAULT) -> Figure:
    """The objective against the steps of each method: a panel per method, a line per bits and seed. AP_T, on
    one axis, where all logs have it.

    Lines of a log without an objective are left out, and methods without any. Steps are what the log counts
    ("epoch", "iteration", "sweep" or "bit"), its lines where it counts nothing or not upwards.
    Artists can be found by their gid: "line-<protocol>-<bits>-<method>-<seed>".

    Raises NothingToDraw where no record has a log with objectives.
    """
    shown = [(view, trained) for view in views(table) if (trained := _logs(view, results))]
    every = (log for _, trained in shown for of in trained.values() for log in of.values())
    quantity = AP if all(have(log, AP) for log in every) else OBJECTIVE
    found = [
        (view, {method: _lines(of, quantity) for method, of in trained.items()}) for view, trained in shown
    ]
    if not found:
        raise NothingToDraw(f"table {table.name}: no run has a training log, so there is no training to draw")
    if sum(len(of) for _, logs in found for _, of in logs.values()) > LINES:
        found = [(view, {method: _first_seeds(*log) for method, log in logs.items()}) for view, logs in found]
    kept = _kept(
        {
            (view.protocol, bits, method, seed): line
            for view, logs in found
            for method, (_, of) in logs.items()
            for (bits, seed), line in of.items()
        }
    )
    # A colour per code length, the same in all panels.
    lengths = sorted({bits for _, logs in found for _, of in logs.values() for bits, _ in of})
    colour_of = dict(zip(lengths, shades(len(lengths))))
    handles = [
        (str(bits), {"color": rgb, "linewidth": 1.4, "gid": look.Mark(f"handle-{bits}", bits=bits)})
        for bits, rgb in colour_of.items()
    ]
    sections = [Section(view.title, len(logs)) for view, logs in found]
    width, columns = sheet_width(sections, options.width)
    # Numbers of every size and sign stand beside the panels.
    of_methods = [of for _, logs in found for _, of in logs.values()]
    common = _scale(of_methods) if quantity == AP else None
    beside = room_for(tick for of in of_methods for tick in (common or _scale([of]))[1])
    title, subtitle, label = TEXTS[quantity]
    left, between = beside + LABEL, max(0.3, beside + 0.04)
    panel = (width - left - 0.12 - between * (columns - 1)) / columns
    with look.styled():
        figure, axes = sheet(
            *heading(options, title, subtitle),
            sections,
            width=width,
            columns=columns,
            body=max(0.8, 0.42 * panel),
            left=left,
            between=between,
            below=0.38,
            foot=0.0,
            legend=[("bits", handles)],
        )
        for (view, logs), of_section in zip(found, axes):
            for index, ((method, (steps, of)), here) in enumerate(zip(logs.items(), of_section)):
                name, said = f"panel-{view.protocol}-{method}", f"{steps};{label}"
                here.set_gid(look.Mark(name, method=method, panel=view.title, names=said))
                _panel(here, view.protocol, method, of, colour_of, kept, common or _scale([of]))
                named = look.shortened(table.method_title(method), panel, look.TEXT_SIZE)
                here.set_title(named, size=look.TEXT_SIZE, pad=4, loc="left", color=look.INK)
                ordinate = look.metric_text(AP) if quantity == AP else label
                label_axes([here], 1, steps, ordinate if index % columns == 0 else "")
    return figure


def _logs(view: Group, results: Results) -> dict[str, dict[tuple[int, int], list[Mapping]]]:
    """Method -> (bits, seed) -> the log of a run that has one."""
    found: dict[str, dict[tuple[int, int], list[Mapping]]] = {}
    for method in view.methods:
        for bits in view.bits:
            for seed, run in results.cell(view.protocol, method, bits).items():
                if log := with_objective(run.training):
                    found.setdefault(method, {})[bits, seed] = log
    return found


def _lines(logs: Mapping[tuple, list[Mapping]], quantity: str) -> tuple[str, dict]:
    """What the steps of the logs of a method are, and (bits, seed) -> (steps, values)."""
    name = next((name for name in COUNTERS if all(counts(log, name) for log in logs.values())), "")
    lines = {}
    for key, log in logs.items():
        steps = [number(line[name]) if name else step for step, line in enumerate(log, 1)]
        lines[key] = steps, [number(line[quantity]) for line in log]
    return name or "step", lines


def _first_seeds(steps: str, lines: Mapping[tuple, tuple]) -> tuple[str, dict]:
    """The lines of the first seeds of each code length."""
    kept: dict[int, list] = {}
    for bits, seed in sorted(lines):
        kept.setdefault(bits, []).append(seed)
    return steps, {key: line for key, line in lines.items() if key[1] in kept[key[0]][:FIRST_SEEDS]}


def deviations(x: Sequence[float], y: Sequence[float], tolerance: float = TOLERANCE) -> np.ndarray:
    """How far each point lies from a line drawn without it, as a share of what y spans: float64 (n,).

    A line through the points with a value above t is nowhere further than t from the others, upwards or
    downwards. Ends are infinite; values at or below `tolerance` are 0. The algorithm of Douglas and Peucker
    (1973): the farthest point divides the line in two.
    """
    steps, values = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    result = np.zeros(len(steps))
    result[[0, -1]] = np.inf
    span = np.ptp(values) or 1.0
    parts = [(0, len(steps) - 1, np.inf)]
    while parts:
        first, last, above = parts.pop()
        if last - first < 2:
            continue
        middle = slice(first + 1, last)
        rise, along = values[last] - values[first], steps[middle] - steps[first]
        off = np.abs(values[middle] - (values[first] + rise * along / (steps[last] - steps[first])))
        worst = int(np.argmax(off))
        # Never above the point that made this part: it is drawn first.
        value = min(off[worst] / span, above)
        if value > tolerance:
            worst += first + 1
            result[worst] = value
            parts += [(first, worst, value), (worst, last, value)]
    return result


def _kept(lines: Mapping[tuple, tuple]) -> dict[tuple, tuple[np.ndarray, np.ndarray]]:
    """Lines with the points to draw of them, about POINTS of all together: key -> (steps, objectives)."""
    off = {key: deviations(*line) for key, line in lines.items()}
    inside = np.sort(np.concatenate([values[np.isfinite(values)] for values in off.values()]))[::-1]
    least = inside[POINTS] if len(inside) > POINTS else 0.0
    return {
        key: (np.asarray(steps)[off[key] > least], np.asarray(objectives)[off[key] > least])
        for key, (steps, objectives) in lines.items()
    }


def _scale(of_methods: Iterable[Mapping]) -> tuple[tuple[float, float], list[float]]:
    """Limits and ticks of the lines of some methods."""
    values = [value for lines in of_methods for _, of in lines.values() for value in of]
    low, high = min(values), max(values)
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return (low - margin, high + margin), look.ticks_between(low - margin, high + margin, 3)


def _panel(
    axes: Axes,
    protocol: str,
    method: str,
    lines: Mapping,
    colour_of: Mapping,
    kept: Mapping,
    scale: tuple[tuple[float, float], list[float]],
) -> None:
    limits, ticks = scale
    steps = [step for steps, _ in lines.values() for step in steps]
    first, last = min(steps), max(steps)
    aside = 0.03 * (last - first) or 0.5
    axes.set_xlim(first - aside, last + aside)
    axes.set_ylim(*limits)
    look.style_axes(axes, look.ticks_between(first, last, 3, whole=True), ticks)
    axes.grid(visible=False)
    for bits, seed in lines:
        key = (protocol, bits, method, seed)
        steps, objectives = kept[key]
        axes.plot(
            steps,
            objectives,
            color=colour_of[bits],
            linewidth=0.7,
            # A single point does not make a line.
            marker="o" if len(steps) == 1 else "none",
            markersize=2.5,
            gid=look.Mark(
                "-".join(map(str, ("line", *key))),
                bits=bits,
                label=f"{bits} bits, seed {seed}",
                values=look.point_values(zip(steps, objectives)),
            ),
        )
