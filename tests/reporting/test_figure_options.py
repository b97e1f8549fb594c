"""Options of figures, the tables that they apply to, the documentation's example."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from models import block, model_of, table_of
from styles import STYLES, check_texts, texts
from test_reporting_curves import artists, records, table

from reporting import figures
from reporting.drawing import axes
from tiebench import figure_style

ROOT = Path(__file__).parents[2]
BLOCKS = [block("digits", "ap", [12, 24], title="Digits"), block("digits", "ndcg", [24], title="Digits")]
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
    **dict.fromkeys(
        OVER_TABLES, of_protocols(**{f"p{place}": {} for place in range(6)}) | {"methods": EIGHT}
    ),
    "quality_by_bytes": table(blocks=[BLOCKS[0] | {"metric": "ndcg@10"}]),
}


@pytest.mark.parametrize("name", ["tie_ranges", "orders", "ranks"])
@pytest.mark.parametrize("width", [3.4, None])
def test_long_titles_are_cut_so_that_panels_keep_their_room(name, width):
    entry = dict(TABLES.get(name, TWO))
    entry["styles"] = {method: style | {"title": style["title"] * 40} for method, style in STYLES.items()}
    drawn = figures.draw(
        name, *model_of(entry, records(entry)), **({} if width is None else {"width": width})
    )
    assert any(text.get_text().endswith("…") for text in texts(drawn))
    assert all(axes.get_position().width * drawn.get_figwidth() > 0.6 for axes in drawn.axes)


def test_a_figure_that_is_too_narrow_for_its_names_says_how_wide_it_has_to_be():
    model = model_of(TWO, records(TWO))
    with pytest.raises(ValueError, match=r"a width of 2 leaves no room .* it takes [2-4][.][0-9] inches"):
        figures.draw("metric_by_bits", *model, width=2)


def test_sizes_are_those_of_protocols_that_differ_in_nothing_else():
    pixels = {"training_per_class": 50, "input": {"kind": "pixels"}}
    made = of_protocols(few={"training_per_class": 10}, pixels=pixels, many={"training_per_class": 100})
    for name, training in (("few", 10), ("many", 100)):
        made["settings"][name]["split"] = {"kind": "plain", "training": training}
    assert table_of(made).training_sizes() == {"few": 10, "many": 100}
    assert table_of(of_protocols(few={"training_per_class": 10}, pixels=pixels)).training_sizes() == {}


def test_figures_apply_by_metrics_columns_and_methods():
    assert figures.applicable(table_of(TWO)) == [name for name in figures.names() if name not in TABLES]
    for name, fitting in TABLES.items():
        assert name in figures.applicable(table_of(fitting))
        together = OVER_TABLES if name in OVER_TABLES else (name,)
        assert not set(TABLES) & set(figures.applicable(table_of(fitting))) - {*together}
    ndcg = table(blocks=[BLOCKS[1]])
    assert set(figures.names()) - set(figures.applicable(table_of(ndcg))) == set(TABLES)
    # Over tables, metrics are averaged: none of which less is better.
    lower = [*TABLES["ranks"]["blocks"], BLOCKS[0] | {"metric": "empty_radius_2"}]
    assert not set(OVER_TABLES) & set(figures.applicable(table_of(TABLES["ranks"] | {"blocks": lower})))
    without_ranges = table(blocks=[BLOCKS[1] | {"metric": "precision_radius_2"}])
    assert "tie_ranges" not in figures.applicable(table_of(without_ranges))
    assert figures.applicable(table_of(table(blocks=[]))) == []


@pytest.mark.parametrize("name", figures.names())
def test_every_figure_fits_a_column_of_a_paper(name):
    entry = TABLES.get(name, TWO)
    drawn = figures.draw(name, *model_of(entry, records(entry)), width=3.4)
    drawn.set_dpi(300)  # with fewer pixels letters are wider than in a PDF file
    check_texts(drawn)


@pytest.mark.thorough
@pytest.mark.parametrize("name", figures.names())
def test_every_figure_obeys_every_option(name):
    """Width and size of text; no title or another; some methods and blocks, drawn as the whole draws them."""
    one, blocks = TABLES.get(name, TWO), None if name in TABLES else ["digits/ap"]
    model = model_of(one, records(one))
    font_size, narrow = 11, {"width": 4.4}
    plain = figures.draw(name, *model, **narrow)
    large = figures.draw(name, *model, width=4.4 * font_size / 8, font_size=font_size)
    for figure, width in ((plain, 4.4), (large, 6.05)):
        assert figure.get_figwidth() == pytest.approx(width)
    sizes = [[text.get_fontsize() for text in texts(drawn)] for drawn in (large, plain)]
    assert sizes[0] == pytest.approx([size * font_size / 8 for size in sizes[1]])
    lines = [
        [line.get_linewidth() for line in artists(drawn).values() if hasattr(line, "get_markersize")]
        for drawn in (large, plain)
    ]
    assert lines[0] == pytest.approx([line * font_size / 8 for line in lines[1]])
    check_texts(large)

    untitled = figures.draw(name, *model, title=False, **narrow)
    assert {text.get_text() for text in texts(untitled)} < {text.get_text() for text in texts(plain)}
    assert untitled.get_figheight() < plain.get_figheight()

    chosen = ["lsh", "mihash", "talr_ap"]
    if name == "training":
        chosen.remove("lsh")  # nothing to train
    if name == "agreement":
        chosen = one["methods"][1:]  # of fewer than six methods there is none
    part = figures.draw(name, *model, methods=chosen, blocks=blocks, title="Something else", **narrow)
    assert "Something else" in {text.get_text() for text in texts(part)}
    found, whole = artists(part), artists(plain)
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


def test_a_figure_without_anything_is_a_message_that_pages_recognise():
    with pytest.raises(axes.NothingToDraw, match="no run has a score"):
        figures.draw("metric_by_bits", *model_of(TWO, []))
    svg = figure_style.render(axes.message("table x: no run has a score, so nothing to draw"), "svg").decode()
    assert f'id="{axes.NOTHING}"' in svg and "no run has a score" in svg


@pytest.fixture
def example(tmp_path, monkeypatch):
    """The documentation's figure, in a folder of its own; a function that writes it after a change."""
    text = (ROOT / "docs/add-a-figure.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.setattr(figures, "KIND", replace(figures.KIND, folder=tmp_path))
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])

    def write(old="", new=""):
        assert old in code
        (tmp_path / "spread.py").write_text(code.replace(old, new, 1), encoding="utf-8")

    yield write
    sys.modules.pop("reporting.figures.spread", None)


def test_the_example_of_the_documentation_is_a_figure(example):
    example()
    assert figures.applicable(table_of(TWO)) == ["spread"]
    assert figures.describe("spread").title == "Spread over seeds"
    model = model_of(TWO, records(TWO))
    bar = artists(figures.draw("spread", *model, methods=["lsh", "itq"]))["spread-digits-ap-12-itq"]
    scores = [r["metrics"]["ap"] for r in records(TWO) if (r["method"], r["bits"]) == ("itq", 12)]
    assert (bar.get_y(), bar.get_y() + bar.get_height()) == pytest.approx((min(scores), max(scores)))
    drawn = [figures.draw("spread", *one) for one in (model, model_of(TWO, records(TWO)[::-1]))]
    assert figure_style.render(drawn[0], "svg") == figure_style.render(drawn[1], "svg")
    with pytest.raises(axes.NothingToDraw, match="no run has two seeds"):
        figures.draw("spread", *model_of(TWO, []))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("NEEDS = ()", "NEEDS = ('trainings',)"), "NEEDS has an unknown entry 'trainings'; did you mean"),
        (("REQUIRES = {}", "REQUIRES = {'metric': ['ap']}"), "REQUIRES has an unknown entry 'metric'"),
    ],
)
def test_a_wrong_file_is_named(example, change, message):
    example(*change)
    with pytest.raises(ValueError, match=message):
        figures.applicable(table_of(TWO))


@pytest.mark.parametrize(
    ("name", "protocols"), [("seen_unseen", ("seen", "unseen")), ("few_labels", ("few", "many"))]
)
def test_points_and_lines_stand_at_the_means_of_their_protocols(name, protocols):
    one = TABLES[name]
    drawn = artists(figures.draw(name, *model_of(one, records(one))))
    for method in one["methods"]:
        of = [r for r in records(one) if r["method"] == method]
        means = [sum(r["metrics"]["ap"] for r in of if r["protocol"] == name) / 3 for name in protocols]
        if name == "seen_unseen":
            x, y = drawn[f"point-unseen-ap-24-{method}"].get_data()
            assert (x[0], y[0]) == pytest.approx(means)
        else:
            x, y = drawn[f"line-ap-24-{method}"].get_data()
            assert list(x) == [10, 100] and list(y) == pytest.approx(means)
    if name == "seen_unseen":
        assert drawn["reference-unseen-ap-24-uncoded-y"].get_ydata()[0] == 0.9
        reference = drawn["reference-unseen-ap-24-itq-x"].get_xdata()[0]
        assert reference == drawn["point-unseen-ap-24-itq"].get_xdata()[0]
