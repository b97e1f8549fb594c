"""The tie-range figure: where its bars and dots stand, what it says of holes, and that its bytes repeat."""

import colorsys
import functools
import io
import itertools
import re
import statistics
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from models import block, model_of, record, small, table_of
from scipy.optimize import minimize
from styles import STYLES, artists

from reporting.drawing import axes as drawing
from reporting.drawing import method_styles
from reporting.figures import tie_ranges
from tiebench import figure_style

BITS = (12, 24, 32, 48)
METHODS = ("talr_ap", "mihash", "lsh")


table = functools.partial(
    small, blocks=[block("digits", "ap", BITS, title="Digits"), block("digits", "ndcg", BITS)]
)
AP = {"blocks": table()["blocks"][:1]}


def records(protocol="digits"):
    result = []
    for (row, method), bits, seed in itertools.product(enumerate(METHODS), BITS, (0, 1, 2)):
        middle = 0.8 - 0.2 * row + bits / 500 + seed / 97
        scores = {"ap": middle, "ap_min": middle - 1.1 / bits, "ap_max": middle + 0.9 / bits}
        scores |= {"ndcg": middle, "ndcg_min": middle - 0.7 / bits, "ndcg_max": middle + 1.3 / bits}
        result.append(record(method, bits, seed, scores, protocol))
    return result


@pytest.fixture(scope="module")
def plain():
    """The figure of AP, to look at."""
    return tie_ranges.draw(*model_of(table(**AP), records()))


def test_bars_end_at_the_means_of_both_ends_and_dots_stand_at_the_metric():
    found = artists(tie_ranges.draw(*model_of(table(), records())))
    assert len(found) == 2 * 2 * len(METHODS) * len(BITS)
    blocks = {"ap": "digits", "ndcg": "digits-ndcg"}
    for metric, method, bits in itertools.product(blocks, METHODS, BITS):
        runs = [r["metrics"] for r in records() if (r["method"], r["bits"]) == (method, bits)]
        names = (f"{metric}_min", metric, f"{metric}_max")
        low, middle, high = (statistics.mean(run[name] for run in runs) for name in names)
        bar, dot = (found[f"{kind}-{blocks[metric]}-{bits}-{method}"] for kind in ("bar", "dot"))
        assert bar.get_x() == low
        assert bar.get_x() + bar.get_width() == pytest.approx(high, abs=1e-15)
        assert list(dot.get_xdata()) == [middle]
        assert bar.get_y() < dot.get_ydata()[0] < bar.get_y() + bar.get_height()
        colour = method_styles.colour(table_of(table()), method)
        assert matplotlib.colors.to_hex(bar.get_facecolor()).upper() == colour
        assert matplotlib.colors.to_hex(dot.get_markerfacecolor()) == "#000000"
        assert f"{middle:.3f}" in [text.get_text() for text in dot.axes.texts]


def test_panels_share_an_axis_that_holds_everything(plain):
    assert [axes.get_title(loc="left") for axes in plain.axes] == [f"{bits} bits" for bits in BITS]
    assert len({axes.get_xlim() for axes in plain.axes}) == 1
    low, high = plain.axes[0].get_xlim()
    values = [run["metrics"][name] for run in records() for name in ("ap_min", "ap_max")]
    assert low <= statistics.mean(values) <= high
    said = [text.get_text() for text in plain.texts]
    assert "mAP over all orders of tied items (● tie-aware AP_T)" in said
    assert [text.get_text() for text in plain.axes[0].get_yticklabels()] == ["TALR-AP", "MIHash", "LSH"]


def test_a_hole_is_said_and_partial_seeds_are_used():
    some = [r for r in records() if not (r["method"] == "lsh" and r["bits"] == 48)]
    some = [r for r in some if not (r["method"] == "mihash" and r["bits"] == 12 and r["seed"] > 0)]
    figure = tie_ranges.draw(*model_of(table(**AP), some))
    found = artists(figure)
    assert "bar-digits-48-lsh" not in found
    assert [text.get_text() for axes in figure.axes for text in axes.texts].count("– no scores") == 1
    only = next(r for r in some if (r["method"], r["bits"]) == ("mihash", 12))
    assert list(found["dot-digits-12-mihash"].get_xdata()) == [only["metrics"]["ap"]]


def test_nothing_scored_at_all_still_draws():
    figure = tie_ranges.draw(*model_of(table(**AP), []))
    assert [text.get_text() for text in figure.axes[0].texts] == ["– no scores"] * 3
    assert figure_style.render(figure, "png").startswith(b"\x89PNG")


def test_a_table_without_a_range_is_refused():
    blocks = [block("digits", "precision_radius_2", [12])]
    with pytest.raises(ValueError, match="table small: no block has a metric with a range"):
        tie_ranges.draw(*model_of(table(blocks=blocks), records()))


def test_styles_are_those_of_the_table():
    styles = method_styles.method_styles(table_of(table()))
    assert {m: (s.title, s.colour, s.marker) for m, s in styles.items()} == {
        m: (s["title"], s["colour"], s["marker"]) for m, s in STYLES.items()
    }
    assert method_styles.method_styles(replace(table_of(table()), styles=styles)) == styles
    assert len(set(shapes(styles))) == len(STYLES)  # which tell them apart without colour
    for method in STYLES:
        assert method_styles.method_style(table_of(table()), method)["color"] == STYLES[method]["colour"]


def shapes(styles):
    return [(style.marker, style.filled) for style in styles.values()]


@pytest.mark.parametrize(
    "unknown", [["itq", "sdh"], ["a", "b", "c"], [f"my_method_{number}" for number in range(11)]]
)
@pytest.mark.parametrize("styled", [False, True])
def test_methods_without_a_style_share_no_colour_and_no_marker(unknown, styled):
    given = {m: s for m, s in STYLES.items() if m not in unknown} if styled else {}
    own = table(methods=[*unknown, "talr_ap"], styles=given)
    styles = method_styles.method_styles(table_of(own))
    assert styles == method_styles.method_styles(table_of(own))
    assert len(set(shapes(styles))) == len(styles)
    seen = {method: lab(linear(style.colour)) for method, style in styles.items()}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 8, (one, other)
    for method in unknown:
        assert 1.05 / (XYZ[1] @ linear(styles[method].colour) + 0.05) >= 2.2, method
    for method in given:
        assert styles[method].colour == STYLES[method]["colour"]


def test_variants_have_shades_of_the_colour_of_their_class_and_markers_of_their_own():
    names = ["talr_ap", "talr_ap_4", "talr_ap_40", "mihash"]
    given = {name: STYLES["talr_ap"] | {"title": name} for name in names[:3]} | {"mihash": STYLES["mihash"]}
    styles = method_styles.method_styles(table_of(table(methods=names, styles=given)))
    assert styles["talr_ap"].colour == STYLES["talr_ap"]["colour"]
    assert len({style.colour for style in styles.values()}) == 4
    hues = [colorsys.rgb_to_hls(*matplotlib.colors.to_rgb(styles[name].colour))[0] for name in names]
    assert hues[1] == pytest.approx(hues[0], abs=0.01) and hues[2] == pytest.approx(hues[0], abs=0.01)
    assert len(set(shapes(styles))) == 4
    assert shapes(styles)[:2] == [("o", True), ("o", False)]


@pytest.mark.parametrize("wrong", [{"colour": None}, {"marker": "?"}, {"marker": None}, None])
def test_a_style_that_cannot_be_drawn_is_replaced(wrong):
    own = table(styles=STYLES | {"lsh": wrong and STYLES["lsh"] | wrong})
    style = method_styles.method_style(table_of(own), "lsh")
    assert re.fullmatch("#[0-9A-F]{6}", style["color"]) and style["marker"] in method_styles.MARKERS


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [([0.4], 0.344, 0.456), ([0.4, 0.4001], 0.344, 0.4561), ([0.999], 0.894, 1.006), ([0.0], -0.006, 0.106)],
)
def test_an_axis_of_one_score_does_not_magnify_its_last_digits(scores, low, high):
    limits, ticks = drawing.score_axis(scores)
    assert limits == pytest.approx((low, high), abs=1e-3)
    assert len(ticks) >= 3
    assert drawing.score_axis([0.2, 0.8])[0] == pytest.approx((0.164, 0.836))


COLOURS = {method: style["colour"] for method, style in STYLES.items()}
# Machado, Oliveira and Fernandes (2009), full deficiency, for linear RGB: a matrix, row after row.
SIMULATED = {
    "none": "1 0 0  0 1 0  0 0 1",
    "protanopia": "0.152286 1.052583 -0.204868  0.114503 0.786281 0.099216  -0.003882 -0.048116 1.051998",
    "deuteranopia": "0.367322 0.860646 -0.227968  0.280085 0.672501 0.047413  -0.011820 0.042940 0.968881",
    "tritanopia": "1.255528 -0.076749 -0.178779  -0.078411 0.930809 0.147602  0.004733 0.691367 0.303900",
}
# CIE XYZ of linear sRGB; the second row is the relative luminance.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour):
    values = np.array(matplotlib.colors.to_rgb(colour))
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIELAB of linear sRGB, white at (100, 0, 0)."""
    share = (XYZ @ np.clip(rgb, 0, 1)) / XYZ.sum(axis=1)
    f = np.where(share > (6 / 29) ** 3, np.cbrt(share), share / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize(
    "kind, least", [("none", 19), ("protanopia", 7), ("deuteranopia", 8), ("tritanopia", 8)]
)
def test_colours_stay_apart_with_colour_blindness(kind, least):
    matrix = np.array(SIMULATED[kind].split(), dtype=float).reshape(3, 3)
    seen = {method: lab(matrix @ linear(colour)) for method, colour in COLOURS.items()}
    apart = {(m, n): float(np.linalg.norm(seen[m] - seen[n])) for m in seen for n in seen if m < n}
    closest = min(apart, key=apart.get)
    assert apart[closest] >= least, (closest, apart[closest])
    # On white, by the contrast of WCAG 2; the yellow of Okabe and Ito has 1.3.
    assert all(1.05 / (XYZ[1] @ linear(colour) + 0.05) >= 2.2 for colour in COLOURS.values())


@pytest.mark.parametrize("seed", range(8))
def test_names_are_spread_out_by_least_squares(seed):
    generator = np.random.default_rng(seed)
    wanted = np.sort(generator.uniform(0, 2, int(generator.integers(1, 9))))
    gap, low, high = 0.2, 0.1, 1.9
    placed = np.array(drawing.spread_out(wanted.tolist(), gap, low, high))
    assert (np.diff(placed) >= gap - 1e-12).all()
    assert placed[0] >= low - 1e-12 and placed[-1] <= high + 1e-12
    constraints = [
        {"type": "ineq", "fun": lambda y: np.concatenate([np.diff(y) - gap, [y[0] - low, high - y[-1]]])}
    ]
    start, options = np.linspace(low, high, len(wanted)), {"maxiter": 500, "ftol": 1e-14}
    best = minimize(lambda y: ((y - wanted) ** 2).sum(), start, constraints=constraints, options=options)
    assert best.success
    assert ((placed - wanted) ** 2).sum() == pytest.approx(best.fun, abs=1e-7)


def test_ticks_by_hand():
    assert figure_style.ticks_between(0, 1, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert figure_style.ticks_between(1, 3, 4, whole=True) == [1, 2, 3]
    assert drawing.log_ticks(0.9, 59000) == [1, 10, 100, 1000, 10000]
    assert drawing.log_ticks(1e-6, 1e6, 6) == pytest.approx([1e-6, 1e-3, 1, 1e3, 1e6])
    assert drawing.log_ticks(0.15, 9) == pytest.approx([0.2, 0.5, 1, 2, 5])
    texts = [figure_style.tick_text(value) for value in (0, 0.25, -0.5, 999, 1000, 12500, 2e6, 0.1 + 0.2)]
    assert texts == ["0", "0.25", "−0.5", "999", "1k", "12.5k", "2M", "0.3"]


def test_text_is_cut_or_wrapped_to_a_width():
    whole = "one two three four"
    wide = figure_style.text_width(whole, 8)
    assert figure_style.shortened(whole, wide, 8) == whole
    cut = figure_style.shortened(whole, 0.6 * wide, 8)
    assert cut.endswith("…") and whole.startswith(cut[:-1])
    assert 0.4 * wide < figure_style.text_width(cut, 8) <= 0.6 * wide
    lines = figure_style.wrapped(whole, 0.6 * wide, 8)
    assert len(lines) == 2 and " ".join(lines) == whole
    assert all(figure_style.text_width(line, 8) <= 0.6 * wide for line in lines)
    assert figure_style.wrapped("", 1.0, 8) == []


def test_metrics_are_named_with_a_subscript():
    assert figure_style.metric_text("ndcg") == {"text": r"$\mathregular{NDCG_{T}}$", "parse_math": True}
    assert figure_style.metric_text("ap@1000") == {"text": "AP@1000"}


def test_coordinates_of_an_svg_are_short_and_right(plain):
    text = figure_style.render(plain, "svg").decode()
    whole = io.BytesIO()
    with figure_style.styled():
        plain.savefig(whole, format="svg", dpi=72, metadata={"Date": None, "Creator": None})
    paths = [re.findall(r' d="([^"]+)"', svg) for svg in (text, whole.getvalue().decode())]
    numbers = [[float(n) for d in of for n in re.findall(r"-?[\d.]+", d)] for of in paths]
    assert len(numbers[0]) > 100 and np.abs(np.subtract(*numbers)).max() <= 0.005001
    assert not re.search(r"\d\.\d{3}", " ".join(paths[0]))
    # Words keep their decimals.
    assert re.findall(r">(\d\.\d{3})<", text) == re.findall(r">(\d\.\d{3})<", whole.getvalue().decode())


@pytest.mark.thorough
def test_files_carry_no_date_and_text_stays_text(plain, tmp_path):
    for kind in ("pdf", "svg", "png"):
        figure_style.save(plain, tmp_path / f"figure.{kind}")
    with pytest.raises(ValueError, match=r"\.pdf, \.svg or \.png, not \.jpg"):
        figure_style.save(plain, tmp_path / "figure.jpg")
    files = {path.suffix: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(files) == {".pdf", ".svg", ".png"}
    for word in (b"CreationDate", b"dc:date", b"Matplotlib v", matplotlib.__version__.encode()):
        assert not [kind for kind, data in files.items() if word in data]
    root = ElementTree.fromstring(files[".svg"])
    words = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"TALR-AP", "12 bits", "mAP over all orders of tied items (● tie-aware AP_T)"} <= set(words)
    assert b"/FontFile2" in files[".pdf"]  # TrueType, as type 42 is; type 3 has none
