"""Tensors are accepted wherever arrays are: every public function, called with both, gives the same.

A public function that is not called here has its reason in WITHOUT.
"""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from refusals import refused

import tiebench
from tiebench import training, values
from tiebench.affinities import AffinityBlocks, EqualLabels, SparseJudgements
from tiebench.counting.histograms import JointHistograms, joint_histograms
from tiebench.runs.scores import score_lists
from tiebench.splits import check as split_check

random = np.random.default_rng(5)
BITS = 12
QUERY, DATABASE = random.random((4, BITS)) < 0.5, random.random((9, BITS)) < 0.5
PACKED = np.packbits(QUERY, axis=1), np.packbits(DATABASE, axis=1)
CLASSES = random.integers(0, 3, 4), random.integers(0, 3, 9)
TAGS = random.integers(0, 2, (4, 3)), random.integers(0, 2, (9, 3))
REAL = random.normal(size=(4, BITS))
SIMILARITY = random.integers(0, 4, (4, 9)).astype(np.float64)
FACTORS = random.normal(size=(9, 2))
GRADES = random.integers(0, 3, (4, 9))
COUNTS = random.integers(0, 4, (4, 2, 5))
LEVELS = np.array([0, 1])
ITEMS, RELEVANT = COUNTS.sum(axis=1), COUNTS[:, 1]
PAIRS = np.array([0, 1, 3]), np.array([2, 8, 0]), np.array([1, 2, 1])
NAMES = np.array([11, 12, 13, 14]), np.arange(20, 29)
RUN = {
    "query": np.array([1, 1, 2]),
    "document": np.array([7, 8, 7]),
    "score": np.array([0.5, 0.25, 1.0]),
    "judged_query": np.array([1, 2]),
    "judged_document": np.array([8, 7]),
    "relevance": np.array([2, 1]),
}


def histograms(t):
    return JointHistograms(t(LEVELS), t(COUNTS))


def tied(t):
    return tiebench.ties.from_counts(t(ITEMS), t(RELEVANT), t(RELEVANT.sum(axis=1) + 1))


def packed(t):
    return t(PACKED[0]), t(PACKED[1])


def affinity(t):
    return EqualLabels(t(CLASSES[0]), t(CLASSES[1]))


def judgements(t):
    return SparseJudgements(*map(t, PAIRS), (4, 9))


def of_files(t, folder):
    np.savez(folder / "part.npz", database=PACKED[1], database_labels=CLASSES[1])
    queries = t(PACKED[0]), t(CLASSES[0])
    return tiebench.distributed.count_parts(*queries, str(folder / "part.npz"), BITS)


def written(name, t, folder):
    """The bytes that a function of `tiebench.search.export` writes."""
    export, path = tiebench.export, folder / "out.json"
    ids = dict(zip(("query_ids", "database_ids"), map(t, NAMES)))
    found = tiebench.neighbours.nearest(*packed(t), BITS, 3)
    if name == "write_sql":
        labels = {"query_labels": t(TAGS[0]), "database_labels": t(TAGS[1])}
        export.write_sql(path, *packed(t), BITS, **ids, **labels)
    elif name == "write_qrels":
        export.write_qrels(path, affinity(t), **ids)
    elif name == "write_faiss":
        pytest.importorskip("faiss")
        export.write_faiss(path, t(PACKED[1]), BITS, t(NAMES[1]))
    else:
        getattr(export, name)(path, found, **ids)
    return np.frombuffer(path.read_bytes(), np.uint8)


def validated(t):
    metric = training.TieAwareRetrieval(BITS, at=t(np.array([1, 3])))
    metric.update(t(QUERY * 2.0 - 1), t(CLASSES[0]), "query")
    metric.update(t(DATABASE * 2.0 - 1), t(CLASSES[1]), "database")
    return metric.scores()


def compared(t):
    health = tiebench.health(t(QUERY), t(DATABASE), t(CLASSES[0]), t(CLASSES[1]))
    return health.as_dict(), health.collapsed(t(np.bincount(CLASSES[1])))


def split(t):
    part = split_check.Part
    query = part(t(np.array([1, 2])), t(np.array([0, 1])))
    return split_check.check({"query": query, "database": part(t(np.array([2, 3])), t(np.array([1, 1])))})


# Public modules: what they are called here -> what they are called below `tiebench`.
MODULES = tiebench._MODULES | {"runs": "runs.scores", "split_check": "splits.check"}
BACKWARDS = np.arange(9)[::-1].copy()
CUTS = np.array([0, 1, 2, 50])


def similar(t):
    return lambda q, items: t(SIMILARITY[q, items])


# "module.function" -> what it is given: arrays, or tensors of them; functions of what converts arrays.
GIVEN = {
    "scoring.score_codes": (*PACKED, BITS, affinity, (3,)),
    "scoring.score_histograms": (histograms, np.array([2])),
    "scoring.some_queries": (histograms,),
    "in_order.check_order": (BACKWARDS, 9),
    "in_order.score_in_order": (*PACKED, BITS, affinity, BACKWARDS, np.array([3])),
    "runs.score_array": (SIMILARITY, GRADES),
    "diagnostics.health_of": (*PACKED, lambda t: joint_histograms(*packed(t), BITS, affinity(t))),
    "diagnostics.bits_set_together": (PACKED[1], BITS),
    "collapse.collapse_reason": (8, 7, 2, 0.5, np.array([3, 4, 0])),
    "collapse.entropy": (np.array([3, 4, 0]),),
    "collapse.varying_bits": (PACKED[1],),
    "collapse.code_counts": (PACKED[1],),
    "exact.exponential_gain": (REAL,),
    "exact.linear_gain": (REAL,),
    "exact.ideal_dcg": (COUNTS.sum(axis=2), LEVELS, 3),
    "exact.precision_at_curve": (histograms, np.array([1, 4, 99])),
    "metrics.evaluate": (histograms, np.array([1, 99])),
    "export.check_ids": (NAMES[1], 9, "ids"),
    "packing.pack": (QUERY,),
    "packing.check_packed": (PACKED[0], BITS),
    "packing.as_words": (PACKED[0],),
    "affinities.EqualLabels": CLASSES,
    "affinities.SharedLabels": TAGS,
    "affinities.SparseJudgements": (*PAIRS, (4, 9)),
    "histograms.JointHistograms": (LEVELS, COUNTS),
    "histograms.merge": (lambda t: [histograms(t), histograms(t)],),
    "histograms.joint_histograms": (*PACKED, BITS, judgements),
    "inputs.packed_codes": (QUERY, DATABASE),
    "inputs.are_packed": (*PACKED, BITS),
    "inputs.label_affinity": TAGS,
    "inputs.check_shapes": (*PACKED, *CLASSES),
    "lookup.lookup_cost": (*PACKED, BITS, np.array(2), 3),
    "neighbours.nearest": (*PACKED, BITS, 3),
    "neighbours.within": (*PACKED, BITS, np.array(4)),
    "parts.fingerprint": (PACKED[0], CLASSES[0]),
    "prefixes.cut_codes": (PACKED[0], 5),
    "prefixes.prefix_histograms": (*PACKED, BITS, affinity, np.array([4, 8])),
    "prefixes.score_prefixes": (*PACKED, BITS, affinity, [4], np.array([2])),
    "rescoring.asymmetric_similarity": (REAL, PACKED[1], BITS),
    "rescoring.ranked_histograms": (SIMILARITY, GRADES, np.arange(3)),
    "rescoring.rescored": (*PACKED, BITS, judgements, similar, 4, np.array([3])),
    "rescoring.rescored_by": (lambda t: lambda q: t(-SIMILARITY[q]), judgements, similar, 4, np.array([3])),
    "rescoring.estimated_similarity": (REAL, PACKED[1], FACTORS, BITS),
    "split_check.rows_of_labels": (TAGS[0], "labels"),
    "ties.from_counts": (ITEMS, RELEVANT, RELEVANT.sum(axis=1) + 1),
    "ties.hits": (tied, CUTS),
    "ties.cut": (tied, CUTS),
    "ties.dcg": (ITEMS, RELEVANT, REAL[:, :5], 4),
    "ties.divide": (RELEVANT, ITEMS),
    "ties.average_precision": (tied, np.array(3), "hits"),
}
# Of joint histograms, or of ties, and a number.
GIVEN |= {
    f"{module}.{name}": (of, *map(np.array, rest))
    for module, of, rest, names in (
        ("exact", histograms, [3], "dcg ndcg average_cumulative_gain"),
        ("exact", histograms, [], "weighted_average_precision distance_shares queries_without_relevant"),
        ("radius", histograms, [1], "precision_within_radius recall_within_radius f1_within_radius"),
        ("radius", histograms, [1], "candidates_within_radius empty_within_radius"),
        ("radius", histograms, [1], "average_precision_within_radius radius_aware_average_precision"),
        ("radius", histograms, [], "lookup_curves"),
        ("ties", tied, [3], "precision recall success reciprocal_rank"),
        ("ties", tied, [], "r_precision"),
    )
    for name in names.split()
}


def call(name, t):
    """What a function returns of what it is given."""

    def made(one):
        return one(t) if callable(one) else t(one) if isinstance(one, np.ndarray) else one

    module, _, function = name.partition(".")
    return getattr(importlib.import_module(f"tiebench.{MODULES[module]}"), function)(*map(made, GIVEN[name]))


# "module.function" -> call with t(array), an array or a tensor; a call of two arguments is given a folder.
CALLS = {name: lambda t, name=name: call(name, t) for name in GIVEN} | {
    "scoring.score": lambda t: [
        tiebench.score(t(QUERY), t(DATABASE), t(one), t(two), at=t(np.array([2, 5])))
        for one, two in (CLASSES, TAGS)
    ],
    "scoring.fault_of_order": lambda t: tiebench.scoring.fault_of_order(
        call("scoring.score_codes", t), *packed(t), BITS, affinity(t)
    ),
    "runs.score_lists": lambda t: score_lists({name: t(its) for name, its in RUN.items()}),
    "diagnostics.health": compared,
    "distributed.count_parts": of_files,
    **{
        f"export.{name}": lambda t, folder, name=name: written(name, t, folder)
        for name in ("write_faiss", "write_sql", "write_trec", "write_ranx", "write_qrels")
    },
    "affinities.AffinityBlocks": lambda t: joint_histograms(
        *packed(t), BITS, AffinityBlocks(lambda begin, end: t(GRADES[begin:end]), [1, 2])
    ),
    "split_check.Part": split,
    "split_check.check": split,
    "training.TieAwareRetrieval": validated,
}
WITHOUT = {
    # What other functions here return.
    *("comparison", "scoring.Scores", "runs.RunScores", "diagnostics.Health", "lookup.LookupCost"),
    *("neighbours.distances_to", "neighbours.Neighbours", "ties.Ties", "ties.TieRange"),
    *("affinities.check_affinity", "affinities.check_levels", "affinities.checked_blocks"),
    *("histograms.share_queries", "packing.refuse_unpacked"),
    # Names, texts and plain numbers.
    *("runs.score_run", "distributed.Progress", "metrics.Metric", "metrics.Ranking", "metrics.ranking_of"),
    *("metrics.resolve", "metrics.label", "metrics.description", "split_check.summary"),
    *("lookup.substring_bits", "lookup.table_radii", "lookup.bucket_count", "parts.span", "parts.parse"),
    *("packing.check_bits", "ties.check_normaliser", "export.check_table"),
    # Files.
    *("leaderboards", "parts.save", "parts.load_merged", "parts.save_counts", "parts.load_counts"),
    # Tensors alone: their tests call them.
    *("on_device", "relaxed"),
}


def public_names():
    """ "module.name" of every public function and class of every public module."""
    for module, home in sorted(MODULES.items()):
        for name, found in vars(importlib.import_module(f"tiebench.{home}")).items():
            kind = inspect.isfunction(found) or inspect.isclass(found)
            if kind and not name.startswith("_") and found.__module__ == f"tiebench.{home}":
                yield f"{module}.{name}"


def test_every_public_function_is_called_with_tensors_or_says_why_not():
    names = set(public_names())
    without = {name for name in names if name in WITHOUT or name.partition(".")[0] in WITHOUT}
    assert names - without - set(CALLS) == set()
    assert set(CALLS) - names == set(), "no such function"
    called = {home: module for module, home in MODULES.items()}
    exported = {f"{called[home]}.{name}" for name, home in tiebench._FUNCTIONS.items()}
    assert exported <= set(CALLS) | without


def flat(found):
    """Arrays and values of a nested result, in one list."""
    if is_dataclass(found):
        names = [field.name for field in fields(found) if field.name != "memo"]
        return [one for name in names for one in flat(getattr(found, name))]
    if isinstance(found, dict):
        return [one for key, value in found.items() for one in (key, *flat(value))]
    if isinstance(found, (tuple, list, Iterator)):
        return [one for value in found for one in flat(value)]
    assert not values.is_tensor(found)
    return [found]


def same(one, two):
    one, two = flat(one), flat(two)
    assert len(one) == len(two)
    for mine, its in zip(one, two):
        np.testing.assert_array_equal(mine, its)


def plain(array):
    return torch.tensor(array)


def apart(array):
    """Not contiguous: every second value of a larger tensor."""
    made = torch.tensor(array)
    return torch.stack([made, made], dim=-1)[..., 0]


def with_gradient(array):
    made = torch.tensor(array)
    return made.requires_grad_() if made.is_floating_point() else made


@pytest.mark.parametrize("convert", [plain, apart, with_gradient])
@pytest.mark.parametrize("name", CALLS)
def test_tensors_are_accepted_wherever_arrays_are(name, convert, tmp_path):
    call = CALLS[name]
    more = (tmp_path,) if len(inspect.signature(call).parameters) - len(call.__defaults__ or ()) == 2 else ()
    same(call(convert, *more), call(lambda array: array, *more))


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SIGNED = (torch.int8, torch.int16, torch.int32, torch.int64)
UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
UNPACKED = ("scoring.score", "diagnostics.health", "packing.pack", "inputs.packed_codes")


@pytest.mark.parametrize("dtype", [*FLOATS, *SIGNED, *UNSIGNED, torch.bool], ids=str)
@pytest.mark.parametrize("name", (*UNPACKED, "training.TieAwareRetrieval", "runs.score_array"))
def test_tensors_of_every_type_are_read(name, dtype):
    def typed(array):
        if dtype == torch.bool and array.max(initial=0) > 1:
            return torch.tensor(array)
        if array.min(initial=0) < 0 and dtype in (*UNSIGNED, torch.bool):
            array = array > 0  # codes of {0, 1}
        made = torch.tensor(array).to(dtype)
        return made.requires_grad_() if dtype in FLOATS else made

    same(CALLS[name](typed), CALLS[name](lambda array: array))


@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.bool, torch.int64], ids=str)
def test_empty_tensors_are_refused_in_one_line(dtype):
    empty, some = torch.zeros(0, BITS, dtype=dtype), torch.ones(3, BITS, dtype=dtype)
    labels = torch.zeros(0, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)
    for call in (
        lambda: tiebench.score(empty, some, *labels),
        lambda: tiebench.health(some, empty),
        lambda: training.TieAwareRetrieval(BITS).update(empty, labels[0], "query"),
        lambda: tiebench.score_array(empty, empty.bool()),
    ):
        with refused(pattern="at least one code|is empty|not empty"):
            call()
    assert tiebench.on_device.pack(empty.bool()).shape == (0, 2)
