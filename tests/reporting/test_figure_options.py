"""Options of figures, what the planner reads of them without matplotlib, the documentation's example."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from models import model_of, table_of
from test_reporting_curves import artists, records, table

from reporting import figures
from reporting.drawing import axes
from tiebench import figure_style

ROOT = Path(__file__).parents[2]
BLOCKS = [
    {"protocol": "digits", "metric": "ap", "bits": [12, 24], "title": "Digits"},
    {"protocol": "digits", "metric": "ndcg", "bits": [24], "title": "Digits"},
]
TWO = table(blocks=BLOCKS)


def of_protocols(**changes):
    """A table with a block for each protocol; all have one dataset, and differ in these settings."""
    plain = {"dataset": "one", "split": {"kind": "plain"}, "unseen": False, "training_per_class": None}
    return table(
        blocks=[{"protocol": name, "metric": "ap", "bits": [24], "title": name} for name in changes],
        settings={name: plain | change for name, change in changes.items()},
        uncoded_scores={name: {"ap": 0.9} for name in changes},
        reference_lines=["itq"],
    )


EIGHT = ["lsh", "itq", "mihash", "talr_ap", "dpsh", "dtsh", "hashnet", "bre"]
OVER_TABLES = ("ranks", "profiles", "improvement", "agreement")
# Figures that do not apply to every table, each with one that it does.
TABLES = {
    "seen_unseen": of_protocols(seen={}, unseen={"unseen": True}),
    "few_labels": of_protocols(few={"training_per_class": 10}, many={"training_per_class": 100}),
    "orders": table(blocks=[BLOCKS[0] | {"metric": "class_order_ap"}]),
    **dict.fromkeys(OVER_TABLES, of_protocols(one={}, two={}, three={}) | {"methods": EIGHT}),
    "quality_by_bytes": table(blocks=[BLOCKS[0] | {"metric": "ndcg@10"}]),
}


def texts(figure):
    return [text for text in figure.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]


def test_the_planner_loads_no_matplotlib_and_no_pandas():
    program = (
        "import sys; from reporting import figures; from reporting.tables.model import Table\n"
        "blocks = [{'protocol': 'p', 'metric': 'ap', 'bits': [8]}]\n"
        "entry = {'name': 'x', 'methods': ['a'], 'seeds': [0], 'blocks': blocks}\n"
        "assert figures.applicable(Table.from_json({'table': entry}))\n"
        "print([name for name in ('matplotlib', 'pandas', 'scipy') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "[]"


def test_figures_apply_by_metrics_columns_and_methods():
    assert figures.applicable(table_of(TWO)) == [name for name in figures.names() if name not in TABLES]
    for name, fitting in TABLES.items():
        assert name in figures.applicable(table_of(fitting))
        together = OVER_TABLES if name in OVER_TABLES else (name,)
        assert not set(TABLES) & set(figures.applicable(table_of(fitting))) - {*together}
    ndcg = table(blocks=[BLOCKS[1]])
    assert set(figures.names()) - set(figures.applicable(table_of(ndcg))) == set(TABLES)
    # Over tables, metrics are averaged: none of which less is better.
    lower = TABLES["ranks"] | {
        "blocks": [*TABLES["ranks"]["blocks"], BLOCKS[0] | {"metric": "empty_radius_2"}]
    }
    assert not set(OVER_TABLES) & set(figures.applicable(table_of(lower)))
    without_ranges = table(blocks=[BLOCKS[1] | {"metric": "precision_radius_2"}])
    assert "tie_ranges" not in figures.applicable(table_of(without_ranges))
    assert figures.applicable(table_of(table(blocks=[]))) == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", figures.names())
@pytest.mark.parametrize("font_size", [6, 11])
def test_a_figure_has_the_width_and_the_font_size_asked_for(name, font_size):
    one = TABLES.get(name, TWO)
    width = 3.3 if font_size == 6 else 6.0
    figure = figures.draw(name, *model_of(one, records(one)), width=width, font_size=font_size)
    assert figure.get_figwidth() == pytest.approx(width)
    plain = figures.draw(name, *model_of(one, records(one)), width=8 * width / font_size)
    sizes = [[text.get_fontsize() for text in texts(drawn)] for drawn in (figure, plain)]
    assert sizes[0] == pytest.approx([size * font_size / 8 for size in sizes[1]])
    lines = [
        [line.get_linewidth() for line in artists(drawn).values() if hasattr(line, "get_markersize")]
        for drawn in (figure, plain)
    ]
    assert lines[0] == pytest.approx([line * font_size / 8 for line in lines[1]])
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    for text in texts(figure):
        box = matplotlib.text.Text.get_window_extent(text, renderer)
        # One pixel of slack: text on pixels is a little wider than its outlines.
        assert box.x0 >= -1 and box.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert box.y0 >= -1 and box.y1 <= figure.bbox.y1 + 1, text.get_text()


@pytest.mark.thorough
@pytest.mark.parametrize("name", figures.names())
def test_a_title_is_replaced_or_left_out(name):
    one = TABLES.get(name, TWO)
    own = figures.draw(name, *model_of(one, records(one)))
    other = figures.draw(name, *model_of(one, records(one)), title="Something else")
    none = figures.draw(name, *model_of(one, records(one)), title=False)
    said = [{text.get_text() for text in texts(figure)} for figure in (own, other, none)]
    assert "Something else" in said[1] and said[2] < said[0] and "Something else" not in said[0]
    assert none.get_figheight() < own.get_figheight()


@pytest.mark.thorough
@pytest.mark.parametrize("name", figures.names())
def test_a_selection_draws_its_methods_and_blocks_as_the_whole_does(name):
    one, blocks = TABLES.get(name, TWO), None if name in TABLES else ["digits/ap"]
    chosen = ["lsh", "mihash", "talr_ap"]
    if name == "training":
        chosen.remove("lsh")  # nothing to train
    if name == "agreement":
        chosen = one["methods"][1:]  # of fewer than six methods there is none
    figure = figures.draw(name, *model_of(one, records(one)), methods=chosen, blocks=blocks)
    found, whole = artists(figure), artists(figures.draw(name, *model_of(one, records(one))))
    for method in one["methods"] if name != "agreement" else ():  # squares of tables, not of methods
        assert any(method in gid for gid in found) == (method in chosen), method
    assert not [gid for gid in found if "-ndcg-" in gid]
    for gid in set(found) & set(whole):
        if hasattr(found[gid], "get_color") and not gid.startswith("range"):
            assert found[gid].get_color() == whole[gid].get_color()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widht": 3}, "unknown option 'widht'; did you mean 'width'"),
        ({"width": "wide"}, "width must be a number of inches from 2 to 40, not 'wide'"),
        ({"width": 0.5}, "width must be a number of inches"),
        ({"font_size": True}, "font_size must be a number of points from 4 to 30, not True"),
        ({"title": 3}, "title must be a text, false or null, not 3"),
        ({"methods": ["talr_pa"]}, "table small has no method 'talr_pa'; did you mean 'talr_ap'"),
        ({"blocks": ["digits/app"]}, "table small has no block 'digits/app'; did you mean 'digits/ap'"),
        ({"methods": []}, "no block has the chosen methods"),
        ({"costs": ["fit", "fti"]}, "there is no cost 'fti'; did you mean 'fit'"),
        ({"width": 2.5, "font_size": 12}, "width must be at least 3 inches at a font_size of 12, not 2.5"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        figures.draw("cost", *model_of(TWO, records(TWO)), **options)


def test_an_unknown_figure_is_named():
    with pytest.raises(ValueError, match="there is no figure 'tie_range'; did you mean 'tie_ranges'"):
        figures.draw("tie_range", *model_of(TWO, records(TWO)))


def test_a_figure_without_anything_is_a_message_that_pages_recognise():
    with pytest.raises(axes.NothingToDraw, match="no run has a score"):
        figures.draw("metric_by_bits", *model_of(TWO, []))
    svg = figure_style.render(axes.message("table x: no run has a score, so nothing to draw"), "svg").decode()
    assert f'id="{axes.NOTHING}"' in svg and "no run has a score" in svg


def test_the_example_of_the_documentation_is_a_figure(tmp_path, monkeypatch):
    text = (ROOT / "docs/add-a-figure.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "spread.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(figures, "KIND", replace(figures.KIND, folder=tmp_path))
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    try:
        assert figures.applicable(table_of(TWO)) == ["spread"]
        assert figures.describe("spread").title == "Spread over seeds"
        figure = figures.draw(
            "spread", *model_of(TWO, records(TWO)), width=5, font_size=7, methods=["lsh", "itq"]
        )
        bar = artists(figure)["spread-digits-ap-12-itq"]
        scores = [r["metrics"]["ap"] for r in records(TWO) if (r["method"], r["bits"]) == ("itq", 12)]
        assert (bar.get_y(), bar.get_y() + bar.get_height()) == pytest.approx((min(scores), max(scores)))
        for kind in ("pdf", "svg", "png"):
            again = figures.draw("spread", *model_of(TWO, records(TWO)[::-1]))
            assert figure_style.render(
                figures.draw("spread", *model_of(TWO, records(TWO))), kind
            ) == figure_style.render(again, kind)
        with pytest.raises(axes.NothingToDraw, match="no run has two seeds"):
            figures.draw("spread", *model_of(TWO, []))
    finally:
        sys.modules.pop("reporting.figures.spread", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("NEEDS = ()", "NEEDS = ('trainings',)"),
            "NEEDS has an unknown entry 'trainings'; did you mean 'training'",
        ),
        (("REQUIRES = {}", "REQUIRES = {'metric': ['ap']}"), "REQUIRES has an unknown entry 'metric'"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, monkeypatch, change, message):
    text = (ROOT / "docs/add-a-figure.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert change[0] in code
    (tmp_path / "spread.py").write_text(code.replace(*change, 1), encoding="utf-8")
    monkeypatch.setattr(figures, "KIND", replace(figures.KIND, folder=tmp_path))
    with pytest.raises(ValueError, match=re.escape(message)):
        figures.applicable(table_of(TWO))


def test_points_and_lines_stand_at_the_means_of_their_protocols():
    """Of seen against unseen classes, and of few labels: every coordinate is a mean over the seeds."""
    for name, protocols in (("seen_unseen", ("seen", "unseen")), ("few_labels", ("few", "many"))):
        one = TABLES[name]
        drawn = artists(figures.draw(name, *model_of(one, records(one))))
        for method in one["methods"]:
            means = [
                sum(r["metrics"]["ap"] for r in records(one) if (r["protocol"], r["method"]) == (p, method))
                / 3
                for p in protocols
            ]
            if name == "seen_unseen":
                x, y = drawn[f"point-unseen-ap-24-{method}"].get_data()
                assert (x[0], y[0]) == pytest.approx(means)
            else:
                x, y = drawn[f"line-ap-24-{method}"].get_data()
                assert list(x) == [10, 100] and list(y) == pytest.approx(means)
        if name == "seen_unseen":
            assert drawn["reference-unseen-ap-24-uncoded-y"].get_ydata()[0] == 0.9
            assert (
                drawn["reference-unseen-ap-24-itq-x"].get_xdata()[0]
                == drawn["point-unseen-ap-24-itq"].get_xdata()[0]
            )
