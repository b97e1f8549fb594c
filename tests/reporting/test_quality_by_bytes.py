"""Quality against bytes: lines and bands are the means of the records, the dashed line is the floats'."""

import statistics

import pytest
from models import model_of
from styles import texts
from test_reporting_curves import artists, records, table

from reporting import figures
from reporting.drawing.axes import NothingToDraw

BLOCKS = [{"protocol": "digits", "metric": "ndcg@10", "bits": [12, 24], "title": "Digits"}]


def scored(of):
    made = records(of)
    for place, record in enumerate(made):
        low = 0.2 + 0.01 * place
        record["metrics"] = {"ndcg@10": low + 0.1, "ndcg@10_min": low, "ndcg@10_max": low + 0.3}
    return made


def test_lines_bands_and_floats_are_those_of_the_records():
    layout = table(blocks=BLOCKS)
    floats = {"digits": {"ndcg@10": 0.9}}
    made = scored(layout)
    figure = figures.draw("quality_by_bytes", *model_of(layout | {"uncoded_scores": floats}, made))
    found = artists(figure)
    for method in layout["methods"]:
        of = [r for r in made if r["method"] == method]
        means = [statistics.fmean(r["metrics"]["ndcg@10"] for r in of if r["bits"] == b) for b in (12, 24)]
        line = found[f"line-digits-ndcg@10-{method}"]
        assert list(line.get_xdata()) == [1.5, 3.0]
        assert list(line.get_ydata()) == pytest.approx(means)
        corners = found[f"band-digits-ndcg@10-{method}"].get_paths()[0].vertices
        assert min(corners[:, 1]) == pytest.approx(min(means) - 0.1)
        assert max(corners[:, 1]) == pytest.approx(max(means) + 0.2)
    assert set(found["floats-digits-ndcg@10"].get_ydata()) == {0.9}
    said = [text.get_text() for text in texts(figure)]
    assert "floats: 0.900" in said


def test_estimates_stand_at_the_bytes_that_they_need():
    blocks = [BLOCKS[0] | {"metric": "estimated_ndcg@10"}]
    layout = table(blocks=blocks)
    made = scored(layout)
    for record in made:
        of = {f"estimated_{name}": value for name, value in record["metrics"].items()}
        record["metrics"] = of | {"estimated_bytes": record["bits"] / 8 + 8}
    found = artists(figures.draw("quality_by_bytes", *model_of(layout, made)))
    for method in layout["methods"]:
        assert list(found[f"line-digits-estimated_ndcg@10-{method}"].get_xdata()) == [9.5, 11.0]


def test_without_floats_or_scores():
    layout = table(blocks=BLOCKS)
    drawn = artists(figures.draw("quality_by_bytes", *model_of(layout, scored(layout))))
    assert not [gid for gid in drawn if gid.startswith("floats")]
    with pytest.raises(NothingToDraw, match="no run has a score"):
        figures.draw("quality_by_bytes", *model_of(layout, []))
