"""Swatches of methods: lines and markers of the figures, in colours that light and dark pages show."""

import json
import re
import string

import pytest
from matplotlib.markers import MarkerStyle
from models import small, table_of
from styles import STYLES

from reporting.drawing import method_styles
from reporting.page import colours, swatches

MANY = [f"method {number}" for number in range(60)]


def table(methods):
    return table_of(small(methods=list(methods)))


def test_contrast_is_that_of_wcag():
    # worked examples: black on white, and the two greys that bracket the 4.5 : 1 of text on white
    assert method_styles.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert method_styles.contrast("#FFFFFF", "#767676") == pytest.approx(4.54, abs=0.005)
    assert method_styles.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


def test_every_method_can_be_seen_in_the_dark_and_keeps_its_colour_in_the_light():
    of = table(MANY)
    styles = method_styles.method_styles(of)
    shown = {method: swatch for method, (_, swatch) in swatches.swatches([of]).items()}
    lighter = colours.lighter(shown.values())
    assert lighter
    for method, swatch in shown.items():
        rgb = styles[method].colour
        if method_styles.contrast(rgb, colours.DARK_SURFACE) >= 3:
            assert f'style="color: {rgb}"' in swatch
        else:
            assert f'style="color: var(--c{rgb[1:].lower()})"' in swatch
            assert method_styles.contrast(lighter[rgb.lower()], colours.DARK_SURFACE) >= 3


def test_a_shade_of_the_scheme_is_a_variable():
    shades = {"#000000": "currentColor", "#ffffff": "var(--surface)", "#D0D0D0": "var(--line)"}
    assert {rgb: colours.themed(rgb) for rgb in shades} == shades
    assert colours.themed("#E69F00") == "#E69F00"
    assert colours.lighter(["fill:var(--c332288)", "var(--line)"]) == {"#332288": colours.on_dark("#332288")}


def test_markers_and_dashes_are_those_of_the_figures():
    """By the styles of the figures, where dashes are in line widths: 1.5 pixels to a point, 1.1 to a line."""
    of = table(STYLES)
    shown = swatches.swatches([of])
    shapes = set()
    for method, (title, swatch) in shown.items():
        style = method_styles.method_style(of, method)
        assert title == STYLES[method]["title"]
        found = re.search(
            r'd="M0 6h28"(?: stroke-dasharray="([^"]*)")?/><path class="(\w+)" d="([^"]*)"', swatch
        )
        dashes, fill, outline = found.groups()
        solid = style["linestyle"] == "solid"
        given = [] if solid else list(style["linestyle"][1])
        assert [float(part) / 1.65 for part in (dashes or "").split()] == pytest.approx(given, rel=0.01)
        assert fill == ("hollow" if style["markerfacecolor"] == "#FFFFFF" else "filled")
        shapes.add(json.dumps([dashes, fill, outline]))
    assert len(shapes) == len(shown)


def test_a_page_of_several_tables_lists_methods_as_the_figures_of_the_first_that_has_them():
    first, second = table(["a", "b"]), table(["b", "c", "a"])
    found = swatches.swatches([first, second])
    assert found == swatches.swatches([second]) | swatches.swatches([first])
    assert found["a"] != swatches.swatches([second])["a"]


@pytest.mark.parametrize("marker", sorted(method_styles.DASHES))
def test_an_outline_has_the_corners_of_the_marker_about_the_middle_of_its_swatch(marker):
    outline = swatches.marker_outline(marker, 6.0)
    plain = outline.translate(str.maketrans(string.ascii_letters, " " * 52))
    numbers = [float(number) for number in plain.split()]
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    corners = path.interpolated(1).get_extents()
    assert min(numbers[::2]) >= 14 + 6 * corners.x0 - 0.3 and max(numbers[::2]) <= 14 + 6 * corners.x1 + 0.3
    assert min(numbers[1::2]) >= 6 - 6 * corners.y1 - 0.3 and max(numbers[1::2]) <= 6 - 6 * corners.y0 + 0.3
    assert max(numbers[::2]) - min(numbers[::2]) > 4 and max(numbers[1::2]) - min(numbers[1::2]) > 4
