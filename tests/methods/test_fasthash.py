"""FastHash: weights of pairs, and what the records of its training say about the codes."""

import numpy as np
import pytest
from sets import clusters, labelled

from methods.base import TrainingSet
from methods.fasthash import FastHash, pair_loss, pair_weights
from methods.relations.pairs import sample_pairs

LOSSES = ("hinge", "ksh", "bre")
every_loss = pytest.mark.parametrize("loss", LOSSES)


def training_set(labels=None, spread=1.0, seed=0, **more):
    vectors, known = clusters(120, 10, 4, spread, seed)
    return labelled(vectors, known if labels is None else labels, **more)


def fitted(made, **settings):
    chosen = {"bits": 6, "trees": 15, "similar": 10, "dissimilar": 10, "features": 5} | settings
    return FastHash(**chosen).fit(made)


def plain_loss(loss, bits, mismatches, similar):
    """Of one pair, from the definition."""
    if loss == "ksh":
        return ((1 if similar else -1) - (bits - 2 * mismatches) / bits) ** 2
    if loss == "bre":
        return ((0 if similar else 1) - mismatches / bits) ** 2
    return max(0, mismatches / bits) ** 2 if similar else max(0, 0.5 - mismatches / bits) ** 2


@every_loss
def test_weights_are_what_one_more_mismatch_saves(loss):
    for bits in range(1, 20):
        mismatches = np.arange(bits)
        for similar in (True, False):
            kinds = np.full(bits, similar)
            losses = [plain_loss(loss, bits, m, similar) for m in range(bits + 1)]
            assert pair_loss(loss, bits, mismatches, kinds) == pytest.approx(losses[:-1], abs=1e-15)
            weights = pair_weights(loss, bits, mismatches, kinds)
            assert weights == pytest.approx(-np.diff(losses), abs=1e-12)
            # What makes blocks of similar items submodular, and what pushes others apart.
            assert np.all(weights < 0) if similar else np.all(weights >= 0)


def mismatches_of(codes, pairs):
    return (codes[pairs.first] != codes[pairs.second]).astype(int)


@every_loss
@pytest.mark.parametrize("shape", ["classes", "several labels"])
def test_records_say_what_the_codes_of_the_training_items_are_worth(loss, shape):
    """Every bit answers to what the trees made of those before it: one stump is not what was asked for."""
    labels = None
    if shape == "several labels":
        labels = (np.random.default_rng(5).random((120, 4)) < 0.3).astype(np.uint8)
    for weak in (False, True):
        records = []
        made = training_set(labels, spread=2.0, log=records.append)
        settings = {"trees": 1, "depth": 1} if weak else {}
        method = fitted(made, loss=loss, seed=3, **settings)
        pairs = sample_pairs(made, 10, 10, np.random.default_rng(3))
        codes = method.encode(made.items)
        assert [record["bit"] for record in records] == [1, 2, 3, 4, 5, 6]
        assert {record["bits"] for record in records} == {6}
        for record in records:
            bit = record["bit"]
            before = mismatches_of(codes[:, : bit - 1], pairs).sum(axis=1)
            after = before + mismatches_of(codes[:, bit - 1], pairs)
            losses = [plain_loss(loss, bit, m, s) for m, s in zip(after, pairs.similar)]
            assert record["objective"] == pytest.approx(np.mean(losses), rel=1e-12)
            # All codes alike, sum a z z is the sum of a: that of a = loss(m) - loss(m + 1).
            start = sum(
                plain_loss(loss, bit, m, s) - plain_loss(loss, bit, m + 1, s)
                for m, s in zip(before, pairs.similar)
            )
            assert record["quadratic_start"] == pytest.approx(start, abs=1e-8)
            assert record["quadratic"] <= record["quadratic_start"]
            assert 0.5 <= record["fitted"] <= 1
        assert records[0]["quadratic"] < records[0]["quadratic_start"]
        if weak:
            assert min(record["fitted"] for record in records) < 0.9


def test_what_is_asked_of_the_trees_and_what_they_answer(monkeypatch):
    """If the trees answer every bit with the same code for all items, no pair ever differs, and every bit is
    asked for with the weights of pairs without a mismatch. Examples weigh what their pairs do."""
    asked = []

    def same_for_all(self, levels, codes, weights):
        asked.append((codes.copy(), weights.copy()))
        self.functions.append(None)
        return np.ones(len(codes), np.int8)

    monkeypatch.setattr(FastHash, "add_bit", same_for_all)
    records = []
    made = training_set(log=records.append)
    fitted(made, loss="ksh", bits=4)
    pairs = sample_pairs(made, 10, 10, np.random.default_rng(0))
    for bit, (record, (codes, weights)) in enumerate(zip(records, asked), start=1):
        expected = pair_weights("ksh", bit, np.zeros(len(pairs), int), pairs.similar)
        assert record["quadratic_start"] == pytest.approx(expected.sum())
        assert record["quadratic"] == pytest.approx(expected @ (codes[pairs.first] * codes[pairs.second]))
        assert record["fitted"] == pytest.approx((codes == 1).mean())
        own = [
            np.abs(expected[(pairs.first == item) | (pairs.second == item)]).sum()
            for item in range(pairs.items)
        ]
        assert weights == pytest.approx(own)


def test_more_bits_do_not_change_the_first_ones():
    made = training_set()
    short, long = fitted(made, bits=3), fitted(made, bits=5)
    assert np.array_equal(long.encode(made.items)[:, :3], short.encode(made.items))


def test_the_features_tried_differ_between_seeds_and_between_bits():
    """Asked for the same codes twice, with one feature per node, trees are others the second time."""
    vectors, labels = clusters(120, 10, 4)
    codes = np.where(labels > 1, 1, -1)
    made = {}
    for seed in (0, 1):
        method = FastHash(seed=seed, trees=20, depth=1, features=1)
        levels = method.start(vectors)
        answers = [method.add_bit(levels, codes, np.ones(len(codes))) for _ in range(2)]
        assert np.array_equal(method.encode(vectors), np.stack(answers, axis=1) > 0)
        for bit in (0, 1):
            made[seed, bit] = method.functions[bit].features.tobytes()
            assert method.functions[bit].leaves.shape == (20, 2)
    assert len(set(made.values())) == 4


def test_constant_items_get_one_code():
    """Nothing separates them; that is not a failure."""
    made = training_set()
    items = np.full((120, 3), 2.0, np.float32)
    codes = fitted(TrainingSet(items, made.affinity, labels=made.labels), bits=3).encode(items)
    assert codes.shape == (120, 3)
    assert np.all(codes == codes[0])


def test_the_losses_of_ksh_and_bre_are_one_method_and_the_hinge_another():
    """The weights of one are those of the other times 4."""
    made = training_set(spread=2.0)
    codes = {loss: fitted(made, loss=loss).encode(made.items) for loss in LOSSES}
    assert np.array_equal(codes["bre"], codes["ksh"])
    assert not np.array_equal(codes["hinge"], codes["ksh"])
