"""The tie-range figure: where its bars and dots stand, what it says of holes, and that its bytes repeat."""

import re
import statistics
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib
import pytest

from workflow.reporting import drawing
from workflow.reporting.figures import tie_ranges

BITS = (12, 24, 32, 48)
METHODS = ("talr_ap", "mihash", "lsh")


def table(**changes):
    plain = {
        "name": "small",
        "title": "A small table",
        "seeds": [0, 1, 2],
        "methods": list(METHODS),
        "blocks": [
            {"protocol": "digits", "metric": "ap", "bits": list(BITS), "title": "Digits"},
            {"protocol": "digits", "metric": "ndcg", "bits": list(BITS)},
        ],
    }
    return plain | changes


def records(protocol="digits", seeds=(0, 1, 2)):
    result = []
    for row, method in enumerate(METHODS):
        for bits in BITS:
            for seed in seeds:
                middle = 0.8 - 0.2 * row + bits / 500 + seed / 97
                scores = {
                    "ap": middle,
                    "ap_min": middle - 1.1 / bits,
                    "ap_max": middle + 0.9 / bits,
                    "ndcg": middle,
                }
                plain = {"protocol": protocol, "method": method, "bits": bits, "seed": seed, "reason": None}
                result.append(plain | {"status": "done", "metrics": scores, "run": {}})
    return result


def artists(figure):
    """gid -> artist, of everything that has a gid."""
    return {artist.get_gid(): artist for artist in figure.findobj() if artist.get_gid()}


def test_bars_end_at_the_means_of_ap_min_and_ap_max_and_dots_stand_at_ap():
    figure = tie_ranges.draw(table(), records())
    found = artists(figure)
    assert len(found) == 2 * len(METHODS) * len(BITS)
    for method in METHODS:
        for bits in BITS:
            runs = [r["metrics"] for r in records() if (r["method"], r["bits"]) == (method, bits)]
            low, middle, high = (
                statistics.mean(run[name] for run in runs) for name in ("ap_min", "ap", "ap_max")
            )
            bar, dot = (found[f"{kind}-digits-{bits}-{method}"] for kind in ("bar", "dot"))
            assert bar.get_x() == low
            assert bar.get_x() + bar.get_width() == pytest.approx(high, abs=1e-15)
            assert list(dot.get_xdata()) == [middle]
            assert bar.get_y() < dot.get_ydata()[0] < bar.get_y() + bar.get_height()
            assert matplotlib.colors.to_hex(bar.get_facecolor()).upper() == drawing.colour(method)
            assert matplotlib.colors.to_hex(dot.get_markerfacecolor()) == "#000000"
            assert f"{middle:.3f}" in [text.get_text() for text in dot.axes.texts]


def test_panels_share_an_axis_that_holds_everything():
    figure = tie_ranges.draw(table(), records())
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"{bits} bits" for bits in BITS]
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    low, high = figure.axes[0].get_xlim()
    values = [run["metrics"][name] for run in records() for name in ("ap_min", "ap_max")]
    assert low <= statistics.mean(values) <= high
    said = [text.get_text() for text in figure.texts]
    assert "mAP over all orders of tied items (● tie-aware AP_T)" in said
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["TALR-AP", "MIHash", "LSH"]


@pytest.mark.parametrize("methods", [METHODS, ("talr_ap", "a_rather_long_method_name_of_a_user", "lsh")])
def test_no_text_is_cut_or_overlaps_another(methods):
    both = table(
        methods=list(methods),
        blocks=[
            {"protocol": "digits", "metric": "ap", "bits": [*BITS, 64, 128]},
            {"protocol": "cifar10_s1", "metric": "ap", "bits": [12]},
        ],
    )
    figure = tie_ranges.draw(both, records() + records("cifar10_s1"))
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    boxes = []
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_text() and text.get_visible():
            boxes.append((text.get_text(), matplotlib.text.Text.get_window_extent(text, renderer)))
    page = figure.bbox
    for index, (words, box) in enumerate(boxes):
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1, words
        for others, other in boxes[index + 1 :]:
            # one pixel of 100 per inch of slack: boxes hold the line's full height
            apart = min(box.x1, other.x1) - max(box.x0, other.x0) <= 1 or (
                min(box.y1, other.y1) - max(box.y0, other.y0) <= 1
            )
            assert apart, (words, others)


def test_a_hole_is_said_and_partial_seeds_are_used():
    some = [r for r in records() if not (r["method"] == "lsh" and r["bits"] == 48)]
    some = [r for r in some if not (r["method"] == "mihash" and r["bits"] == 12 and r["seed"] > 0)]
    figure = tie_ranges.draw(table(), some)
    found = artists(figure)
    assert "bar-digits-48-lsh" not in found
    assert [text.get_text() for axes in figure.axes for text in axes.texts].count("– no scores") == 1
    only = next(r for r in some if (r["method"], r["bits"]) == ("mihash", 12))
    assert list(found["dot-digits-12-mihash"].get_xdata()) == [only["metrics"]["ap"]]


def test_nothing_scored_at_all_still_draws():
    figure = tie_ranges.draw(table(), [])
    assert [text.get_text() for text in figure.axes[0].texts] == ["– no scores"] * 3
    assert drawing.render(figure, "png").startswith(b"\x89PNG")


def test_a_table_without_ap_is_refused():
    with pytest.raises(ValueError, match="table small: no block has the metric 'ap'"):
        tie_ranges.draw(table(blocks=[{"protocol": "digits", "metric": "ndcg", "bits": [12]}]), records())


def test_colours_are_distinct_and_stable():
    assert len(set(drawing.COLOURS.values())) == len(drawing.COLOURS)
    assert drawing.colour("my_method") == drawing.colour("my_method") != drawing.colour("my_other_method")
    assert re.fullmatch("#[0-9A-F]{6}", drawing.colour("my_method"))


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_bytes_repeat_and_carry_no_date(kind, tmp_path):
    first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
    drawing.save(tie_ranges.draw(table(), records()), first)
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path", "axes.facecolor": "red"}):
        drawing.save(tie_ranges.draw(table(), records()[::-1]), second)
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name]
    for word in (b"CreationDate", b"dc:date", b"Matplotlib v", matplotlib.__version__.encode()):
        assert word not in first.read_bytes()


def test_bytes_repeat_in_another_process():
    program = (
        "import sys, hashlib; sys.path[:0] = sys.argv[1:]\n"
        "from test_reporting_figures import drawing, records, table, tie_ranges\n"
        "figure = tie_ranges.draw(table(), records())\n"
        "for kind in ('pdf', 'svg', 'png'):\n"
        "    print(hashlib.sha256(drawing.render(figure, kind)).hexdigest())\n"
    )
    here = Path(__file__).parent
    told = [
        subprocess.run(
            [sys.executable, "-c", program, str(here), str(here.parents[1])],
            env={"PYTHONHASHSEED": str(seed), "TZ": "UTC" if seed else "Asia/Tokyo"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (0, 1)
    ]
    assert told[0] == told[1] and len(told[0].split()) == 3


def test_text_stays_text():
    figure = tie_ranges.draw(table(), records())
    root = ElementTree.fromstring(drawing.render(figure, "svg"))
    words = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"TALR-AP", "12 bits", "mAP over all orders of tied items (● tie-aware AP_T)"} <= set(words)
    assert b"/FontFile2" in drawing.render(figure, "pdf")  # TrueType, as type 42 is; type 3 has none


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"\.pdf, \.svg or \.png, not \.jpg"):
        drawing.save(tie_ranges.draw(table(), records()), tmp_path / "figure.jpg")
    assert not list(tmp_path.iterdir())
