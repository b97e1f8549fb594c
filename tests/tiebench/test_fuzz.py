"""Scores of arbitrary codes against plain sorting; arbitrary files of codes.

An oracle that shares nothing with the code: lists that are sorted and walked rank by rank in rational
numbers, with a sum over the hits in a tie that is cut. test_orders.py goes over every order of few items.
"""

import contextlib
import io
import json
import math
import re
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tests.files import damaged
from tiebench.__main__ import main
from tiebench.affinities import AffinityBlocks, EqualLabels, SharedLabels
from tiebench.codes.packing import pack
from tiebench.metrics import resolve
from tiebench.scoring import score_codes

pytestmark = pytest.mark.thorough

TOLERANCE = 1e-11
NORMALISERS = ("hits", "min", "relevant")


def ties_of(distances, affinities):
    """Affinities of the items at each distance, nearest first."""
    return [[a for d, a in zip(distances, affinities) if d == near] for near in sorted(set(distances))]


def walked(ties, at, normaliser):
    """Mean, minimum, maximum of AP@at over all orders, tie by tie."""
    relevant = sum(a > 0 for tie in ties for a in tie)
    before, hits, sums = 0, 0, [Fraction(0)] * 3
    results = None
    for tie in ties:
        n, r = len(tie), sum(a > 0 for a in tie)
        m = min(n, at - before)
        outcomes = []  # (probability, hits, sums) of each number of hits inside the cut
        for h in range(max(0, m - (n - r)), min(m, r) + 1):
            probability = Fraction(math.comb(r, h) * math.comb(n - r, m - h), math.comb(n, m))
            slope = Fraction(h - 1, m - 1) if m > 1 else 0
            mean = sum(Fraction(h, m) * (hits + 1 + (j - 1) * slope) / (before + j) for j in range(1, m + 1))
            first = sum(Fraction(hits + k, before + k) for k in range(1, h + 1))
            last = sum(Fraction(hits + k, before + m - h + k) for k in range(1, h + 1))
            outcomes.append((probability, h, [mean, last, first]))
        if before + n >= at or tie is ties[-1]:
            results = outcomes
            break
        ((_, h, inside),) = outcomes
        before, hits, sums = before + n, hits + h, [s + i for s, i in zip(sums, inside)]

    def divided(total, h):
        divisor = {"hits": hits + h, "min": min(at, relevant), "relevant": relevant}[normaliser]
        return total / divisor if divisor else Fraction(0)

    mean = sum(p * divided(sums[0] + inside[0], h) for p, h, inside in results)
    least = min(divided(sums[1] + inside[1], h) for _, h, inside in results)
    most = max(divided(sums[2] + inside[2], h) for _, h, inside in results)
    return float(mean), float(least), float(most)


def sorted_ndcg(ties, at):
    """Mean, minimum, maximum of NDCG@at: gains of a tie are their mean, or sorted."""
    gains = [[2**a - 1 for a in tie] for tie in ties]
    rankings = [
        [sum(tie) / len(tie) for tie in gains for _ in tie],
        [gain for tie in gains for gain in sorted(tie)],
        [gain for tie in gains for gain in sorted(tie, reverse=True)],
    ]

    def dcg(ranking):
        return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(ranking[:at], start=1))

    ideal = dcg(sorted((gain for tie in gains for gain in tie), reverse=True))
    return tuple(dcg(ranking) / ideal if ideal else 1.0 for ranking in rankings)


def sorted_precision(ties, at):
    orders = (sorted, lambda tie: sorted(tie, reverse=True))
    rankings = ([a for tie in ties for a in order(tie)] for order in orders)
    least, most = (sum(a > 0 for a in ranking[:at]) / at for ranking in rankings)
    chances, before = 0.0, 0
    for tie in ties:
        chances += sum(a > 0 for a in tie) / len(tie) * max(0, min(len(tie), at - before))
        before += len(tie)
    return chances / at, least, most


@st.composite
def problems(draw):
    """Codes (few different ones: ties everywhere), bits, affinities (Q, N), and what gives them."""
    bits = draw(st.one_of(st.integers(1, 130), st.integers(1, 1024)))
    queries = draw(st.integers(1, 4))
    items = draw(st.one_of(st.integers(1, 12), st.integers(1, 90)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    different = draw(st.integers(1, 6))
    codes = generator.integers(0, 2, (different, bits))
    flips = generator.random((queries + items, bits)) < draw(st.sampled_from([0.0, 0.01, 0.5]))
    codes = codes[generator.integers(0, different, queries + items)] ^ flips
    query, database = codes[:queries], codes[queries:]
    kind = draw(st.sampled_from(["classes", "labels", "binary", "levels"]))
    if kind == "classes":
        labels = generator.integers(-1, draw(st.integers(1, 4)), queries + items)
        affinity = EqualLabels(labels[:queries], labels[queries:])
        table = (labels[:queries, None] == labels[None, queries:]).astype(int)
    elif kind == "levels":
        values = np.unique(generator.integers(0, 11, draw(st.integers(1, 6))))
        table = generator.choice([0, *values], (queries, items))
        affinity = AffinityBlocks(lambda begin, end: table[begin:end], tuple(values.tolist()))
    else:
        share = draw(st.sampled_from([0.1, 0.5, 0.95]))
        labels = (generator.random((queries + items, draw(st.integers(1, 10)))) < share).astype(int)
        affinity = SharedLabels(labels[:queries], labels[queries:], kind == "binary")
        table = labels[:queries] @ labels[queries:].T
        table = np.minimum(table, 1) if kind == "binary" else table
    return query, database, bits, table, affinity


@given(problems(), st.lists(st.integers(1, 100), max_size=3), st.sampled_from(NORMALISERS), st.integers(1, 3))
def test_scores_of_codes_are_those_of_sorted_lists(problem, cuts, normaliser, threads):
    query, database, bits, table, affinity = problem
    cuts = list(dict.fromkeys([*cuts, len(database)]))
    found = score_codes(pack(query), pack(database), bits, affinity, cuts, normaliser, threads).per_query
    for row, code in enumerate(query):
        distances = (database != code).sum(axis=1).tolist()
        ties = ties_of(distances, table[row].tolist())
        expected = {"ap": walked(ties, len(database), "relevant"), "ndcg": sorted_ndcg(ties, len(database))}
        for at in cuts:
            expected[f"ap@{at}"] = walked(ties, at, normaliser)
            expected[f"ndcg@{at}"] = sorted_ndcg(ties, at)
            expected[f"precision@{at}"] = sorted_precision(ties, at)
        for name, values in expected.items():
            reported = [found[f"{name}{ending}"][row] for ending in ("", "_min", "_max")]
            assert np.allclose(reported, values, rtol=0, atol=TOLERANCE), (name, reported, values)
        near = [a for d, a in zip(distances, table[row]) if d <= 2]
        share = sum(a > 0 for a in near) / len(near) if near else 0.0
        assert math.isclose(found["precision_radius_2"][row], share, abs_tol=TOLERANCE)


def run(*arguments):
    """Exit status, stdout and stderr of tiebench score, in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        status = main(["score", *map(str, arguments)])
    return status, out.getvalue(), errors.getvalue()


def scored_or_refused_in_one_line(*arguments):
    """What was printed, or None where it was refused."""
    status, out, errors = run(*arguments)
    if status == 0:
        assert errors == ""
        for name, value in json.loads(out).items():
            assert math.isfinite(value) and value >= 0
            if name not in ("queries", "database", "bits", "queries_without_relevant"):
                assert value <= resolve(re.sub("_(min|max)$", "", name))[0].high + 1e-9
        return out
    assert status == 1 and out == ""
    assert errors.startswith("error: ") and errors.count("\n") == 1 and len(errors) < 700
    return None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of packed codes, its parts, and what they score."""
    folder = tmp_path_factory.mktemp("whole")
    generator = np.random.default_rng(0)
    codes = {
        "query": np.packbits(generator.integers(0, 2, (5, 13)), axis=1),
        "database": np.packbits(generator.integers(0, 2, (30, 13)), axis=1),
        "query_labels": generator.integers(0, 2, (5, 4)),
        "database_labels": generator.integers(0, 2, (30, 4)),
    }
    np.savez_compressed(folder / "codes.npz", **codes, bits=13)
    for part in (1, 2):
        status = run(folder / "codes.npz", "--part", f"{part}/2", "--histograms", folder / f"{part}.npz")
        assert status == (0, "", "")
    printed = scored_or_refused_in_one_line(folder / "codes.npz", "--at", "7")
    parts = folder / "1.npz", folder / "2.npz"
    assert printed == scored_or_refused_in_one_line("--merge", *parts, "--at", "7")
    return folder, printed


PLACE = st.floats(0, 1, exclude_max=True)
DAMAGE = st.lists(
    st.one_of(
        st.tuples(st.just("set"), PLACE, st.integers(0, 255)),
        st.tuples(st.just("flip"), PLACE, st.integers(0, 7)),
        st.tuples(st.just("insert"), PLACE, st.binary(min_size=1, max_size=30)),
        st.tuples(st.just("remove"), PLACE, st.integers(1, 60)),
        st.tuples(st.just("double"), PLACE, st.integers(1, 60)),
        st.tuples(st.just("cut"), PLACE, st.none()),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("name", ["codes.npz", "2.npz"])
@given(DAMAGE)
def test_a_damaged_file_scores_the_same_or_is_refused(whole, name, changes):
    """Of codes, or of a part."""
    folder, printed = whole
    file = folder / f"damaged_{name}"
    file.write_bytes(damaged((folder / name).read_bytes(), changes))
    files = [file] if name == "codes.npz" else ["--merge", folder / "1.npz", file]
    assert scored_or_refused_in_one_line(*files, "--at", "7") in (printed, None)


TYPES = st.one_of(
    arrays_of.boolean_dtypes(),
    arrays_of.integer_dtypes(endianness="?"),
    arrays_of.unsigned_integer_dtypes(endianness="?"),
    arrays_of.floating_dtypes(endianness="?"),
    arrays_of.complex_number_dtypes(),
    arrays_of.unicode_string_dtypes(max_len=3),
    arrays_of.byte_string_dtypes(max_len=3),
    arrays_of.datetime64_dtypes(),
    arrays_of.timedelta64_dtypes(),
)
SHAPES = arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=9)
ARRAYS = arrays_of.arrays(TYPES, SHAPES, fill=st.nothing())


@st.composite
def like_codes(draw):
    """Arrays as files of codes hold them, most of them near to right ones."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bits, queries, items = (draw(st.integers(1, most)) for most in (20, 4, 9))
    low, high = draw(st.sampled_from([(0, 2), (0, 2), (-1, 2), (0, 256)]))
    packed = draw(st.booleans())
    made = {}
    for name, rows in (("query", queries), ("database", items)):
        codes = generator.integers(low, high, (rows, bits))
        made[name] = np.packbits(codes > 0, axis=1) if packed else codes
        shape, most = ((rows, 3), 2) if draw(st.booleans()) else ((rows,), 3)
        made[f"{name}_labels"] = generator.integers(0, most, shape)
    if packed or draw(st.booleans()):
        made["bits"] = np.array(bits)
    for name in draw(st.lists(st.sampled_from(sorted(made)), max_size=2)):
        change = draw(st.sampled_from(["any", "type", "shape", "drop", "value"]))
        if name not in made or change == "drop":
            made.pop(name, None)
        elif change == "any":
            made[name] = draw(ARRAYS)
        elif change in ("type", "value") and made[name].dtype.kind not in "biufc":
            continue  # drawn before as text or records, which do not turn into numbers
        elif change == "type":
            made[name] = made[name].astype(draw(st.sampled_from(["f2", "f8", "u1", "i1", ">i8", "?", "c8"])))
        elif change == "shape":
            array = np.atleast_1d(made[name])
            made[name] = draw(st.sampled_from([array[..., None], array[:0], array.T]))
        elif made[name].size:
            changed = made[name].astype(draw(st.sampled_from(["f8", "i8", "u8"])))
            value = draw(st.sampled_from([math.nan, math.inf, -1, 2, 2.5, 255, 2**53, 2**62]))
            if changed.dtype.kind == "f" or (math.isfinite(value) and value >= 0):
                changed.reshape(-1)[0] = value
            made[name] = changed
    return made


@given(like_codes(), st.sampled_from([[], ["--at", "3"], ["--part", "1/2"]]))
def test_any_arrays_are_scored_or_refused_in_one_line(tmp_path_factory, arrays, options):
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        file = Path(folder, "codes.npz")
        np.savez(file, **arrays)
        if options[:1] == ["--part"]:
            kept = Path(folder, "part.npz")
            status, out, errors = run(file, *options, "--histograms", kept)
            assert out == "" and kept.exists() == (status == 0)
            assert errors.count("\n") == status
            return
        printed = scored_or_refused_in_one_line(file, *options)
        np.savez(file, **{name: np.array(array, order="F") for name, array in arrays.items()})
        assert scored_or_refused_in_one_line(file, *options) == printed


@settings(max_examples=settings.default.max_examples // 4)
@given(problems().filter(lambda problem: isinstance(problem[4], EqualLabels)), st.integers(1, 12))
def test_parts_of_any_database_score_the_bits_of_the_whole(tmp_path_factory, problem, parts):
    query, database, _, _, affinity = problem
    parts = min(parts, len(database))
    with tempfile.TemporaryDirectory(dir=tmp_path_factory.getbasetemp()) as folder:
        file = Path(folder, "codes.npz")
        labels = {"query_labels": affinity.query, "database_labels": affinity.database}
        np.savez(file, query=query, database=database, **labels)
        kept = [Path(folder, f"{part}.npz") for part in range(1, parts + 1)]
        for part, place in enumerate(kept, start=1):
            assert run(file, "--part", f"{part}/{parts}", "--histograms", place) == (0, "", "")
        printed = scored_or_refused_in_one_line(file, "--at", "4")
        assert printed is not None
        assert scored_or_refused_in_one_line("--merge", *kept[::-1], "--at", "4") == printed
