"""docs/faq.md: each of its figures, recomputed from the leaderboard or the configuration.

Tables between markers are checked with those of the other pages (tests/test_documentation.py).
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import tiebench
from methods._catalogue import catalogue

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "faq.md").read_text(encoding="utf-8")
BOUNDS = {"onehot", "classifier_codes", "uncoded"}


def answer(question):
    """The answer to a question, without generated tables, in one line."""
    found = re.search(rf"^## {re.escape(question)}\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)[1]
    found = re.sub(r"<!-- leaderboard:.*?<!-- end -->", "", found, flags=re.DOTALL)
    return " ".join(found.split())


def figures(question, pattern):
    """The groups of a pattern in an answer, which must match once."""
    (found,) = re.findall(pattern, answer(question))
    return found


def rows_of(protocol, bits):
    """Rows of a leaderboard, over all folds, at a code length."""
    with (ROOT / "leaderboard" / f"{protocol}.tidy.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if (row["protocol"], row["bits"]) == (protocol, str(bits))]


def ap(protocol, bits):
    """Method -> row of its AP in a leaderboard."""
    return {row["method"]: row for row in rows_of(protocol, bits) if row["metric"] == "ap"}


def configuration(name):
    return yaml.safe_load((ROOT / "config" / name).read_text(encoding="utf-8"))


# -- what is asked ----------------------------------------------------------------------------------------


ASKED = {
    "trained models, codes, inference": "Where are trained models, or codes to download?",
    "other numbers than the paper's": "Why do my numbers differ from the paper's?",
    "the split of CIFAR-10": "Which CIFAR-10 split is it?",
    "mAP@K and the order of ties": "Is my mAP@K right?",
    "queries in the database": "Are the queries in the database?",
    "many classes, odd lengths": "How many classes and bits are possible?",
    "links to data": "Which data must I download by hand?",
    "metric-learning libraries": "Can I use it with my training loop or my metric-learning library?",
    "vector databases": "How much do binary embeddings lose in a vector database?",
}


@pytest.mark.parametrize("question", ASKED.values(), ids=ASKED)
def test_what_users_of_hashing_code_ask_has_an_answer_with_a_way_on(question):
    text = answer(question)
    assert len(text.split()) > 20
    assert re.search(r"\]\([\w/.#-]+\)|`tiebench |snakemake ", text)


# -- figures from the configuration -------------------------------------------------------------------------


def test_the_splits_of_cifar10_are_those_of_the_protocols():
    """60,000 images, 6,000 a class; 50,000 of them CIFAR-10's own training images."""
    protocols = configuration("protocols.yaml")
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", TEXT, re.MULTILINE)
    shown = {name: cells for name, *cells in rows}
    named = re.compile(r"cifar10_(s\d(?!.*continuation).*|unsupervised_\d)")
    assert set(shown) == set(filter(named.fullmatch, protocols))
    same_as = []
    for name, (queries, training, database) in shown.items():
        split = protocols[name]["split"]
        if split == {"kind": "given", "query": "test", "database": "train", "training": "all"}:
            assert "10,000 test images" in queries and "all 50,000" in training and "same 50,000" in database
            continue
        assert split["kind"] == "per_class"
        drawn = 60_000 - 10 * split["query"]
        if queries == "the same":
            assert training == "the same" and split == same_as[-1] | {"training_in_database": False}
            assert f"{drawn - 10 * split['training']:,}" in database
            continue
        same_as.append(split)
        assert queries == f"{split['query']:,} a class" and f"the {drawn:,} that are not queries" in database
        assert training == ("the database" if split["training"] == "all" else f"{split['training']} a class")


def test_the_printed_scores_of_one_method_under_two_splits():
    one, two = figures(
        "Which CIFAR-10 split is it?", r"print AP ([\d.]+) of .*? and ([\d.]+) under setting 2"
    )
    values = configuration("published/he2018.yaml")["values"]
    printed = {
        value["protocol"]: value["value"]
        for value in values
        if (value["method"], value["metric"], value["bits"]) == ("talr_ap", "ap", 48)
    }
    assert (float(one), float(two)) == (printed["cifar10_s1"], printed["cifar10_s2"])


def test_the_bits_that_tables_take():
    low, high = figures("How many classes and bits are possible?", r"tables take (\d+) to ([\d,]+)")
    schema = yaml.safe_load((ROOT / "workflow" / "schemas" / "tables.yaml").read_text(encoding="utf-8"))
    found = []

    def walk(part):
        if isinstance(part, dict):
            bits = part.get("bits")
            if isinstance(bits, dict) and bits.get("type") == "array":
                found.append((bits["items"]["minimum"], bits["items"]["maximum"]))
            for value in part.values():
                walk(value)

    walk(schema)
    assert set(found) == {(int(low), int(high.replace(",", "")))}


# -- figures from the leaderboard ----------------------------------------------------------------------------


def test_the_most_classes_of_any_result():
    most = int(figures("How many classes and bits are possible?", r"more than (\d+) classes"))
    counts = []
    for path in (ROOT / "leaderboard").glob("*.provenance.json"):
        about = json.loads(path.read_text(encoding="utf-8"))
        # a protocol of judgements has no classes
        counts += [len(members.get("database_counts", ())) for members in about["members"]]
    assert max(counts) == most


def test_the_classifier_against_methods_on_seen_and_on_unseen_classes():
    text = answer("Does the classifier not beat all of this?")
    (named, distance), *_ = re.findall(
        r"methods but (\w+) are above it.*?at most ([\d.]+) below", text, re.DOTALL
    )
    supervised = {name for name, about in catalogue().items() if about.supervision != "none"} - BOUNDS
    seen, unseen = (
        {name: float(row["mean"]) for name, row in ap(f"cifar10_{p}", 32).items()} for p in ("seen", "unseen")
    )
    below = {name for name in supervised & set(seen) if seen[name] <= max(seen[bound] for bound in BOUNDS)}
    assert below == {named.lower()}
    rivals = supervised & set(unseen)
    assert len(rivals) >= 20 and max(unseen[name] for name in rivals) - unseen["itq"] < float(distance)


def test_the_first_methods_are_close_and_another_is_first_elsewhere():
    pattern = (
        r"at (\d+) bits the first (\d+) methods .*? within ([\d.]+) of each other, measured with (\d+) seeds"
    )
    bits, count, distance, seeds = figures("Which method is best?", pattern)

    def ranked(protocol, bits):
        own = {
            n: row
            for n, row in ap(protocol, bits).items()
            # Rows of a longer search have another budget than the table that is spoken of.
            if n not in BOUNDS and not n.endswith("_longer") and not row["sees"].startswith("database")
        }
        return sorted(own.values(), key=lambda row: -float(row["mean"]))

    first = ranked("cifar10_features", bits)[: int(count)]
    assert float(first[0]["mean"]) - float(first[-1]["mean"]) < float(distance)
    assert {row["seeds"] for row in first} == {seeds}
    (other,) = re.findall(r"another method is first at (\d+) bits where", answer("Which method is best?"))
    winners = [
        ranked(*where)[0]["method"] for where in (("cifar10_features", bits), ("cifar10_end_to_end", other))
    ]
    assert len(set(winners)) == 2


# -- figures that are computed -------------------------------------------------------------------------------


def test_forty_thousand_classes_are_scored_and_lengths_that_are_no_power_of_two():
    """One relevant item each: AP_T is the mean of 1/rank over the places of its tie."""
    count = int(
        figures("How many classes and bits are possible?", r": ([\d,]+) of them are scored").replace(",", "")
    )
    generator = np.random.default_rng(0)
    codes = generator.random((count, 13)) < 0.5
    classes = generator.permutation(count)
    queries = generator.random((5, 13)) < 0.5
    scores = tiebench.score(queries, codes, classes[:5], classes)
    for query, code in enumerate(queries):
        distances = (code != codes).sum(axis=1)
        nearer, tied = (distances < distances[query]).sum(), (distances == distances[query]).sum()
        expected = np.mean(1 / np.arange(nearer + 1, nearer + tied + 1))
        assert scores.per_query["ap"][query] == pytest.approx(expected, rel=1e-9)


def test_what_signs_of_embeddings_keep_of_the_floats():
    question = "How much do binary embeddings lose in a vector database?"
    pattern = (
        r"signs of (\d+) dimensions keep (\d+) % of nDCG@10 at a thirty-second of the memory, (\d+) % if the "
        r"query keeps its real values, (\d+) to (\d+) % if (\d+) to (\d+) candidates"
    )
    dimensions, signs, real, low, high, fewest, most = map(int, figures(question, pattern))
    rows = [row for row in rows_of("scifact", dimensions) if row["mean"]]
    scores = {(row["metric"], row["method"]): float(row["mean"]) for row in rows}

    def share(metric):
        return round(100 * scores[metric, "sign"] / scores["ndcg@10", "uncoded"])

    assert share("ndcg@10") == signs and share("asymmetric_ndcg@10") == real
    assert [share(f"rescored@{count}_ndcg@10") for count in (fewest, most)] == [low, high]
    # Bits against float32: a sign is one of 32 bits.
    assert np.packbits(np.zeros(dimensions, bool)).nbytes * 32 == np.zeros(dimensions, np.float32).nbytes
