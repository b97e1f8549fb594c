"""Numbers behind the charts, against values worked out by hand; distinguishable styles."""

import itertools
import json
import math
import statistics

import pytest
from models import model_of, table_of
from styles import STYLES

from reporting.drawing import method_styles
from reporting.page import charts

TABLE = {
    "name": "small",
    "seeds": [0, 1],
    "methods": ["talr_ap", "lsh"],
    "families": {"talr_ap": "listwise", "lsh": "unsupervised"},
    "blocks": [
        {"protocol": "digits", "metric": "ap", "bits": [2, 4], "title": "Digits"},
        {"protocol": "digits", "metric": "ndcg", "bits": [2], "methods": ["talr_ap"]},
    ],
}


def record(method="talr_ap", bits=2, seed=0, **changes):
    plain = {
        "protocol": "digits",
        "method": method,
        "bits": bits,
        "seed": seed,
        "status": "done",
        "reason": None,
        "metrics": {"ap": 0.5, "ap_min": 0.25, "ap_max": 0.75},
        "curves": {},
        "run": {},
        "training": [],
    }
    return plain | changes


def refused(**changes):
    return record(status="refused", reason="no", metrics={}, **changes)


def test_scores_are_means_with_the_range_of_seeds():
    data = charts.charts(
        *model_of(
            TABLE,
            [
                record(seed=0, metrics={"ap": 0.5, "ap_min": 0.2, "ap_max": 0.6}),
                record(seed=1, metrics={"ap": 0.25, "ap_min": 0.1, "ap_max": 0.3}),
                record(seed=0, bits=4, metrics={"ap": 1 / 3}),
                record(method="lsh", seed=2),
            ],
        ),
    )
    block = data["blocks"][0]
    assert block["name"] == ["AP", "T"] and block["methods"] == ["lsh", "talr_ap"]
    assert block["scores"] == {"talr_ap": [[0.375, 0.25, 0.5, 2], [0.33333, 0.33333, 0.33333, 1]]}
    # means of the worst and the best order; a run without them has no range
    assert block["ranges"] == {"talr_ap": [[0.15, 0.375, 0.45], None]}
    assert data["blocks"][1]["scores"] == {}
    assert data["kinds"] == ["ranges", "bits"]


def test_curves_are_means_of_the_seeds_that_have_a_value():
    first = {
        "precision": [None, 0.5, 0.25],
        "recall": [0.0, 0.5, 1.0],
        "relevant_at": [0.0, 0.5, 0.5],
        "irrelevant_at": [None, None, None],
        "cuts": [1, 10],
        "precision_at": [1.0, 0.5],
    }
    second = first | {"precision": [None, None, 0.75], "precision_at": [0.0, 0.25]}
    data = charts.charts(
        *model_of(TABLE, [record(curves=first), record(seed=1, curves=second), refused(method="lsh")])
    )
    cell = data["runs"]["digits"]["2"]["talr_ap"]
    assert cell == {
        "precision": [None, 0.5, 0.5],
        "recall": [0, 0.5, 1],
        "relevant": [0, 0.5, 0.5],
        "cuts": 0,
        "precision_at": [0.5, 0.375],
    }
    assert data["cuts"] == [[1, 10]]
    assert set(data["runs"]["digits"]["2"]) == {"talr_ap"}
    assert data["kinds"] == ["ranges", "bits", "recall", "precision", "distances"]


def test_curves_of_another_database_are_kept_apart():
    of_ten = {"cuts": [1, 10], "precision_at": [1.0, 0.5]}
    of_nine = {"cuts": [1, 9], "precision_at": [0.25, 0.25]}
    data = charts.charts(
        *model_of(
            TABLE,
            [record(curves=of_ten), record(seed=1, curves=of_nine), record(method="lsh", curves=of_nine)],
        ),
    )
    runs = data["runs"]["digits"]["2"]
    assert runs["talr_ap"]["precision_at"] == [1, 0.5]
    assert data["cuts"][runs["talr_ap"]["cuts"]] == [1, 10]
    assert data["cuts"][runs["lsh"]["cuts"]] == [1, 9]


def test_seconds_and_training():
    def lines(count, counter):
        return [{counter: step, "objective": 2.0**-step, "seconds": step / 8} for step in range(1, count + 1)]

    def run(fit, encode):
        return {"seconds_by_part": {"fit": fit, "encode": encode}}

    per_bit = [
        {"bit": 1, "objective": None, "seconds": 0.0},
        {"bit": 2, "objective": 3.0, "seconds": 1.0},
        {"bit": 3, "objective": math.nan, "seconds": 1.5},
        {"bit": 4, "objective": 1.00004, "seconds": 2.0},
    ]
    data = charts.charts(
        *model_of(
            TABLE,
            [
                record(seed=0, training=lines(200, "epoch"), run=run(2.0, 0.5)),
                record(seed=1, training=lines(3, "sweep"), run=run(4.0, 1.0)),
                record(method="lsh", training=[{"objective": None, "seconds": 0.0}]),
                record(method="lsh", seed=1, training=per_bit),
            ],
        ),
    )
    cell = data["runs"]["digits"]["2"]["talr_ap"]
    assert (cell["fit"], cell["encode"]) == (3, 0.75)
    long, short = cell["training"]
    assert (long["counter"], long["step"][0], long["step"][-1], len(long["step"])) == ("epoch", 1, 200, 60)
    assert long["seconds"][-1] == 25 and long["objective"][0] == 0.5
    assert [value for key, value in sorted(short.items())] == [
        "sweep",
        [0.5, 0.25, 0.125],
        [0.125, 0.25, 0.375],
        1,
        [1, 2, 3],
    ]
    assert data["runs"]["digits"]["2"]["lsh"]["training"] == [
        {"seed": 1, "counter": "bit", "step": [2, 4], "seconds": [1, 2], "objective": [3, 1]}
    ]
    assert data["kinds"] == ["ranges", "bits", "cost", "training"]


def test_a_large_table_has_the_first_seeds_and_fewer_points_of_training():
    lines = [{"epoch": step, "objective": 1 / step, "seconds": step} for step in range(1, 101)]
    seeds = range(charts.MANY_CURVES // 2)
    every = [record(method=m, seed=s, training=lines) for m in ("talr_ap", "lsh") for s in seeds]
    table = TABLE | {"seeds": list(seeds)}
    cell = charts.charts(*model_of(table, every))["runs"]["digits"]["2"]["talr_ap"]
    assert len(cell["training"]) == len(seeds) and len(cell["training"][0]["step"]) == 60
    cell = charts.charts(*model_of(table, [*every, record(bits=4, training=lines)]))["runs"]["digits"]["2"][
        "talr_ap"
    ]
    assert [curve["seed"] for curve in cell["training"]] == [0, 1, 2]
    step = cell["training"][0]["step"]
    assert (len(step), step[0], step[-1]) == (30, 1, 100)


def test_nothing_but_holes_has_no_charts():
    for records in ([], [refused(seed=seed) for seed in (0, 1)], [record(curves={"cuts": [1]}, metrics={})]):
        data = charts.charts(*model_of(TABLE, records))
        assert data["kinds"] == [] and data["runs"] == {}
        assert all(block["scores"] == {} and block["ranges"] == {} for block in data["blocks"])


def test_the_order_of_records_does_not_matter_and_the_data_is_json():
    curves = {"precision": [0.1 + 0.2, None], "recall": [1e-7 / 3, 1.0]}
    records = [
        record(method=method, bits=bits, seed=seed, curves=curves)
        for method in ("talr_ap", "lsh")
        for bits in (2, 4)
        for seed in (0, 1)
    ]
    text = json.dumps(charts.charts(*model_of(TABLE, records)), allow_nan=False)
    assert text == json.dumps(charts.charts(*model_of(TABLE, records[::-1])), allow_nan=False)
    assert json.loads(text) == charts.charts(*model_of(TABLE, records))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123456, 0.12346),
        (123456.7, 123460),
        (-2.0, -2),
        (0.0, 0),
        (1e-9 / 3, 3.3333e-10),
        (math.nan, None),
        (math.inf, None),
    ],
)
def test_numbers_are_cut_to_five_digits(value, expected):
    result = charts.short(value)
    assert result == expected and json.dumps(result) == json.dumps(expected)


@pytest.mark.parametrize("count", [0, 1, 2, 59, 60, 61, 62, 119, 120, 1000, 99_999])
def test_thinned_indices_are_evenly_spread(count):
    kept = charts.thinned(count)
    assert len(kept) == min(count, 60)
    if count:
        gaps = [b - a for a, b in itertools.pairwise(kept)]
        assert (kept[0], kept[-1]) == (0, count - 1)
        assert not gaps or (min(gaps) >= 1 and max(gaps) - min(gaps) <= 1)


def test_contrast_is_that_of_wcag():
    # worked examples: black on white, and the two greys that bracket the 4.5 : 1 of text on white
    assert charts.contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert charts.contrast("#FFFFFF", "#767676") == pytest.approx(4.54, abs=0.005)
    assert charts.contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.005)


def test_every_method_can_be_seen_in_the_dark_and_keeps_its_colour_in_the_light():
    own = TABLE | {"methods": [f"method {number}" for number in range(60)], "styles": STYLES}
    look = charts.chart_styles([table_of(own)])
    styles = method_styles.method_styles(table_of(own))
    assert {method: entry["colour"] for method, entry in look.items()} == {
        method: style.colour for method, style in styles.items()
    }
    for entry in look.values():
        assert charts.contrast(entry["dark"], charts.DARK_SURFACE) >= 3
        if charts.contrast(entry["colour"], charts.DARK_SURFACE) >= 3:
            assert entry["dark"] == entry["colour"]


def test_markers_and_dashes_are_those_of_the_figures():
    # shapes of method_styles.DASHES by hand; dashes are in line widths there, in pixels here, 1.6 to a line
    look = charts.chart_styles([table_of(TABLE | {"methods": list(STYLES), "styles": STYLES})])
    shapes = {method: [e["marker"], e["rotation"], e["fill"], e["dash"]] for method, e in look.items()}
    assert shapes["talr_ap"] == ["circle", 0, "filled", []]
    assert shapes["lsh"] == ["triangle", 180, "hollow", [1.6, 1.92]]
    assert shapes["bre"] == ["cross", 0, "stroke", [4.8, 2.08]]
    assert shapes["dpsh"] == ["rect", 0, "hollow", [8, 2.08, 1.6, 2.08]]
    assert len({json.dumps(shape) for shape in shapes.values()}) == len(shapes)
    unknown = charts.chart_styles(
        [table_of(TABLE | {"methods": [f"method {number}" for number in range(60)]})]
    )
    assert {entry["marker"] for entry in unknown.values()} == {
        marker for marker, _ in charts.MARKERS.values()
    }


def test_means_are_rounded_once():
    scores = [0.123454, 0.123457, 0.123459]
    table = TABLE | {"seeds": [0, 1, 2]}
    data = charts.charts(
        *model_of(table, [record(seed=seed, metrics={"ap": x}) for seed, x in enumerate(scores)])
    )
    mean = data["blocks"][0]["scores"]["talr_ap"][0][0]
    assert mean == float(f"{statistics.mean(scores):.5g}") == 0.12346
