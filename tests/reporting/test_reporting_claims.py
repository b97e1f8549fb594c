"""Claims of a paper: the schema, the paper's own figures, hand-made outcomes of each kind, holes."""

import dataclasses
import functools
import itertools
import json
import math
from pathlib import Path

import jsonschema
import models
import numpy as np
import pytest
import yaml
from models import model_of, small
from scipy import stats

from reporting import frames
from reporting.claims import verdicts as claims
from reporting.printed import markdown
from reporting.statistics import columns
from tiebench import metrics
from tiebench.paired import holm

pytestmark = pytest.mark.filterwarnings("error")

ROOT = Path(__file__).parents[2]
HE2018 = yaml.safe_load((ROOT / "config" / "claims" / "he2018.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "workflow" / "schemas" / "claims.yaml").read_text())
PUBLISHED = yaml.safe_load((ROOT / "config" / "published" / "he2018.yaml").read_text())
TABLES = ("table1", "table2", "table3", "table_alpha", "figure4")
SEEDS = (0, 1, 2, 3, 4)
NOISE = np.random.default_rng(0).uniform(-0.01, 0.01, 80)

PROTOCOLS = {"digits": "Digits", "cifar10_s1": "CIFAR-10 (S1)"}
table = functools.partial(small, seeds=list(SEEDS), protocols=PROTOCOLS)


def at(*bits, protocol="digits", metric="ap"):
    return [{"protocol": protocol, "metric": metric, "bits": list(bits)}]


def record(method, bits, seed, score, protocol="digits", metric="ap", **changes):
    """A run whose scores per query lie around `score`, the same way for all methods but for a little."""
    noise = NOISE + 0.002 * np.random.default_rng([seed, bits, len(method)]).normal(size=NOISE.size)
    scores = score + noise - noise.mean() + 0.001 * seed
    metrics = {metric: float(scores.mean())}
    return models.record(method, bits, seed, metrics, protocol, per_query={metric: scores}) | changes


def runs_of(scores, seeds=SEEDS, bits=(12, 24), **keys):
    """Records from method -> score at each code length."""
    cells = [(method, *cell) for method, of in scores.items() for cell in zip(bits, of, strict=True)]
    return [record(method, length, seed, score, **keys) for method, length, score in cells for seed in seeds]


SCORES = {"talr_ap": (0.6, 0.7), "mihash": (0.5, 0.6), "lsh": (0.2, 0.3)}


def file(**claim):
    plain = {"id": "one", "claim": "A sentence.", "of": "Table 1", "stated_for": ["digits"]}
    return {"source": "somebody", "citation": "", "url": "", "claims": [plain | claim]}


def judged(claim, asked, records):
    found = claims.judge([file(**claim)], *model_of(asked, records))
    assert len(found) == 1
    json.dumps(found, allow_nan=False)
    return found[0]


BEST = {"kind": "best", "method": "talr_ap"}
GAINS = {"kind": "larger_gain_at_short_codes", "methods": ["talr_ap"], "others": ["mihash"], "up_to": 32}


def test_the_file_has_every_kind_of_claim_that_the_schema_knows():
    kinds = SCHEMA["properties"]["claims"]["items"]["properties"]["kind"]["enum"]
    assert kinds == list(claims.KINDS) and {claim["kind"] for claim in HE2018["claims"]} == set(kinds)


@pytest.mark.parametrize(
    "claim",
    [
        {"kind": "best"},
        {"kind": "above", "methods": ["talr_ap"]},
        {"kind": "side_above", "left": {"metric": "ap"}},
        {"kind": "side_above", "left": {}, "right": {"metric": "ap"}},
        {"kind": "larger_gain_at_short_codes", "methods": ["a"], "others": ["b"]},
        {"kind": "worst", "method": "talr_ap"},
        {"kind": "best", "method": "talr_ap", "where": {"bit": [12]}},
    ],
)
def test_the_schema_refuses_an_incomplete_claim(claim):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(file(**claim))


def printed(name):
    """A table of the paper, and its printed figures as results of two runs that agree."""
    asked = yaml.safe_load((ROOT / "config" / "tables" / f"{name}.yaml").read_text())
    asked |= {"name": name, "seeds": [0, 1]}
    runs = {}
    for value in PUBLISHED["values"]:
        key = value["method"], value["bits"], 0, value["protocol"]
        run = runs.setdefault(key, models.record(*key[:3], {}, key[3], per_query={}))
        scores = value["value"] + NOISE - NOISE.mean()
        run["metrics"][value["metric"]] = float(scores.mean())
        run["per_query"][value["metric"]] = scores
    return model_of(asked, [run | {"seed": seed} for run in runs.values() for seed in (0, 1)])


def test_the_paper_bears_out_its_own_claims():
    """Each holds of the printed figures where all queries agree on a difference: so it says what they say."""
    verdicts = {}
    for name in TABLES:
        for one in claims.judge([HE2018], *printed(name)):
            if not (one["elsewhere"] or one["id"].startswith("tie_ranges")):
                assert one["verdict"] == "reproduced", (name, one["id"], one["summary"])
                verdicts.setdefault(one["id"], []).append((name, len(one["figures"])))
    assert verdicts == {
        # 4 code lengths x (7 + 3 + 7) others
        "talr_ap_best": [("table1", 68), ("figure4", 28)],
        "talr_ap_above_pairs_and_triplets": [("table1", 4 * (5 + 2 + 5)), ("figure4", 20)],
        "talr_ap_above_structhash": [("table1", 8), ("figure4", 4)],
        "talr_ap_above_mihash": [("table1", 12), ("figure4", 4)],
        "talr_ap_best_at_5000": [("table1", 12)],
        "cut_ap_overestimates": [("table1", 16)],
        "talr_ap_above_hashnet_and_mihash": [("table2", 8)],
        "mihash_above_hashnet": [("table2", 4)],
        "gain_at_short_codes": [("table2", 4)],
        "talr_ndcg_best": [("table3", 4 * 7 * 2)],
        "lists_closest_to_talr_ndcg": [("table3", 4 * 2 * 5)],
        "linear_talr_ndcg_above_lists": [("table3", 8)],
        "growing_scale_improves": [("table_alpha", 4)],
    }


def test_reproduced_with_the_numbers_of_the_table_of_statistics():
    records = runs_of(SCORES)
    found = judged(BEST, table(), records)
    assert (found["verdict"], found["elsewhere"], found["source"]) == ("reproduced", "", "somebody")
    assert found["summary"] == "4 comparisons: 4 significant for the claim, 0 against it, 0 not significant."
    cells = itertools.product((12, 24), ("MIHash", "LSH"))
    expected = [f"TALR-AP against {other}: Digits, AP_T, {bits} bits" for bits, other in cells]
    assert [figure["words"] for figure in found["figures"]] == expected
    frame = columns.comparisons(*model_of(table(), records)).set_index(["method", "bits"])
    order = [("mihash", 12), ("lsh", 12), ("mihash", 24), ("lsh", 24)]
    for key, figure in zip(order, found["figures"], strict=True):
        row = frame.loc[key]
        assert figure["left"] == frame.loc["talr_ap", key[1]]["mean"] and figure["right"] == row["mean"]
        assert figure["difference"] == pytest.approx(-row["difference"], abs=1e-15)
        assert figure["low"] == pytest.approx(-row["difference_high"], abs=1e-15)
        assert figure["high"] == pytest.approx(-row["difference_low"], abs=1e-15)
        assert figure["p"] == pytest.approx(row["p"], rel=1e-9)
    # Holm's over the claim's comparisons
    assert [figure["p_adjusted"] for figure in found["figures"]] == holm(
        [figure["p"] for figure in found["figures"]]
    ).tolist()


@pytest.mark.parametrize(
    ("other", "verdict", "outcome", "counts"),
    [
        (0.8, "not reproduced", "against", "3 significant for the claim, 1 against it, 0 not significant"),
        (0.6999, "undecided", "open", "3 significant for the claim, 0 against it, 1 not significant"),
    ],
)
def test_one_comparison_refutes_a_claim_or_leaves_it_open(other, verdict, outcome, counts):
    found = judged(BEST, table(), runs_of(SCORES | {"mihash": (0.5, other)}))
    assert found["verdict"] == verdict and found["summary"].startswith(f"4 comparisons: {counts}")
    assert [figure["outcome"] for figure in found["figures"]] == ["for", "for", outcome, "for"]
    reason = "queries and runs do not decide" if outcome == "open" else ""
    assert found["figures"][2]["reason"] == reason


def test_baselines_take_no_part_in_what_is_best():
    asked = table(methods=["talr_ap", "mihash", "onehot"], families={"onehot": "bound"})
    scores = {"talr_ap": (0.6, 0.7), "mihash": (0.5, 0.6), "onehot": (0.9, 0.9)}
    found = judged(BEST, asked, runs_of(scores))
    assert found["verdict"] == "reproduced" and len(found["figures"]) == 2


def test_missing_runs_are_said_and_decide_nothing():
    refused = {"status": "refused", "reason": "no labels", "metrics": {}, "per_query": {}}
    records = runs_of({"talr_ap": (0.6, 0.7), "mihash": (0.5, 0.6)})
    records += [record("lsh", 12, seed, 0.0, **refused) for seed in SEEDS]
    found = judged(BEST, table(), records)
    assert found["verdict"] == "undecided"
    assert found["summary"].endswith("2 not significant (2 because of missing runs).")
    missing = [figure for figure in found["figures"] if figure["outcome"] == "open"]
    reasons = ["LSH, 12 bits: no labels", "LSH, 24 bits: no run was recorded"]
    assert [figure["reason"] for figure in missing] == reasons
    assert all(figure["right"] is figure["difference"] is figure["p"] is None for figure in missing)
    assert missing[0]["left"] == pytest.approx(0.602)
    # against what is there, a claim can still be refuted
    worse = runs_of({"talr_ap": (0.4, 0.7), "mihash": (0.5, 0.6)})
    assert judged(BEST, table(), worse)["verdict"] == "not reproduced"
    assert judged(BEST, table(), [])["verdict"] == "undecided"


def test_missing_seeds_are_said():
    records = runs_of(SCORES)
    records += [record("talr_ap", bits, 5, 0.6 + 0.1 * (bits == 24)) for bits in (12, 24)]
    found = judged(BEST, table(seeds=[*SEEDS, 5]), records)
    assert found["verdict"] == "reproduced"
    assert found["summary"].endswith("0 not significant; 4 without some of the seeds.")
    assert found["figures"][2]["reason"] == "MIHash, 24 bits: seed 5: no run was recorded"


def test_below_five_runs_the_verdict_is_too_few_whatever_the_means():
    for seeds in ((0,), (0, 1, 2, 3)):
        found = judged(BEST, table(seeds=list(seeds)), runs_of(SCORES, seeds))
        assert found["verdict"] == "too few runs"
        assert found["summary"] == (
            "4 comparisons, all with too few runs; 4 of 4 differences have the claimed sign."
        )
        assert {figure["outcome"] for figure in found["figures"]} == {"too few runs"}
        assert {(figure["p"], figure["p_adjusted"]) for figure in found["figures"]} == {(None, None)}
    some = [r for r in runs_of(SCORES) if (r["method"], r["bits"], r["seed"]) != ("mihash", 24, 1)]
    found = judged(BEST, table(), some)
    assert found["verdict"] == "too few runs"
    assert "3 significant for the claim, 0 against it, 0 not significant, 1 with too few" in found["summary"]
    # what is decided against a claim refutes it all the same
    worse = [r for r in runs_of(SCORES | {"lsh": (0.9, 0.3)}) if (r["method"], r["seed"]) != ("mihash", 1)]
    assert judged(BEST, table(), worse)["verdict"] == "not reproduced"


def test_without_scores_per_query_runs_decide():
    records = runs_of(SCORES)
    for run in records:
        run.pop("per_query")
    found = judged(BEST, table(), records)
    assert found["verdict"] == "reproduced"
    assert found["summary"].endswith("; no scores per query: tested over runs alone.")
    # Equal variances and numbers of runs: Welch's test is Student's, with 8 degrees of freedom.
    error = 0.001 * math.sqrt(2.5 * 2 / 5)
    assert found["figures"][0]["p"] == pytest.approx(2 * stats.t.sf(0.1 / error, 8), rel=1e-6)
    half = stats.t.isf(0.025, 8) * error
    assert found["figures"][0]["low"] == pytest.approx(0.1 - half)
    assert found["figures"][0]["high"] == pytest.approx(0.1 + half)
    agree = [record | {"metrics": {"ap": round(record["metrics"]["ap"], 1)}} for record in records]
    nothing = judged(BEST, table(), agree)
    assert nothing["verdict"] == "undecided"
    assert nothing["figures"][0]["reason"].startswith("nothing to test with")


def test_runs_that_lost_bits_are_a_rate_beside_the_mean():
    collapsed = {"health": {"collapsed": "7 of 12 bits are constant"}}
    records, of = runs_of(SCORES), {("mihash", 12, 1), ("mihash", 12, 3), ("lsh", 24, 0)}
    for run in records:
        if (run["method"], run["bits"], run["seed"]) in of:
            run |= collapsed
    found = judged(BEST, table(), records)
    lost = "{} of 5 seeds collapsed"
    assert [figure["right_lost"] for figure in found["figures"]] == [lost.format(2), "", "", lost.format(1)]
    assert {figure["left_lost"] for figure in found["figures"]} == {""}
    cells = f"MIHash, 12 bits: {lost.format(2)}; LSH, 24 bits: {lost.format(1)}."
    assert found["summary"].endswith(cells)
    assert claims.from_csv(frames.to_csv(claims.to_frame([found])), [file(**BEST)]) == [found]
    gains = judged(GAINS | {"up_to": 12}, table(), records)["figures"]
    found = [(figure["left_lost"], figure["right_lost"]) for figure in gains]
    assert found == [("MIHash, 12 bits: 2 of 5 seeds collapsed", "")] * 2
    # A run without a score is no run of the rate.
    records = [run for run in records if (run["method"], run["bits"], run["seed"]) != ("mihash", 12, 1)]
    assert judged(BEST, table(), records)["figures"][0]["right_lost"] == "1 of 4 seeds collapsed"


def test_what_holm_takes_away_is_said():
    # Nine others whose difference has t = 2.2 of 79 degrees of freedom: p = 0.031, times nine.
    wobble = np.random.default_rng(5).normal(size=NOISE.size)
    wobble -= wobble.mean()
    wobble /= wobble.std(ddof=1) / math.sqrt(wobble.size)
    best = 0.6 + NOISE
    rows = {"talr_ap": best} | {f"other{index}": best - 0.001 * (wobble + 2.2) for index in range(9)}
    records = [
        models.record(method, 12, seed, {"ap": float(scores.mean())}, per_query={"ap": scores})
        for (method, scores), seed in itertools.product(rows.items(), (0, 1))
    ]
    found = judged(BEST, table(methods=list(rows), seeds=[0, 1], blocks=at(12)), records)
    for figure in found["figures"]:
        assert figure["p"] == pytest.approx(2 * stats.t.sf(2.2, 79), rel=1e-6)
        assert figure["outcome"] == "open" and "not among this many comparisons" in figure["reason"]
    assert found["verdict"] == "undecided"
    assert "9 not significant; 9 of 9 differences have the claimed sign." in found["summary"]


def test_other_data_is_said_and_the_stated_protocols_come_first():
    asked = table(blocks=at(12) + at(12, protocol="my_data"), protocols=PROTOCOLS | {"my_data": "My data"})
    scores = {"talr_ap": (0.6,), "mihash": (0.5,), "lsh": (0.2,)}
    records = runs_of(scores, bits=(12,))
    records += runs_of(scores | {"talr_ap": (0.1,)}, bits=(12,), protocol="my_data")
    found = judged(BEST, asked, records)
    assert (found["verdict"], found["elsewhere"], len(found["figures"])) == ("reproduced", "", 2)
    found = judged(BEST | {"stated_for": ["cifar10_s1"]}, asked, records)
    assert found["verdict"] == "not reproduced" and len(found["figures"]) == 4
    assert found["elsewhere"] == "stated for CIFAR-10 (S1), tried here on Digits, AP_T; My data, AP_T"
    there = BEST | {"stated_for": ["x"], "where": {"protocol": "digits", "bits": [12]}}
    assert judged(there, asked, records)["verdict"] == "reproduced"


def test_claims_about_other_cells_are_not_judged():
    records = runs_of(SCORES)
    for claim in (
        {"kind": "best", "method": "talr_ndcg"},
        BEST | {"where": {"metric": "ndcg"}},
        BEST | {"where": {"methods": ["talr_ap"]}},
        {"kind": "above", "methods": ["talr_ap"], "others": ["itq"]},
        {"kind": "side_above", "left": {"protocol": "more"}, "right": {"protocol": "digits"}},
        {"kind": "side_above", "left": {"metric": "ap@100"}, "right": {"metric": "ap"}},
        GAINS,
    ):
        assert claims.judge([file(**claim)], *model_of(table(), records)) == []
    with pytest.raises(ValueError, match="claim one: there is no kind 'worst'; known: best, above"):
        claims.judge([file(kind="worst")], *model_of(table(), records))


@pytest.mark.parametrize(
    ("part", "claim"),
    [
        ("where", BEST | {"where": {"metric": "app"}}),
        ("where", BEST | {"where": {"metric": ["ap", "app"]}}),
        ("left", {"kind": "side_above", "left": {"metric": "app"}, "right": {"metric": "ap"}}),
    ],
)
def test_a_claim_on_an_unknown_metric_is_refused_and_never_dropped(part, claim):
    with pytest.raises(ValueError, match=f"claim one, {part}: there is no metric 'app'; did you mean 'ap'"):
        claims.judge([file(**claim)], *model_of(table(), []))


def test_where_lower_is_better_the_lower_side_is_above(monkeypatch):
    lower = dataclasses.replace(metrics.METRICS["ap"], name="cost", higher_is_better=False)
    monkeypatch.setitem(metrics.METRICS, "cost", lower)
    asked = table(blocks=at(12, metric="cost"))
    for score, verdict in ((0.1, "reproduced"), (0.9, "not reproduced")):
        scores = {"talr_ap": (score,), "mihash": (0.5,), "lsh": (0.6,)}
        found = judged(BEST, asked, runs_of(scores, bits=(12,), metric="cost"))
        assert found["verdict"] == verdict
        assert all((figure["difference"] < 0) == (score == 0.1) for figure in found["figures"])


def test_neither_the_order_of_records_nor_other_claims_change_anything():
    records = runs_of(SCORES | {"mihash": (0.5, 0.7001)})
    first = claims.judge([file(**BEST)], *model_of(table(), records))
    assert claims.judge([file(**BEST)], *model_of(table(), records[::-1])) == first
    above = {"kind": "above", "methods": ["talr_ap"], "others": ["lsh"]}
    more = claims.judge([file(**above), file(**BEST)], *model_of(table(), iter(records)))
    assert more[1:] == first


def test_above_compares_each_with_each_and_says_who_is_absent():
    records = runs_of(SCORES)
    claim = {"kind": "above", "methods": ["talr_ap", "mihash"], "others": ["lsh", "dtsh", "bre"]}
    found = judged(claim, table(titles={"bre": "BRE"}), records)
    assert found["verdict"] == "reproduced"
    assert found["summary"].endswith("0 not significant; not judged: DTSH and BRE.")


def test_a_side_may_be_another_protocol():
    asked = table(blocks=at(12, 24) + at(12, 24, protocol="longer"))
    records = runs_of({"talr_ap": (0.6, 0.7)}) + runs_of({"talr_ap": (0.65, 0.72)}, protocol="longer")
    sides = {"left": {"protocol": "longer"}, "right": {"protocol": "digits"}}
    claim = {"kind": "side_above", "where": {"methods": ["talr_ap"]}} | sides
    found = judged(claim, asked, records)
    assert found["verdict"] == "reproduced"
    assert [figure["words"] for figure in found["figures"]] == [
        f"longer against Digits: TALR-AP, AP_T, {bits} bits" for bits in (12, 24)
    ]
    assert [figure["difference"] for figure in found["figures"]] == pytest.approx([0.05, 0.02])
    swapped = claim | {"left": claim["right"], "right": claim["left"]}
    assert judged(swapped, asked, records)["verdict"] == "not reproduced"


def test_a_side_may_be_a_baseline():
    styles = {"onehot": {"title": "One-hot", "family": "bound"}}
    settings = table(methods=["talr_ap", "onehot"], styles=styles)
    records = runs_of({"talr_ap": (0.6, 0.7), "onehot": (0.5, 0.6)})
    for method in ("talr_ap", ["talr_ap"]):
        claim = {"kind": "side_above", "left": {"method": method}, "right": {"method": "onehot"}}
        found = judged(claim, settings, records)
        assert found["verdict"] == "reproduced" and len(found["figures"]) == 2


def test_a_side_may_be_a_score_of_the_same_runs_that_no_block_asks_for():
    # Seeds far apart, the two scores of each close together: only the test paired by runs can decide.
    bases, gains = (0.3, 0.5, 0.7, 0.4, 0.6), (0.011, 0.010, 0.012, 0.011, 0.013)
    records = []
    for seed, (base, gain) in enumerate(zip(bases, gains, strict=True)):
        run = record("talr_ap", 12, seed, base)
        run["metrics"]["ap@100"] = run["metrics"]["ap"] + gain
        records.append(run)
    claim = {"kind": "side_above", "left": {"metric": ["ap@100", "ap@50"]}, "right": {"metric": "ap"}}
    found = judged(claim, table(methods=["talr_ap"], blocks=at(12)), records)
    (figure,) = found["figures"]
    assert figure["words"] == "AP@100 against AP_T: TALR-AP, Digits, 12 bits"
    assert figure["p"] == pytest.approx(stats.ttest_1samp(gains, 0).pvalue, rel=1e-6) and figure["p"] < 0.01
    assert found["summary"] == (
        "The one comparison is significant for the claim; no scores per query: tested over runs alone."
    )


def test_gains_at_short_and_long_codes():
    bits = (12, 24, 32, 48, 64)
    asked = table(blocks=at(*bits))
    scores = {"talr_ap": (0.5, 0.55, 0.6, 0.62, 0.64), "mihash": (0.4, 0.5, 0.57, 0.61, 0.64)}
    records = runs_of(scores, bits=bits)
    found = judged(GAINS, asked, records)
    gain, figure = found["figures"]
    for one, other in ((gain, "none"), (figure, "48 and 64 bits")):
        of = "gain of TALR-AP over MIHash at 12, 24 and 32 bits"
        assert one["words"] == f"{of} against {other}: Digits, AP_T"
    assert (gain["left"], gain["right"], gain["outcome"]) == (pytest.approx(0.06), 0.0, "for")
    # (0.1 + 0.05 + 0.03) / 3 and (0.01 + 0) / 2
    assert (figure["left"], figure["right"]) == (pytest.approx(0.06), pytest.approx(0.005))
    assert figure["low"] < figure["difference"] < figure["high"]
    assert found["verdict"] == "reproduced"
    # the test over queries is that of the contrast
    of = {(r["method"], r["bits"], r["seed"]): r["per_query"]["ap"] for r in records}
    contrast = sum(
        weight * sign * np.mean([of[method, length, seed] for seed in SEEDS], axis=0)
        for lengths, weight in (((12, 24, 32), 1 / 3), ((48, 64), -1 / 2))
        for length in lengths
        for method, sign in (("talr_ap", 1), ("mihash", -1))
    )
    assert figure["difference"] == pytest.approx(contrast.mean())
    assert figure["p"] >= stats.ttest_1samp(contrast, 0).pvalue * (1 - 1e-9)
    some = [r for r in records if (r["method"], r["bits"]) != ("mihash", 64)]
    hole = judged(GAINS, asked, some)
    assert hole["verdict"] == "undecided"
    assert [figure["reason"] for figure in hole["figures"]] == ["", "MIHash, 64 bits: no run was recorded"]


def test_a_deficit_that_is_smaller_at_short_codes_is_no_gain():
    records = runs_of({"talr_ap": (0.5, 0.5), "mihash": (0.55, 0.65)}, bits=(12, 48))
    found = judged(GAINS, table(blocks=at(12, 48)), records)
    assert [figure["outcome"] for figure in found["figures"]] == ["against", "for"]
    assert found["verdict"] == "not reproduced"


def ranged(method, bits, low, middle, high, seed=0):
    return models.record(method, bits, seed, {"ap_min": low, "ap": middle, "ap_max": high})


def test_ranges_of_ties_overlap():
    asked = table(seeds=[0])
    claim = {"kind": "tie_ranges_overlap", "where": {"metric": "ap"}}
    rows = [("talr_ap", 0.5, 0.6, 0.7), ("mihash", 0.4, 0.5, 0.55), ("lsh", 0.1, 0.2, 0.45)]
    records = [ranged(m, bits, *scores) for bits in (12, 24) for m, *scores in rows]
    found = judged(claim, asked, records)
    outcomes = {"TALR-AP and MIHash": "for", "TALR-AP and LSH": "against", "MIHash and LSH": "for"}
    assert {f["words"].split(":")[0]: f["outcome"] for f in found["figures"]} == outcomes
    assert [f["difference"] for f in found["figures"]] == pytest.approx([0.05, -0.05, 0.05] * 2)
    assert all(f["p"] is None and f["low"] is None for f in found["figures"])
    assert found["verdict"] == "reproduced"
    assert found["summary"].startswith("The ranges of 4 of 6 (67%) pairs of methods overlap.")
    assert judged(claim, asked, records[1:])["verdict"] == "undecided"
    # Three of six are not more than half, whichever the code length.
    for place, bits in enumerate((12, 24)):
        apart = [ranged("talr_ap", bits, 0.56, 0.6, 0.7)]
        others = [one for index, one in enumerate(records) if index != 3 * place]
        assert judged(claim, asked, apart + others)["verdict"] == "not reproduced"


def test_methods_of_the_claim_that_a_table_lacks_are_named():
    where = {"metric": "ap", "methods": ["talr_ap", "mihash", "bre"]}
    records = [ranged(m, b, 0.1, 0.5, 0.9) for m in ("talr_ap", "mihash") for b in (12, 24)]
    for claim in ({"kind": "tie_ranges_overlap"}, {"kind": "tie_ranges_shrink"}, BEST):
        found = judged(claim | {"where": where}, table(seeds=[0], methods=["talr_ap", "mihash"]), records)
        assert "; not judged: BRE" in found["summary"]


def test_a_claim_is_judged_by_its_own_metric_whichever_cutoff_the_table_shows():
    records = [
        models.record(method, 12, seed, {"ap": whole + noise, "ap@100": cut + noise})
        for method, whole, cut in (("talr_ap", 0.6, 0.7), ("mihash", 0.5, 0.8))
        for seed, noise in enumerate((0.0, 0.001, 0.002, 0.003, 0.004))
    ]
    asked = table(seeds=[0, 1, 2, 3, 4], methods=["talr_ap", "mihash"], blocks=at(12))
    outcomes = {}
    for metric in ("ap", "ap@100"):
        (figure,) = judged(BEST | {"metric": metric}, asked, records)["figures"]
        outcomes[metric] = figure["outcome"], pytest.approx(figure["difference"])
        assert ("AP@100" in figure["words"]) == (metric == "ap@100")
    assert outcomes == {"ap": ("for", 0.1), "ap@100": ("against", -0.1)}
    sides = {"kind": "side_above", "left": {"method": "talr_ap"}, "right": {"method": "mihash"}}
    (figure,) = judged(sides | {"metric": "ap@100"}, asked, records)["figures"]
    assert figure["difference"] == pytest.approx(-0.1)
    for metric in ("ap@1000", "ndcg"):  # no run has a score of it, or it is another measure
        assert claims.judge([file(**BEST, metric=metric)], *model_of(asked, records)) == []


def test_ranges_of_ties_shrink():
    asked = table(seeds=[0, 1], methods=["talr_ap", "lsh"])
    claim = {"kind": "tie_ranges_shrink", "where": {"metric": "ap"}}
    records = [
        ranged(method, bits, 0.5 - width - seed / 8, 0.5, 0.5 + seed / 8, seed)
        for method, widths in (("talr_ap", (0.25, 0.125)), ("lsh", (0.125, 0.0625)))
        for bits, width in zip((12, 24), widths, strict=True)
        for seed in (0, 1)
    ]
    found = judged(claim, asked, records)
    assert found["verdict"] == "reproduced"
    # width at a seed: width + 2 seed / 8; the mean over two seeds adds 1/8
    assert [(f["left"], f["right"]) for f in found["figures"]] == [(0.375, 0.25), (0.25, 0.1875)]
    assert found["summary"].startswith("The range narrows in 2 of 2 (100%) steps to the next code length.")
    some = [r for r in records if (r["method"], r["bits"]) != ("lsh", 24)]
    wider = [ranged("lsh", 24, 0.0, 0.5, 1.0, seed) for seed in (0, 1)]
    assert judged(claim, asked, some + wider)["verdict"] == "not reproduced"
    hole = judged(claim, asked, some)
    assert hole["verdict"] == "undecided" and "; 1 without runs" in hole["summary"]
    assert hole["figures"][1]["reason"] == "LSH, 24 bits: no run was recorded"
    assert hole["figures"][1]["left"] is None


def test_a_row_per_comparison_and_a_line_per_claim():
    records = runs_of(SCORES)
    found = claims.judge([file(**BEST)], *model_of(table(), records))
    frame = claims.to_frame(found)
    assert list(frame["comparison"]) == [figure["words"] for figure in found[0]["figures"]]
    assert frame["difference"].tolist() == [figure["difference"] for figure in found[0]["figures"]]
    assert set(frame["claim"]) == {found[0]["id"]} and set(frame["verdict"]) == {found[0]["verdict"]}
    printed = markdown.claims_to_markdown(found)
    assert printed.startswith("\n## Claims\n\n- **reproduced**: ") and printed.count("\n- ") == 1
    assert claims.to_frame([]).empty and markdown.claims_to_markdown([]) == ""
    exact = [found[0] | {"figures": [found[0]["figures"][0] | {"p": None, "low": None}]}]
    assert claims.to_frame(exact)[["p", "low"]].isna().all(axis=None)


def test_differences_of_the_claimed_sign_are_counted():
    records = runs_of({"talr_ap": (0.6, 0.6), "mihash": (0.59999, 0.60001), "lsh": (0.2, 0.3)})
    assert judged(BEST, table(), records)["summary"].endswith("3 of 4 differences have the claimed sign.")
