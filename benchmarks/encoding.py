"""Items to codes, and images to features: items/s; compared with a matrix product and scikit-learn."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

import networks
from benchmarks.report import progress, rounded
from benchmarks.timing import Competitor, Disagreement, interleave
from methods.base.catalogue import load_class
from networks.base.features import extract

BITS, FEATURES, ANCHORS = 48, 1024, 50
TREES, DEPTH = 200, 4
OURS = "encode"
LIMIT = "limit: one float32 matrix product"
RATE = "items/s"


def run(report, quick):
    """Print all tables."""
    torch.set_num_threads(1)
    items = np.random.default_rng(0).random((2048 if quick else 8192, FEATURES), np.float32)
    report.write(
        "## Encoding: items to codes",
        f"{FEATURES} float32 features per item, {BITS} bits, hash functions drawn at random, since their "
        "cost does not depend on what they learned. The limit is the matrix product that every such "
        "function needs (for trees, that of a linear method). Peers, except trees, were checked to "
        "produce the same "
        "codes.",
    )
    for section in SECTIONS:
        progress(f"encoding: {section.__name__.strip('_').replace('_', ' ')}")
        title, competitors = section(np.random.default_rng(1), items)
        seen = report.compare(title, competitors, 3 if quick else 7, OURS, work=(RATE, len(items)))
        for name in list(seen)[1:]:
            report.peer(f"encoding: {title}", name, seen[name].ratio_to(seen[OURS]))
    _features(report, quick)


def _product(items, width):
    """The limit: items times a matrix (d, width)."""
    weights = np.random.default_rng(2).standard_normal((items.shape[1], width)).astype(np.float32)
    return lambda: items @ weights


def _agree(title, ours, theirs):
    """Raises `Disagreement` unless nearly all bits are equal: a sum near 0 may be rounded either way."""
    if not (ours.shape == theirs.shape and np.mean(ours != theirs) < 1e-4):
        raise Disagreement(f"{title}: codes differ")


def _linear_deep(generator, items):
    from sklearn.linear_model import LogisticRegression

    method = load_class("talr_ap")(bits=BITS)
    weights = generator.standard_normal((BITS, FEATURES)).astype(np.float32)
    method.item_shape, method.backbone = (FEATURES,), None
    method.network = method.build_network(method.item_shape)
    with torch.no_grad():
        method.network[1].weight.copy_(torch.from_numpy(weights))
        method.network[1].bias.copy_(torch.from_numpy(-weights.mean(axis=1)))
    peer = LogisticRegression()
    peer.coef_, peer.intercept_, peer.classes_ = weights, -weights.mean(axis=1), np.arange(BITS)
    peer.n_features_in_ = FEATURES
    title = "A linear deep method (TALR-AP)"
    _agree(title, method.encode(items), peer.decision_function(items) > 0)
    return title, {
        OURS: lambda: method.encode(items),
        "scikit-learn's linear decision function": lambda: peer.decision_function(items) > 0,
        LIMIT: _product(items, BITS),
    }


def _itq(generator, items):
    from sklearn.decomposition import PCA

    method = load_class("itq")(bits=BITS)
    mean, projections = items.mean(axis=0, dtype=np.float64), generator.standard_normal((FEATURES, BITS))
    method.set_state({"mean": mean, "projections": projections})
    peer = PCA(BITS)
    peer.mean_, peer.components_, peer.n_features_in_ = mean, projections.T, FEATURES
    peer.explained_variance_ = np.ones(BITS)
    title = "ITQ (projections in float64)"
    _agree(title, method.encode(items), peer.transform(items) > 0)
    return title, {
        OURS: lambda: method.encode(items),
        "scikit-learn's PCA": lambda: peer.transform(items) > 0,
        LIMIT: _product(items, BITS),
    }


def _bre_kernel(generator, items):
    from sklearn.metrics.pairwise import rbf_kernel

    some, anchors = items[: len(items) // 8], generator.random((BITS * ANCHORS, FEATURES))
    scale = len(items) / len(some)
    weights = generator.standard_normal((len(anchors), BITS))
    width = 2 * FEATURES / 12  # mean squared distance of uniform features
    method = load_class("bre")(bits=BITS, kernel="rbf", anchors=ANCHORS)
    method.set_state(
        {
            "weights": weights,
            "thresholds": np.full(BITS, np.exp(-0.5)) * weights.sum(axis=0),
            "anchor_items": anchors,
            "bandwidth": width,
        }
    )

    def theirs():
        return rbf_kernel(some.astype(np.float64), anchors, 1 / (2 * width)) @ weights > method.thresholds

    title = f"BRE, rbf kernel, {len(anchors):,} anchors in all (float64; an eighth of the items)"
    _agree(title, method.encode(some), theirs())
    return title, {
        OURS: Competitor(lambda: method.encode(some), scale),
        "scikit-learn's rbf_kernel, then the product": Competitor(theirs, scale),
        LIMIT: Competitor(_product(some, len(anchors)), scale),
    }


def _trees(generator, items):
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    method = load_class("fasthash")(bits=BITS, trees=TREES, depth=DEPTH)
    trees, splits = BITS * TREES, 2**DEPTH - 1
    method.set_state(
        {
            "lowest": np.zeros(FEATURES, np.float32),
            "step": np.full(FEATURES, 1 / 256, np.float32),
            "counts": np.full(BITS, TREES),
            "features": generator.integers(0, FEATURES, (trees, splits)).astype(np.int32),
            "thresholds": generator.integers(0, 256, (trees, splits)).astype(np.uint8),
            "leaves": generator.standard_normal((trees, splits + 1)).astype(np.float32),
        }
    )
    some, few = items[: len(items) // 4], 10
    scale = len(items) / len(some)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = DecisionTreeClassifier(max_depth=DEPTH, splitter="random", max_features=10, random_state=0)
        peer = AdaBoostClassifier(tree, n_estimators=few, random_state=0)
        peer.fit(items[:500], generator.integers(0, 2, 500))
    fitted = len(peer.estimators_)
    return f"FastHash, {TREES} trees of depth {DEPTH} a bit (a quarter of the items)", {
        OURS: Competitor(lambda: method.encode(some), scale),
        f"scikit-learn's AdaBoost of such trees ({fitted} trees of one bit)": Competitor(
            lambda: peer.decision_function(some), scale * trees / fitted
        ),
        LIMIT: Competitor(_product(some, BITS), scale),
    }


SECTIONS = (_linear_deep, _itq, _bre_kernel, _trees)


def _features(report, quick):
    report.write(
        "## Feature extraction: images to features",
        "Random weights; the images already have the size that the network expects. Extraction reads "
        "and prepares images, runs the forward pass and writes a file that survives interruptions; it "
        "also hashes images and weights, once per file. Its features were checked to equal those of the "
        "forward pass.",
    )
    rows = []
    # As many images as take seconds: datasets take minutes, beside which what is done once a file is nothing.
    counts = (256, 8) if quick else (8192, 256)
    for architecture, count, batch in zip(("small", "vgg_f"), counts, (64, 8)):
        progress(f"encoding: features of {architecture}")
        network = networks.make(architecture)
        size = network.image_size
        images = np.random.default_rng(0).integers(0, 256, (count, size, size, 3), np.uint8)
        with tempfile.TemporaryDirectory(prefix="tiebench-features-") as folder:
            seen = interleave(_extractions(network, images, batch, Path(folder, "x.npy")), 3)
        base = seen["forward alone"]
        cells = [f"{count / one.median:,.0f} (x{rounded(one.ratio_to(base))})" for one in seen.values()]
        rows.append([f"{architecture}, {size} x {size}, {count} images", *cells])
        speed = f"{count / seen['extract'].median:,.0f} images a second"
        report.wait(f"features of {architecture}, {size} x {size} pixels", speed)
        quantity = f"{architecture}: extraction over its forward pass"
        report.target(quantity, "at most 1.03", seen["extract"].ratio_to(base))
    report.rows(["images/s (time over the forward pass)", *seen], rows)


def _extractions(network, images, batch, path):
    # Channels last in memory, as extraction reads them.
    pixels = [
        torch.from_numpy(images[begin : begin + batch]).permute(0, 3, 1, 2)
        for begin in range(0, len(images), batch)
    ]

    @torch.inference_mode()
    def forward(prepared):
        return [network(part) for part in prepared]

    @torch.inference_mode()
    def prepare():
        return [network.preprocess(part) for part in pixels]

    def extracted():
        extract(network, images, path, batch, "cpu")
        return np.load(path)

    prepared = prepare()
    if not np.array_equal(extracted(), torch.cat(forward(prepared)).numpy()):
        raise Disagreement("extracted features are not those of the forward pass")
    return {
        "forward alone": lambda: forward(prepared),
        "with preparation": lambda: forward(prepare()),
        "extract": extracted,
    }
