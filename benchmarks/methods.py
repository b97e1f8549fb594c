"""Training: the most expensive step of each published system, compared with its usual implementation."""

import numpy as np
import torch

from benchmarks import method_peers as peers
from benchmarks.class_items import Items
from benchmarks.report import progress
from benchmarks.timing import Competitor, Disagreement, agree
from methods.bre import draw_partners
from methods.learners.boosting import Quantiser, boost
from methods.learners.bre_kernels import Descent, candidates_between
from methods.learners.graph_cuts import BlockCuts
from methods.learners.svm import SharedItems, fit_linear_svms
from methods.relations.pairs import make_blocks, sample_pairs
from methods.relations.rankings import ideal_dcg, infer
from methods.relations.triplets import triplet_likelihood

ITEMS, CLASSES, BITS = 5000, 10, 48  # of CIFAR-10 setting 1
OURS = "here"


def run(report, quick):
    """Print all tables."""
    torch.set_num_threads(1)
    items = 1000 if quick else ITEMS
    report.write(
        "## Methods: the most expensive step of training",
        f"{items} training items of {CLASSES} classes, {BITS} bits, as in CIFAR-10 setting 1. Results "
        "were checked in this run to agree or, for trees, to fit equally well.",
    )
    for section in SECTIONS:
        progress(f"methods: {section.__name__.strip('_').replace('_', ' ')}")
        title, competitors = section(np.random.default_rng(0), items)
        seen = report.compare(title, competitors, 3 if quick else 7, OURS)
        _, peer = seen
        report.peer(title, peer, seen[peer].ratio_to(seen[OURS]))


def _line_search(generator, items):
    partners = draw_partners(items, 0.05, generator)
    labels = generator.integers(0, CLASSES, items)
    targets = np.where(labels[:, None] == labels[partners], 0, BITS).astype(np.int32)
    anchors = 50
    columns = generator.normal(size=(anchors, items))
    places = np.tile(np.arange(anchors), (BITS, 1))
    descent = Descent(columns, places, generator.normal(size=places.shape), partners, targets, 1)
    thresholds, order, ones_below, _ = descent.thresholds(columns[0], descent.sums[0], descent.weights[0, 0])
    keys = np.empty(items, np.int32)
    keys[order] = np.arange(0, 16 * items, 16)
    keys |= ones_below | descent.codes[0] << 1

    def ours():
        descent.thresholds(columns[0], descent.sums[0], descent.weights[0, 0])
        changes = descent.flip_changes(keys)
        candidates_between(thresholds, 0.0)
        return np.cumsum(changes[order])

    walk = peers.WalkingSearch(partners, targets)
    codes = (descent.sums > 0).T.astype(np.int64)
    unsorted = descent.weights[0, 0] - descent.sums[0] / columns[0]
    some = items // 10

    def theirs(most=some):
        return walk.costs(codes, 0, unsorted, columns[0], ones_below.astype(np.int64), most)

    costs = theirs(some)
    agree("line search", ours()[:some], costs[1:] - costs[0])
    return "BRE, the line search of one weight", {
        OURS: ours,
        "flip by flip (NumPy), a tenth of them": Competitor(theirs, 10.0),
    }


def _cuts(generator, items):
    labels = np.arange(items) % CLASSES
    pairs = sample_pairs(Items(labels, labels).training_set(), 100, 100, generator)
    blocks = make_blocks(pairs, labels, generator)
    cuts = BlockCuts(pairs, blocks)
    weights = np.where(pairs.similar, -1.0, 1.0) * generator.random(len(pairs))
    start = np.where(generator.random(items) < 0.5, 1.0, -1.0)

    class InOrder:
        permutation = staticmethod(np.arange)

    def ours():
        return cuts.lower(start, weights, InOrder, passes=1)

    def theirs():
        return peers.cut_blocks(pairs, blocks, start.copy(), weights)

    agree("cuts", cuts.objective(ours(), weights), cuts.objective(theirs(), weights), 1e-4)
    return "FastHash and MACHash, one bit by block cuts", {
        OURS: ours,
        "a whole flow per block (SciPy)": theirs,
    }


def _rankings(generator, items):
    relevant, irrelevant, count = 50, 100, 100
    discounts = 1 / np.log2(np.arange(relevant + irrelevant + 1) + 2.0)
    ideal = ideal_dcg(relevant)
    lists = [
        tuple(
            -np.sort(generator.binomial(BITS, share, size).astype(float))
            for share, size in ((0.3, relevant), (0.4, irrelevant))
        )
        for _ in range(count)
    ]
    totals, begins = np.empty(relevant + 1), np.empty(relevant, np.int64)

    def ours():
        found = np.empty((count, relevant), np.int64)
        for row, (high, low) in zip(found, lists):
            infer(high, low, discounts, ideal, totals, begins, row)
        return found

    def theirs():
        return np.stack([peers.planned_ranking(high, low, discounts, ideal) for high, low in lists])

    def values(found):
        return [
            ((irrelevant - 2 * above) * high).sum() / (relevant * irrelevant)
            + 2 * np.concatenate([[0.0], np.cumsum(low)])[above].sum() / (relevant * irrelevant)
            - discounts[np.arange(relevant) + above].sum() / ideal
            for above, (high, low) in zip(found, lists)
        ]

    agree("rankings", values(ours()), values(theirs()), 1e-9)
    return "StructHash, the worst rankings of 100 lists", {OURS: ours, "dynamic programme (NumPy)": theirs}


def _triplets(generator, items):
    batch, groups, each = 32, CLASSES - 1, 50
    anchors = torch.from_numpy(generator.normal(size=(batch, BITS)).astype(np.float32))
    table = torch.from_numpy(generator.normal(size=(items, BITS)).astype(np.float32))
    chosen = [generator.integers(0, items, (batch, groups, each)).astype(np.int32) for _ in range(2)]

    def ours():
        return triplet_likelihood(anchors, table, *chosen, BITS / 2)

    def theirs():
        return peers.triplets_by_autograd(anchors, table, *chosen, BITS / 2)

    for mine, other in zip(ours(), theirs()):
        agree("triplets", mine, other, 1e-4)
    return "DTSH, loss and gradient of 32 anchors", {
        OURS: ours,
        "every triplet written out (autograd)": theirs,
    }


def _features(generator, items, dimensions=1280):
    labels = np.arange(items) % CLASSES
    centres = generator.normal(size=(CLASSES, dimensions))
    features = np.maximum(centres[labels] + 2 * generator.normal(size=(items, dimensions)), 0)
    return (features / features.max()).astype(np.float32), labels


def _machines(generator, items):
    from sklearn.svm import LinearSVC

    features, labels = _features(generator, items)
    bits = 8
    codes = np.where(generator.random((CLASSES, bits))[labels] < 0.5, -1, 1).astype(np.int8)
    codes[generator.random(codes.shape) < 0.05] *= -1
    codes[:2] = [[1], [-1]]
    shared = SharedItems(features)
    C = 0.03

    def ours():
        return fit_linear_svms(shared, codes, C)

    def theirs():
        fitted = [
            LinearSVC(dual=False, C=C, tol=1e-3, intercept_scaling=1).fit(features, bit) for bit in codes.T
        ]
        return np.stack([np.append(machine.coef_[0], machine.intercept_) for machine in fitted], axis=1)

    def objectives(weights):
        losses = np.maximum(0, 1 - codes * (features.astype(np.float64) @ weights[:-1] + weights[-1]))
        return 0.5 * (weights**2).sum(0) + C * (losses**2).sum(0)

    agree("SVMs", objectives(ours()), objectives(theirs()), 1e-2)
    return "MACHash, the SVMs of 8 bits", {OURS: ours, "scikit-learn's LinearSVC, bit by bit": theirs}


def _trees(generator, items):
    from sklearn.tree import DecisionTreeClassifier

    features, labels = _features(generator, items)
    codes = np.where(labels < CLASSES // 2, 1, -1)
    levels = np.ascontiguousarray(Quantiser.fit(features)(features).T)
    trees = 10

    def ours():
        return boost(levels, codes, np.ones(items), 0, trees)[1]

    def theirs():
        """The same boosting: discrete, on the examples that carry 99 % of the weight."""
        weights, scores = np.ones(items), np.zeros(items)
        for tree in range(trees):
            order = np.argsort(-weights)
            kept = order[: np.searchsorted(np.cumsum(weights[order]), 0.99 * items) + 1]
            fitted = DecisionTreeClassifier(
                max_depth=4, max_features=min(200, features.shape[1]), random_state=tree
            )
            fitted.fit(features[kept], codes[kept], sample_weight=weights[kept])
            correct = fitted.predict(features) * codes
            right, wrong = weights[correct > 0].sum(), max(weights[correct < 0].sum(), 1e-8)
            vote = 0.5 * np.log(right / wrong)
            scores += vote * correct * codes
            weights *= np.exp(-vote * correct)
            weights *= items / weights.sum()
        return scores

    errors = [np.mean(np.sign(call()) != codes) for call in (ours, theirs)]
    if errors[0] > errors[1] + 0.02:
        raise Disagreement(f"trees: training errors {errors[0]:.3f} here and {errors[1]:.3f} there")
    return "FastHash and StructHash, 10 boosted trees", {OURS: ours, "scikit-learn's trees": theirs}


SECTIONS = (_line_search, _cuts, _rankings, _triplets, _machines, _trees)
