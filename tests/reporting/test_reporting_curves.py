"""Figures of curves, scores and training logs: what is drawn against the records, holes, layout, bytes."""

import functools
import math
import statistics

import numpy as np
import pytest
from models import block, model_of, small
from models import record as run_of
from styles import STYLES, artists, check_texts

from reporting import figures
from reporting.figures import distances, metric_by_bits, precision_at, precision_recall, training
from tiebench import figure_style
from tiebench.metrics import ORDERS

NAMES = ("metric_by_bits", "precision_recall", "precision_at", "training", "cost", "distances", "tie_ranges")
METHODS = ("lsh", "itq", "mihash", "talr_ap")
BITS = (12, 24)
CUTS = (1, 10, 100, 1000)
COUNTERS = ("epoch", "iteration", "sweep", "bit")


table = functools.partial(
    small,
    methods=list(METHODS),
    families={"lsh": "unsupervised", "itq": "unsupervised", "mihash": "listwise", "talr_ap": "listwise"},
    blocks=[block("digits", "ap", BITS, title="Digits")],
)


def record(protocol, method, bits, seed, row):
    """A run with every kind of record; numbers differ in all of protocol, row, bits and seed."""
    generator = np.random.default_rng([len(protocol), row, bits, seed])
    score = float(0.2 + 0.6 * row / 24 + bits / 2000 + generator.uniform(0, 0.02))
    relevant, irrelevant = (generator.dirichlet(np.ones(bits + 1)).tolist() for _ in range(2))
    steps = 1 if method == "lsh" else 30
    log = [{"objective": None, "seconds": float(step), COUNTERS[row % 4]: step + 1} for step in range(steps)]
    for step, line in enumerate(log if method != "lsh" else []):
        line["objective"] = float(row + generator.uniform(0, 0.2) + 4 / (step + 1))
    metrics = dict.fromkeys(("ap", "ap_min", "ap_max", "ndcg", "ap@1000", "ndcg@10"), score)
    metrics |= {f"{kind}_ap": score / divisor for divisor, kind in enumerate(ORDERS, 1)}
    curves = {
        "recall": np.sort(generator.uniform(size=bits + 1)).tolist(),
        "precision": generator.uniform(size=bits + 1).tolist(),
        "relevant_at": relevant,
        "irrelevant_at": irrelevant,
        "cuts": list(CUTS),
        "precision_at": generator.uniform(size=len(CUTS)).tolist(),
    }
    cost = {"seconds_by_part": {"fit": float(generator.uniform(1, 900)), "encode": score * (row + 1)}}
    return run_of(method, bits, seed, metrics, protocol, curves=curves, run=cost, training=log)


def records(of=None):
    of = of or table()
    cells = {
        (block["protocol"], method, bits)
        for block in of["blocks"]
        for method in block.get("methods") or of["methods"]
        for bits in block["bits"]
    }
    return [
        record(protocol, method, bits, seed, of["methods"].index(method))
        for protocol, method, bits in sorted(cells)
        for seed in of["seeds"]
    ]


# For reading alone.
RECORDS = records()


def large():
    """Twenty methods, eight code lengths, four blocks of three protocols, names of every length."""
    methods = [*STYLES, "a_rather_long_method_name_of_a_user", "x", *(f"my_method_{i}" for i in range(5))]
    families = ("unsupervised", "pairwise", "listwise")
    long = "A protocol whose title is far too long to stand in one line over one small panel"
    return table(
        seeds=[0],
        methods=methods,
        families={method: families[i % 3] for i, method in enumerate(methods)},
        blocks=[
            block("digits", "ap", [8, 12, 16, 24, 32, 48, 64, 128]),
            block("digits", "ndcg", [16, 32]),
            block("cifar10_s1", "ap@1000", [12, 24, 48], title=long),
            block("nus_wide", "ap", [16], methods=["talr_ap", "x"]),
        ],
    )


ONE = [block("digits", "ap", [16])]
TABLES = {"one": table(methods=["talr_ap"], families={}, seeds=[0], blocks=ONE), "large": large()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", TABLES)
def test_no_text_is_cut_or_overlaps_another(name, size):
    """tests/reporting/test_figure_options.py asks it of all figures, of a small table in a narrow column."""
    check_texts(figures.draw(name, *model_of(TABLES[size], records(TABLES[size]))))


def runs(some, method, bits):
    return [r for r in some if (r["method"], r["bits"]) == (method, bits)]


def test_scores_by_bits_are_means_and_ranges_over_seeds():
    found = artists(metric_by_bits.draw(*model_of(table(), RECORDS)))
    assert len(found) == 2 * len(METHODS)
    for method in METHODS:
        scores = [[r["metrics"]["ap"] for r in runs(RECORDS, method, bits)] for bits in BITS]
        line, spans = found[f"line-digits-ap-{method}"], found[f"range-digits-ap-{method}"]
        assert line.get_ydata() == pytest.approx([statistics.mean(of) for of in scores], rel=1e-15)
        assert list(line.get_xdata()) == list(line.axes.get_xticks()) == [0, 1]
        for segment, x, of in zip(spans.get_segments(), line.get_xdata(), scores, strict=True):
            assert segment.tolist() == [[x, min(of)], [x, max(of)]]
    labels = [tick.get_text() for tick in found["line-digits-ap-lsh"].axes.get_xticklabels()]
    assert labels == ["12", "24"]


def test_panels_of_one_metric_say_that_their_scales_differ():
    other = block("digits_levels", "ap", BITS)
    for blocks, said in ((ONE, False), ([*ONE, other], True), ([*ONE, other | {"metric": "ndcg"}], False)):
        asked = table(blocks=blocks)
        figure = metric_by_bits.draw(*model_of(asked, records(asked)))
        texts = " ".join(text.get_text().replace("\n", " ") for text in figure.texts)
        assert ("Each panel has its own scale." in texts) == said


def test_a_block_of_many_methods_has_panels_of_whole_families(monkeypatch):
    monkeypatch.setattr(metric_by_bits, "MOST", 2)
    families = table()["families"] | {"onehot": "bound"}
    many = table(methods=[*METHODS, "onehot"], families=families)
    figure = metric_by_bits.draw(*model_of(many, records(many)))
    lines = {name: of for name, of in artists(figure).items() if name.startswith("line-")}
    panels = [[name for name, of in lines.items() if of.axes is axes] for axes in figure.axes]
    found = [sorted(name.rpartition("-")[2] for name in of) for of in panels]
    assert found == [["itq", "lsh"], ["mihash", "onehot", "talr_ap"]]
    assert len({axes.get_gid() for axes in figure.axes}) == 2


def test_names_stand_in_the_order_of_the_last_scores():
    figure = metric_by_bits.draw(*model_of(table(), RECORDS))
    found = artists(figure)
    texts = [text for text in figure.axes[0].texts if text.get_text() in ("LSH", "ITQ", "MIHash", "TALR-AP")]
    by_height = [text.get_text() for text in sorted(texts, key=lambda text: text.get_position()[1])]
    last = {method: found[f"line-digits-ap-{method}"].get_ydata()[-1] for method in METHODS}
    assert by_height == [STYLES[method]["title"] for method in sorted(last, key=last.get)]


def test_bits_are_drawn_ascending_and_one_seed_has_no_range():
    shuffled = table(seeds=[1], blocks=[block("digits", "ap", [24, 12])])
    found = artists(metric_by_bits.draw(*model_of(shuffled, RECORDS)))
    assert not [name for name in found if name.startswith("range")]
    scores = [runs(RECORDS, "itq", bits)[1]["metrics"]["ap"] for bits in (12, 24)]
    assert found["line-digits-ap-itq"].get_ydata().tolist() == scores


@pytest.mark.parametrize(
    "module, x, y", [(precision_recall, "recall", "precision"), (precision_at, "cuts", "precision_at")]
)
def test_curves_are_means_over_seeds_point_by_point(module, x, y):
    found = artists(module.draw(*model_of(table(), RECORDS)))
    assert set(found) == {f"line-digits-{bits}-{method}" for bits in BITS for method in METHODS}
    for method in METHODS:
        for bits in BITS:
            line = found[f"line-digits-{bits}-{method}"]
            for data, name in ((line.get_xdata(), x), (line.get_ydata(), y)):
                curves = [r["curves"][name] for r in runs(RECORDS, method, bits)]
                assert data == pytest.approx(np.mean(curves, axis=0), rel=1e-14)
    panels = {found[f"line-digits-{bits}-lsh"].axes for bits in BITS}
    assert len({panel.get_ylim() for panel in panels}) == 1
    assert {panel.get_xscale() for panel in panels} == {"log" if x == "cuts" else "linear"}


def test_a_null_takes_its_seed_out_at_that_radius_alone():
    some = records()
    of = runs(some, "lsh", 12)
    of[0]["curves"]["precision"][:2] = [None, None]
    of[1]["curves"]["precision"][0] = None
    of[2]["curves"]["precision"][0] = None
    of[2]["curves"]["recall"][3] = math.nan
    line = artists(precision_recall.draw(*model_of(table(), some)))["line-digits-12-lsh"]
    # Radius 0 has no seed, radius 1 the last two, radius 3 the first two, the others all.
    takes = {1: (1, 2), 3: (0, 1)}
    assert len(line.get_xdata()) == 12
    for x, y, radius in zip(line.get_xdata(), line.get_ydata(), range(1, 13), strict=True):
        seeds = takes.get(radius, (0, 1, 2))
        assert x == pytest.approx(statistics.mean(of[seed]["curves"]["recall"][radius] for seed in seeds))
        assert y == pytest.approx(statistics.mean(of[seed]["curves"]["precision"][radius] for seed in seeds))


def test_cuts_are_averaged_at_equal_k():
    some = records()
    of = runs(some, "itq", 24)
    of[0]["curves"] |= {"cuts": [1, 100, 5000], "precision_at": [0.9, 0.5, 0.1]}
    of[1]["curves"] |= {"cuts": [1, 10, 5000], "precision_at": [0.7, 0.6, None]}
    of[2]["curves"] = {}
    line = artists(precision_at.draw(*model_of(table(), some)))["line-digits-24-itq"]
    assert list(line.get_xdata()) == [1, 10, 100, 5000]
    assert list(line.get_ydata()) == pytest.approx([0.8, 0.6, 0.5, 0.1])


def test_one_panel_per_protocol_and_bits_even_where_two_blocks_ask_for_it():
    both = table(
        blocks=[
            block(title="Digits"),
            block("digits", "ndcg", [24], methods=["talr_ap"]),
            block("cifar10_s1", "ap", [12], title="CIFAR-10"),
        ]
    )
    figure = precision_recall.draw(*model_of(both, records(both)))
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["12 bits", "24 bits", "12 bits"]
    said = [text.get_text() for text in figure.texts]
    assert said.index("Digits") < said.index("CIFAR-10")


def test_distances_are_means_and_the_number_is_the_shared_area():
    three = table(blocks=[block("digits", "ap", [32, 12, 24])])
    drawn = records(three)
    figure = distances.draw(*model_of(three, drawn))
    found = artists(figure)
    assert len(figure.axes) == len(METHODS)
    for method in METHODS:
        of = [r["curves"] for r in runs(drawn, method, 24)]
        means = [np.mean([c[name] for c in of], axis=0) for name in ("relevant_at", "irrelevant_at")]
        for kind, mean in zip(("relevant", "irrelevant"), means, strict=True):
            heights, edges, _ = found[f"{kind}-digits-24-{method}"].get_data()
            assert heights == pytest.approx(mean, rel=1e-13)
            assert edges.tolist() == [distance - 0.5 for distance in range(26)]
        shared = np.minimum(*means).sum()
        panel = found[f"relevant-digits-24-{method}"].axes
        assert [text.get_text() for text in panel.texts] == [f"{shared:.2f}"]
        assert panel.get_title(loc="left") == STYLES[method]["title"]
    # An even number of code lengths: the longer of the two in the middle.
    assert "relevant-digits-24-lsh" in artists(distances.draw(*model_of(table(), RECORDS)))


def test_objectives_stand_against_the_steps_that_a_log_counts():
    figure = training.draw(*model_of(table(), RECORDS))
    found = artists(figure)
    assert not [name for name in found if "-lsh-" in name]
    assert len(found) == 3 * len(METHODS[1:]) * len(BITS)
    for method in METHODS[1:]:
        counter = COUNTERS[METHODS.index(method) % 4]
        for bits in BITS:
            for run in runs(RECORDS, method, bits):
                line = found[f"line-digits-{bits}-{method}-{run['seed']}"]
                logged = {entry[counter]: entry["objective"] for entry in run["training"]}
                assert {x: logged[x] for x in line.get_xdata()} == dict(zip(*line.get_data(), strict=True))
                assert {line.get_xdata()[0], line.get_xdata()[-1]} == {1, 30}
        assert found[f"line-digits-12-{method}-0"].axes.get_xlabel() == counter
    by_bits = {bits: found[f"line-digits-{bits}-itq-0"].get_color() for bits in BITS}
    assert len(set(by_bits.values())) == len(BITS)
    assert all(found[f"line-digits-{bits}-mihash-2"].get_color() == by_bits[bits] for bits in BITS)


def test_a_log_that_starts_again_is_counted_in_lines():
    some = records()
    for run in runs(some, "itq", 12):
        run["training"] = [{"bit": bit, "objective": value} for bit, value in ((1, 5), (2, 3), (1, 4))]
    found = artists(training.draw(*model_of(table(), some)))
    line = found["line-digits-12-itq-0"]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([1, 2, 3], [5, 3, 4])
    assert line.axes.get_xlabel() == "step"


def test_nulls_in_a_log_are_left_out():
    some = records()
    run = runs(some, "itq", 12)[1]
    for index, value in ((0, None), (7, math.inf), (29, None)):
        run["training"][index]["objective"] = value
    line = artists(training.draw(*model_of(table(), some)))["line-digits-12-itq-1"]
    assert line.get_xdata()[0] == 2 and line.get_xdata()[-1] == 29 and 8 not in line.get_xdata()


def test_what_thinning_drops_lies_on_the_line():
    generator = np.random.default_rng(3)
    x = np.cumsum(generator.uniform(0.1, 2, 400))
    for y in (np.exp(-x / 40), np.cumsum(generator.normal(size=400)), generator.normal(size=400), x * 0):
        off = training.deviations(x, y)
        assert np.isinf(off[[0, -1]]).all()
        for least in (training.TOLERANCE, 0.05, 0.3, 2.0):
            kept = off > least
            drawn = np.interp(x, x[kept], y[kept])
            assert np.abs(drawn - y).max() <= least * np.ptp(y)
    assert (training.deviations(x, 3 * x) > 0).sum() == 2


def test_long_logs_are_thinned_to_the_bound_and_keep_their_ends():
    some = records()
    generator = np.random.default_rng(0)
    for run in some:
        if run["method"] != "lsh":
            values = (1 / np.arange(1, 1001) + generator.uniform(0, 0.2, 1000)).tolist()
            run["training"] = [{"epoch": i + 1, "objective": value} for i, value in enumerate(values)]
    figure = training.draw(*model_of(table(), some))
    lines = artists(figure).values()
    points = sum(len(line.get_xdata()) for line in lines)
    assert 0.9 * training.POINTS <= points <= training.POINTS + 2 * len(lines)
    assert {(line.get_xdata()[0], line.get_xdata()[-1]) for line in lines} == {(1, 1000)}
    assert len(figure_style.render(figure, "svg")) < 150_000
