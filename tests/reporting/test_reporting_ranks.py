"""The diagram of average ranks: where its artists are, space for its words, what it refuses."""

import itertools

import matplotlib
import numpy as np
import pytest
from models import model_of, table_of
from styles import STYLES

from reporting import average_ranks, figures, method_styles
from reporting.figures import ranks
from tiebench import figure_style

KNOWN = list(STYLES)


def table(methods, columns=4, **changes):
    blocks = [{"protocol": "digits", "metric": "ap", "bits": list(range(12, 12 + columns))}]
    plain = {"name": "small", "title": "A small table", "seeds": [0], "methods": list(methods)}
    return plain | {"blocks": blocks, "styles": STYLES} | changes


def records(scores):
    """Records from method -> scores of columns 12, 13, ..."""
    return [
        {"protocol": "digits", "method": method, "bits": 12 + index, "seed": 0, "status": "done"}
        | {"reason": None, "metrics": {"ap": float(score)}}
        for method, of_columns in scores.items()
        for index, score in enumerate(of_columns)
    ]


def spread(count, columns, seed=0):
    """Scores of methods that mostly keep their order."""
    random = np.random.default_rng(seed)
    names = (KNOWN + [f"method_{index}" for index in range(20)])[:count]
    return {name: random.normal(-row / 3, 0.8, columns) for row, name in enumerate(names)}


def artists(figure):
    return {artist.get_gid(): artist for artist in figure.findobj() if artist.get_gid()}


def test_leaders_start_at_the_ranks_and_end_at_the_names():
    scores = spread(12, 6)
    asked = table(scores, 6)
    found = average_ranks.ranks(*model_of(asked, records(scores)))
    figure = ranks.draw(*model_of(asked, records(scores)))
    parts = artists(figure)
    axis = parts["axis"].get_xdata()
    step = (axis[1] - axis[0]) / 11
    ruler = parts["ruler"].get_xdata()
    assert max(ruler) - min(ruler) == pytest.approx(step * found["critical_difference"])
    words = {text.get_text(): text for text in figure.findobj(matplotlib.text.Text)}
    assert f"CD = {found['critical_difference']:.2f}" in words
    assert f"Friedman test of all methods: p = {found['friedman_p']:.2g}." in words
    for index, (method, rank) in enumerate(found["average_rank"].items()):
        leader = parts[f"leader-{method}"]
        assert leader.get_xdata()[0] == pytest.approx(axis[0] + step * (rank - 1))
        assert leader.get_color() == method_styles.colour(table_of(asked), method)
        name = words[f"{STYLES[method]['title']}  {rank:.2f}"]
        assert name.get_position()[1] == leader.get_ydata()[-1]
        # the better half at the left, the best in the upper line; the worst in the upper line at the right
        assert (name.get_position()[0] < axis[0]) == (index < 6)
    heights = [parts[f"leader-{method}"].get_ydata()[-1] for method in found["methods"]]
    assert heights[:6] == sorted(heights[:6]) and heights[6:] == sorted(heights[6:], reverse=True)


def brute_force(values, critical_difference):
    """Largest sets of neighbours within the critical difference, from all of them."""
    joined = {
        pair
        for pair in itertools.combinations(range(len(values)), 2)
        if values[pair[1]] - values[pair[0]] < critical_difference
    }
    return sorted(
        (a, b) for a, b in joined if not any((c, d) != (a, b) and c <= a and b <= d for c, d in joined)
    )


def test_bars_join_the_largest_sets_within_the_critical_difference():
    assert ranks.cliques([1.0, 2.0, 3.0], 1.5) == [(0, 1), (1, 2)]
    assert ranks.cliques([1.0, 2.0, 3.0], 1.0) == []  # a difference of the critical one is one
    assert ranks.cliques([1.0, 1.0, 5.0], 0.5) == [(0, 1)]
    random = np.random.default_rng(0)
    for _ in range(200):
        values = sorted(random.integers(4, 40, int(random.integers(3, 12))) / 4)
        distance = float(random.uniform(0.1, 8))
        assert ranks.cliques(values, distance) == brute_force(values, distance)
    scores = spread(12, 20)
    asked = table(scores, 20)
    found = average_ranks.ranks(*model_of(asked, records(scores)))
    values = list(found["average_rank"].values())
    parts = artists(ranks.draw(*model_of(asked, records(scores))))
    bars = {gid: part for gid, part in parts.items() if gid.startswith("bar-")}
    expected = brute_force(values, found["critical_difference"])
    names = [f"bar-{found['methods'][a]}-{found['methods'][b]}" for a, b in expected]
    assert sorted(bars) == sorted(names) and len(names) > 2
    axis = parts["axis"].get_xdata()
    for (first, last), name in zip(expected, names, strict=True):
        ends = axis[0] + (axis[1] - axis[0]) / 11 * (np.array([values[first], values[last]]) - 1)
        assert bars[name].get_xdata() == pytest.approx(ends + [-0.03, 0.03])
    for one, two in itertools.combinations(bars.values(), 2):
        apart = one.get_ydata()[0] != two.get_ydata()[0]
        assert (
            apart
            or max(one.get_xdata()) < min(two.get_xdata())
            or max(two.get_xdata()) < min(one.get_xdata())
        )


@pytest.mark.parametrize("width", [3.3, 7.0])
@pytest.mark.parametrize(
    ("count", "columns"), [(3, 2), (4, 12), (8, 2), (12, 6), (13, 30), (20, 2), (20, 40)]
)
def test_no_text_is_cut_or_overlaps_another(count, columns, width):
    scores = spread(count, columns)
    runs = records(scores | {"itq_with_a_long_name": [0.5], "another_one_left_out": [0.5]})
    asked = table([*scores, "itq_with_a_long_name", "another_one_left_out"], columns)
    figure = ranks.draw(*model_of(asked, runs), figures.Options(width=width))
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    boxes = [
        (text.get_text(), matplotlib.text.Text.get_window_extent(text, renderer))
        for text in figure.findobj(matplotlib.text.Text)
        if text.get_text() and text.get_visible()
    ]
    page = figure.bbox
    for index, (words, box) in enumerate(boxes):
        assert box.x0 >= page.x0 and box.x1 <= page.x1 and box.y0 >= page.y0 and box.y1 <= page.y1, words
        for others, other in boxes[index + 1 :]:
            apart = min(box.x1, other.x1) - max(box.x0, other.x0) <= 1 or (
                min(box.y1, other.y1) - max(box.y0, other.y0) <= 1
            )
            assert apart, (words, others)
    for gid, part in artists(figure).items():
        box = part.get_window_extent(renderer)
        assert box.x0 >= page.x0 and box.x1 <= page.x1, gid
    # The name "TALR-AP (increasing scale)" needs more than half of the narrow page.
    assert figure.get_figwidth() == width or (width == 3.3 and count > 12)


def test_methods_left_out_are_named():
    scores = spread(4, 3)
    figure = ranks.draw(*model_of(table([*scores, "itq"], 3), records(scores | {"itq": [0.1, 0.2]})))
    said = " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))
    assert "Not ranked, for want of a score in some column: ITQ." in said


def test_what_cannot_be_ranked_is_refused():
    scores = spread(3, 3)
    assert "ranks" in figures.applicable(table_of(table(scores, 3)))
    assert "ranks" not in figures.applicable(table_of(table(scores, 1)))
    assert "ranks" not in figures.applicable(table_of(table(list(scores)[:2], 3)))
    blocks = [
        {"protocol": "digits", "metric": "ap", "bits": [12, 24]},
        {"protocol": "digits", "metric": "ndcg", "bits": [12], "methods": list(scores)[:2]},
    ]
    assert "ranks" not in figures.applicable(table_of(table(scores, blocks=blocks)))
    with pytest.raises(ValueError, match=r"^table small: average ranks need three methods .*$"):
        ranks.draw(*model_of(table(scores, 3), records(spread(2, 3))))


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_bytes_repeat_and_text_stays_text(kind):
    scores = spread(8, 4)
    first = figure_style.render(ranks.draw(*model_of(table(scores), records(scores))), kind)
    with matplotlib.rc_context({"font.size": 20, "svg.fonttype": "path"}):
        again = figure_style.render(ranks.draw(*model_of(table(scores), records(scores)[::-1])), kind)
    assert again == first
    if kind == "svg":
        assert b"A small table" in first and b"MIHash" in first
