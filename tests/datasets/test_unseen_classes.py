"""Splits by classes: what each part of each fold holds, item by item, and what cannot be drawn."""

import numpy as np
import pytest

from datasets.description import Description
from datasets.splits import check, draw, folds
from tests.tiebench.refusals import refused

LABELS = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 30)).astype(np.int64)
PARTS = (np.arange(300) % 5 == 0).astype(np.int64)
TEN = Description(300, LABELS, PARTS, [f"c{c}" for c in range(10)], (1,), "vectors", ["train", "test"])
LISTS = [[0, 1, 2], [3, 4, 5], [6, 7], ["c8", "c9"]]
SPEC = {"kind": "unseen_classes", "query": 4, "training": 5}
VARIANTS = [
    SPEC | {"folds": 4},
    SPEC | {"unseen": LISTS},
    SPEC | {"folds": 3, "database": "all", "training": "all"},
    SPEC | {"folds": 5, "query": {"split": "test"}, "training": "all"},
]


@pytest.mark.parametrize("spec", VARIANTS)
def test_each_class_is_unseen_in_one_fold_and_learnt_from_in_the_others(spec):
    count = folds(spec)
    splits = [draw(spec | {"fold": fold}, TEN, seed=3) for fold in range(1, count + 1)]
    assert folds(spec | {"fold": 1}) is None
    query = np.concatenate([split.query for split in splits])
    assert len(np.unique(query)) == len(query)
    if spec["query"] == 4:
        assert np.bincount(LABELS[query]).tolist() == [4] * 10
    else:
        assert set(query) == set(np.flatnonzero(PARTS == 1))
    sizes = sorted(len(np.unique(LABELS[split.query])) for split in splits)
    assert sizes == sorted(10 // count + (k < 10 % count) for k in range(count))
    for split in splits:
        unseen = np.isin(LABELS, LABELS[split.query])
        learnable = ~unseen & ~np.isin(np.arange(300), query)
        searched = ~np.isin(np.arange(300), query) & (unseen | (spec.get("database") == "all"))
        assert set(split.database) == set(np.flatnonzero(searched))
        assert set(split.training) <= set(np.flatnonzero(learnable))
        if spec["training"] == "all":
            assert len(split.training) == learnable.sum()
        else:
            classes, counts = np.unique(LABELS[split.training], return_counts=True)
            assert len(classes) == len(np.unique(LABELS[~unseen])) and set(counts) == {5}


def test_an_item_has_the_same_part_in_every_fold_and_whatever_the_classes_of_a_fold():
    drawn = [[draw(spec | {"fold": k}, TEN, seed=3) for k in (1, 2, 3, 4)] for spec in VARIANTS[:2]]
    parts = [set(np.concatenate([split.query for split in splits])) for splits in drawn]
    assert parts[0] == parts[1]
    of_class = {}
    for split in drawn[0] + drawn[1]:
        for value in np.unique(LABELS[split.training]):
            rows = tuple(split.training[LABELS[split.training] == value])
            assert of_class.setdefault(value, rows) == rows
    assert [sorted(set(LABELS[split.query])) for split in drawn[1]] == [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]
    seeds = [tuple(set(LABELS[draw(VARIANTS[0] | {"fold": 1}, TEN, seed=s).query])) for s in range(8)]
    assert len(set(seeds)) > 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "needs one of the keys 'folds' and 'unseen'"),
        ({"folds": 4, "unseen": LISTS}, "needs one of the keys"),
        ({"folds": 1}, "at least 2"),
        ({"folds": 6}, "a fold has 1 of the 10 classes unseen"),
        ({"unseen": [[0, 1], [1, 2]]}, "class c1 is listed twice"),
        ({"unseen": [[0, "c10"]]}, "no class is 'c10'; did you mean 'c1'"),
        ({"unseen": [[0, 1, 2, 3, 4, 5, 6, 7, 8]]}, "9 of the 10 classes unseen"),
        ({"unseen": [0, 1]}, "a list of lists of classes"),
        ({"folds": 4, "database": "unsen"}, "unknown database 'unsen'; did you mean 'unseen'"),
        ({"folds": 4, "fold": 5}, "fold 5 does not exist, there are 4"),
        ({"folds": 4, "query": 27}, "asks for 27 + 5 items of class c0, which has 30"),
        ({"folds": 4, "query": {"split": "tst"}}, "no part 'tst'; did you mean 'test'"),
        ({"folds": 4, "query": {"part": 1}}, "a number or {split: part or parts}"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(change, message):
    with refused(message):
        check(SPEC | change, TEN)


def test_a_protocol_of_several_folds_is_no_split():
    with refused("which of the 4 folds"):
        draw(VARIANTS[0], TEN, seed=0)
