"""The figure of costs: its points, its Pareto frontier against brute force, seconds that no axis can hold."""

import functools
from itertools import pairwise, product

import numpy as np
import pytest
from models import block, model_of, record, small
from styles import artists

from reporting.drawing.options import Options
from reporting.figures import cost
from tiebench import figure_style

METHODS = ("lsh", "mihash", "talr_ap")
BITS = (12, 24, 48)


table = functools.partial(
    small, seeds=[0, 1], methods=list(METHODS), styles={}, blocks=[block("digits", "ap", BITS)]
)


def records(seed=0):
    generator = np.random.default_rng(seed)
    result = []
    for method, bits, seed in product(METHODS, BITS, (0, 1)):
        score = {"ap": float(generator.uniform())}
        seconds = {part: float(10 ** generator.uniform(-3, 4)) for part in ("fit", "encode")}
        result.append(record(method, bits, seed, score, run={"seconds_by_part": seconds}))
    return result


def mean_points(some, part):
    """(method, bits) -> mean (seconds, score), written another way than in the module."""
    result = {}
    for cell in product(METHODS, BITS):
        of = [r for r in some if (r["method"], r["bits"]) == cell]
        pairs = np.array([(r["run"]["seconds_by_part"][part], r["metrics"]["ap"]) for r in of])
        result[cell] = pairs.mean(axis=0)
    return result


def undominated(points):
    """Brute force: the points that no other equals or beats in both and beats in one."""
    points = {tuple(point) for point in points}
    return sorted(
        (seconds, score)
        for seconds, score in points
        if not any(
            other <= seconds and value >= score and (other, value) != (seconds, score)
            for other, value in points
        )
    )


@pytest.mark.parametrize("seed", range(30))
def test_the_frontier_is_that_of_brute_force(seed):
    generator = np.random.default_rng(seed)
    # Few distinct values, so that many are equal in one or both.
    points = generator.integers(1, 7, size=(int(generator.integers(1, 25)), 2)).tolist()
    points = [tuple(point) for point in points]
    assert cost.frontier(points) == undominated(points)
    assert cost.frontier(points[::-1]) == undominated(points)
    lower = [(seconds, -score) for seconds, score in points]
    assert cost.frontier(lower, higher=False) == [(seconds, -score) for seconds, score in undominated(points)]


def test_points_lines_and_frontier_are_those_of_the_records():
    found = artists(cost.draw(*model_of(table(), records())))
    for part in ("fit", "encode"):
        points = mean_points(records(), part)
        for method in METHODS:
            line = found[f"line-{part}-digits-ap-{method}"]
            expected = np.array([points[method, bits] for bits in BITS])
            assert np.allclose(line.get_xydata(), expected, rtol=1e-14, atol=0)
            longest = found[f"longest-{part}-digits-ap-{method}"]
            assert longest.get_xydata().tolist() == [line.get_xydata()[-1].tolist()]
            assert longest.get_markersize() > line.get_markersize()
        steps = found[f"frontier-{part}-digits-ap"]
        expected = undominated(points.values())
        assert np.allclose(steps.get_xydata()[:-1], expected, rtol=1e-14, atol=0)
        assert steps.get_drawstyle() == "steps-post"
        # It runs on to the edge: more seconds never make the best score worse.
        assert steps.get_xydata()[-1].tolist() == [steps.axes.get_xlim()[1], steps.get_ydata()[-2]]
        assert steps.axes.get_xscale() == "log"
        low, high = steps.axes.get_xlim()
        assert low < min(seconds for seconds, _ in points.values())
        assert high > max(seconds for seconds, _ in points.values())
    first, second = (found[f"frontier-{part}-digits-ap"].axes for part in ("fit", "encode"))
    assert first.get_ylim() == second.get_ylim()


def test_candidates_of_a_lookup_are_a_cost_without_seconds():
    some = records()
    for place, run in enumerate(some):
        # Of one method nothing is found at all: a logarithmic axis has no place for it.
        candidates = 0.0 if run["method"] == "lsh" else 0.5 + 3.0 * place
        run["metrics"] |= {"recall_radius_2": place / 100, "candidates_radius_2": candidates}
        run["run"] = {}
    blocks = [block("digits", "recall_radius_2", BITS)]
    figure = cost.draw(*model_of(table(blocks=blocks), some), Options(costs=("candidates_radius_2",)))
    found = artists(figure)
    name = "candidates_radius_2-digits-recall_radius_2"
    assert f"line-{name}-lsh" not in found
    points = []
    for method in ("mihash", "talr_ap"):
        of = [place for place, run in enumerate(some) if run["method"] == method]
        expected = [(0.5 + 3.0 * (a + b) / 2, (a + b) / 200) for a, b in zip(of[::2], of[1::2])]
        assert np.allclose(found[f"line-{name}-{method}"].get_xydata(), expected)
        points += expected
    (axes,) = figure.axes
    assert axes.get_xlabel() == "items within Hamming radius 2" and axes.get_xscale() == "log"
    assert np.allclose(found[f"frontier-{name}"].get_xydata()[:-1], undominated(points))


def test_numbers_say_the_longest_code_that_a_method_has():
    some = [r for r in records() if not (r["method"] == "mihash" and r["bits"] == 48)]
    figure = cost.draw(*model_of(table(), some))
    for axes in figure.axes:
        at = {tuple(text.xy): text.get_text() for text in axes.texts}
        assert at
        for method in METHODS:
            longest = next(
                a for a in axes.lines if (a.get_gid() or "").startswith("longest") and method in a.get_gid()
            )
            place = tuple(longest.get_xydata()[0].tolist())
            assert at.pop(place, None) in (None, "24" if method == "mihash" else "48")
        assert not at


def test_numbers_stay_clear_of_markers_lines_and_each_other():
    figure = cost.draw(*model_of(table(), records(seed=4)))
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    for axes in figure.axes:
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
        lines = [a for a in axes.lines if (a.get_gid() or "").startswith("line")]
        for index, box in enumerate(boxes):
            assert axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
            assert not [other for other in boxes[index + 1 :] if box.padded(-1).overlaps(other.padded(-1))]
            core = box.padded(-2)
            for line in lines:
                ends = axes.transData.transform(line.get_xydata())
                for start, end in pairwise(ends):
                    for share in np.linspace(0, 1, 2001):
                        x, y = start + share * (end - start)
                        assert not (core.x0 < x < core.x1 and core.y0 < y < core.y1)


def test_seconds_that_no_logarithmic_axis_holds_are_left_out():
    some = records()
    bad = iter([0, -1.0, None, "1", float("nan"), float("inf")])
    for run in some:
        if run["method"] == "lsh":
            run["run"]["seconds_by_part"]["fit"] = next(bad)
        if run["method"] == "mihash" and run["bits"] == 12 and run["seed"] == 0:
            run["run"]["seconds_by_part"]["fit"] = 0.0
    figure = cost.draw(*model_of(table(), some))
    found = artists(figure)
    assert "line-fit-digits-ap-lsh" not in found and "line-encode-digits-ap-lsh" in found
    only = next(r for r in some if (r["method"], r["bits"], r["seed"]) == ("mihash", 12, 1))
    first = found["line-fit-digits-ap-mihash"].get_xydata()[0].tolist()
    assert first == [only["run"]["seconds_by_part"]["fit"], only["metrics"]["ap"]]
    assert figure_style.render(figure, "png").startswith(b"\x89PNG")


def test_a_part_without_seconds_says_so():
    some = records()
    for run in some:
        run["run"] = {"seconds_by_part": {"fit": run["run"]["seconds_by_part"]["fit"]}}
    figure = cost.draw(*model_of(table(), some))
    assert [text.get_text() for text in figure.axes[1].texts] == ["no seconds"]
    assert not [name for name in artists(figure) if "encode" in name]
    assert figure_style.render(figure, "svg")


def test_one_point_has_an_axis():
    one = [r for r in records() if (r["method"], r["bits"], r["seed"]) == ("lsh", 12, 0)]
    figure = cost.draw(*model_of(table(), one))
    for axes in figure.axes:
        (point,) = next(line for line in axes.lines if "line" in (line.get_gid() or "")).get_xydata()
        assert axes.get_xlim()[0] < point[0] < axes.get_xlim()[1]
        assert axes.get_ylim()[0] < point[1] < axes.get_ylim()[1]
        assert any(label.get_text() for label in axes.get_xticklabels())


def test_bounds_and_methods_that_see_more_are_not_on_the_frontier():
    styles = {"lsh": {"family": "bound"}, "mihash": {"family": "listwise", "sees": "database labels"}}
    families = {"lsh": "bound", "mihash": "listwise", "talr_ap": "listwise"}
    found = artists(cost.draw(*model_of(table(styles=styles, families=families), records())))
    for part in ("fit", "encode"):
        points = mean_points(records(), part)
        expected = undominated(points["talr_ap", bits] for bits in BITS)
        steps = found[f"frontier-{part}-digits-ap"].get_xydata()[:-1]
        assert np.allclose(steps, expected, rtol=1e-14, atol=0)


@pytest.mark.parametrize("part", ["fit", "encode"])
def test_a_part_alone_has_names_at_its_points_instead_of_a_legend(part):
    titles = {method: {"title": f"The {method}"} for method in METHODS}
    named = cost.draw(*model_of(table(styles=titles), records()), Options(costs=(part,)))
    (axes,) = named.axes
    assert axes.get_xlabel() == cost.SECONDS[part]
    assert not {text.get_text() for text in named.texts} & {style["title"] for style in titles.values()}
    points = mean_points(records(), part)
    at = {text.get_text(): text.xy for text in axes.texts}
    assert at and set(at) <= {f"The {method}" for method in METHODS}
    for method in METHODS:
        if f"The {method}" in at:
            assert np.allclose(at[f"The {method}"], points[method, 48], rtol=1e-14, atol=0)
    # The best of the cheapest are named first.
    first = next(iter(at)).removeprefix("The ")
    front = undominated(points.values())
    assert any(np.allclose(points[first, bits], point) for bits in BITS for point in front)
