"""What every method must do. Methods are found, not listed: a new file is tested without an edit here."""

import ast
import functools
import itertools
import json
import random
import re
from contextlib import suppress
from dataclasses import fields, replace
from typing import Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from refusing import refused
from resuming import assert_same_state, killed_and_resumed
from sets import affinity_of, block, graded, labelled, units

from methods import base
from methods.base import HashingMethod, Refusal, deep
from methods.base.catalogue import catalogue, load_class
from tiebench.affinities import EqualLabels, SharedLabels
from tiebench.scoring import score_codes

METADATA = catalogue()
every_method = pytest.mark.parametrize("name", sorted(METADATA))
SUPERVISED = [name for name in sorted(METADATA) if METADATA[name].supervision != "none"]
every_supervised_method = pytest.mark.parametrize("name", SUPERVISED)
BITS = 6
# Settings that only shorten training, for tests that do not ask how good the codes are.
SHORT = {"epochs": 3, "batch_size": 32, "iterations": 5, "trees": 20, "code_epochs": 20}


def training_set(name, seed=0, items=120, **changes):
    """As the method's supervision asks: classes, or graded affinities."""
    vectors, labels = units(items, classes=4, seed=seed)
    made = labelled(vectors, labels)
    if METADATA[name].supervision == "graded":
        made = labelled(vectors, labels, graded(labels), levels=(0, 1, 2))
    return replace(made, **changes)


def short(name, **changes):
    settings = {key: value for key, value in SHORT.items() if key in METADATA[name].parameters}
    return load_class(name)(**({"bits": BITS} | settings | changes))


@pytest.fixture(scope="module")
def fitted():
    """name -> a method fitted once, briefly."""
    return functools.cache(lambda name: short(name).fit(training_set(name)))


@pytest.fixture(scope="module")
def others():
    return units(101, classes=4, seed=1)[0]


@every_method
def test_the_file_says_what_the_method_is_and_where_it_was_published(name):
    text = ast.get_docstring(ast.parse(METADATA[name].path.read_text(encoding="utf-8")))
    summary = " ".join(text.split("\n\n")[0].split())
    assert summary.endswith(".")
    assert not re.search(r"\.\s+[A-Z]", summary), "more than one sentence before the blank line"
    assert re.search(r"\b(19|20)\d\d\b", text), "no year of a publication"
    assert len(text.split("\n\n")) > 1, "no reference after the summary"
    assert METADATA[name].bibtex  # raises an error for a reference of another form
    assert METADATA[name].description.count("$$") >= 2, "no formula in the docstring of the class"
    assert METADATA[name].title and METADATA[name].title.strip() == METADATA[name].title
    address = urlsplit(METADATA[name].paper)
    assert address.scheme == "https" and "." in address.netloc and len(address.path) > 1


def test_titles_and_colours_are_distinct_and_colours_readable_on_white():
    """Contrast of at least 1.9 by the definition of WCAG 2 (a marker or a line, not text)."""
    for key in ("title", "colour"):
        known = [getattr(metadata, key).lower() for metadata in METADATA.values() if getattr(metadata, key)]
        assert len(set(known)) == len(known), key
    for name, metadata in METADATA.items():
        if metadata.colour:
            parts = np.array([int(metadata.colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
            linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
            assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) > 1.9, name


def fits(value, annotation):
    """Whether a value is of a field's type: int, float, str, bool, None, Literal[...] or a union of these."""
    if get_origin(annotation) is Literal:
        return value in get_args(annotation)
    if get_args(annotation):
        return any(fits(value, part) for part in get_args(annotation))
    if isinstance(value, bool) or annotation is not float:
        return type(value) is annotation
    return isinstance(value, (int, float))


def listed(axis):
    """The values of an axis of a space, or the ends of a continuous one."""
    return axis["log_uniform"] if isinstance(axis, dict) else axis


@every_method
def test_the_search_space_holds_distinct_values_of_each_hyperparameter_s_type(name):
    annotations = get_type_hints(load_class(name))
    assert all(len(listed(axis)) > 1 for axis in METADATA[name].space.values())
    for space in METADATA[name].spaces:
        for key, axis in space.items():
            values = listed(axis)
            assert key not in ("bits", "seed", "device")
            for value in values:
                assert fits(value, annotations[key]), (key, value)
            assert len({json.dumps(value) for value in values}) == len(values), key
            method = load_class(name)(**{key: values[0]})
            assert getattr(method, key) == values[0]


@every_method
def test_hyperparameters_are_keyword_arguments_and_construction_does_nothing_else(name):
    method_class = load_class(name)
    assert issubclass(method_class, HashingMethod)
    assert {entry.name for entry in fields(method_class)} == set(METADATA[name].parameters)
    # A stand-in of no use to any computation: constructing must only keep it.
    stand_ins = {entry.name: object() for entry in fields(method_class)}
    method = method_class(**stand_ins)
    assert vars(method) == stand_ins
    assert vars(method_class()) == {entry.name: entry.default for entry in fields(method_class)}
    assert method_class(bits=9, seed=4) == method_class(seed=4, bits=9)
    assert method_class(bits=9) != method_class(bits=8)
    with pytest.raises(TypeError):
        method_class(9)
    with pytest.raises(TypeError):
        method_class(no_such_hyper_parameter=1)


def states_of_generators():
    kind, key, *rest = np.random.get_state()  # noqa: NPY002
    return [kind, key.tolist(), *rest], torch.get_rng_state().tolist(), random.getstate()


@every_method
def test_fit_draws_from_its_seed_alone_and_logs_plain_values(name, fitted, others, tmp_path):
    expected = fitted(name).encode(others)
    np.random.seed(123)  # noqa: NPY002
    torch.manual_seed(123)
    random.seed(123)
    states, records = states_of_generators(), []
    made, method = training_set(name, log=records.append), short(name)
    before, values = (made.items.copy(), made.labels.copy()), method.hyperparameters()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert method.fit(made) is method
    assert np.array_equal(method.encode(others), expected)
    method.save(tmp_path)
    load_class(name).load(tmp_path).encode(others)
    assert states_of_generators() == states
    assert method.hyperparameters() == values
    assert np.array_equal(made.items, before[0]) and np.array_equal(made.labels, before[1])

    assert records, "fit reports no progress: call training_set.log (docs/add-a-method.md)"
    for record in records:
        assert json.loads(json.dumps(record, allow_nan=False)) == record
        assert {"objective", "seconds"} <= record.keys()
    seconds = [record["seconds"] for record in records]
    assert seconds == sorted(seconds) and seconds[0] >= 0


@every_method
@pytest.mark.parametrize("bits", [1, 13])
def test_codes_are_bool_of_the_right_shape_and_items_stay_as_they_were(name, bits, others):
    method = short(name, bits=bits)
    try:
        method.fit(training_set(name))
    except Refusal:  # one bit has two codes, too few for the codes of four classes
        assert bits == 1 and METADATA[name].supervision == "labels"
        return
    before = others.copy()
    codes = method.encode(others)
    assert codes.dtype == bool
    assert codes.shape == (len(others), bits)
    assert np.array_equal(others, before)
    nothing = method.encode(others[:0])
    assert nothing.dtype == bool
    assert nothing.shape == (0, bits)


@every_method
def test_each_item_has_its_own_code_however_items_are_split_into_blocks(name, fitted, others, monkeypatch):
    method = fitted(name)
    whole = method.encode(others)
    assert np.array_equal(np.concatenate([method.encode(others[:37]), method.encode(others[37:])]), whole)
    assert np.array_equal(method.encode(others[::-1])[::-1], whole)
    for rows in (1, 7, 101):
        monkeypatch.setattr(base, "ENCODE_ROWS", rows)
        assert np.array_equal(method.encode(others), whole)


@every_method
def test_a_second_fit_forgets_the_first(name, fitted, others):
    method = short(name).fit(training_set(name, seed=5))
    assert np.array_equal(method.fit(training_set(name)).encode(others), fitted(name).encode(others))


@pytest.mark.parametrize("name", [name for name in METADATA if "lr_step_size" in METADATA[name].parameters])
def test_a_killed_training_resumes_to_the_same_bytes(name, fitted, tmp_path):
    """What a method keeps of its own must be in its `changing_memory` or its criterion."""

    def fit(**given):
        return short(name).fit(training_set(name, **given))

    resumed, *_ = killed_and_resumed(fit, tmp_path / "run" / "mark.npz", 2)
    assert_same_state(fitted(name), resumed)


@every_method
@pytest.mark.thorough
def test_every_hyperparameter_is_read(name, monkeypatch):
    """A hyper-parameter that is ignored must not be one. Choices that are read only with another setting are
    looked for among the settings of words and booleans, and on images."""
    monkeypatch.setattr(deep.DeepHashing, "_refuse_bad_settings", lambda method, items: None)
    read = {"bits", "seed"}  # a method may have no use for chance

    class Watched(load_class(name)):
        def __getattribute__(self, key):
            read.add(key)
            return super().__getattribute__(key)

    known = METADATA[name].parameters
    settings = {key: value for key, value in SHORT.items() if key in known} | {"bits": BITS}
    tried = [{}, {"lr_step_size": 1, "head": "mlp", "quantiser": "hswd", "update_every": 1}]
    tried[1] |= {"positives": 2, "negatives": 2}
    for key, annotation in known.items():
        choices = [True, False] if annotation == "bool" else re.findall("['\"](\\w+)['\"]", annotation)
        tried += [{key: choice} for choice in choices]
    if METADATA[name].end_to_end:
        images = np.random.default_rng(0).integers(0, 255, (40, 32, 32, 3)).astype(np.uint8)
        made = replace(
            training_set(name, items=40), items=images, network={"architecture": "small", "options": {}}
        )
        Watched(**(settings | {"epochs": 1, "learning_rate": 1e-3, "horizontal_flip": True})).fit(made)
    labels = np.arange(60) % 4
    classes = {"affinity": block(affinity_of(labels)), "levels": (0, 1)}
    sets = training_set(name, items=60), training_set(name, items=60, **classes)
    for change, made in itertools.product(tried, sets):
        if known.keys() <= read:
            break
        chosen = settings | {key: value for key, value in change.items() if key in known}
        with suppress(Refusal):  # a combination that is not served; others are
            Watched(**chosen).fit(made).encode(made.items[:2])
    assert sorted(known.keys() - read) == []


@every_method
def test_a_saved_method_gives_the_same_codes_and_is_no_pickle(name, fitted, others, tmp_path):
    method = fitted(name)
    method.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.npz"]
    with np.load(tmp_path / "model.npz", allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    assert all(array.dtype != object for array in arrays.values())
    loaded = load_class(name).load(tmp_path)
    assert loaded == method
    if METADATA[name].end_to_end:  # of the training set and its memory nothing is kept
        assert vars(method).keys() - {"current_tanh_scale"} <= vars(loaded).keys()
    assert np.array_equal(loaded.encode(others), method.encode(others))
    loaded.save(tmp_path)  # and what was loaded can be saved again
    assert np.array_equal(load_class(name).load(tmp_path).encode(others), method.encode(others))


@pytest.mark.parametrize("learned", [object(), {"a": 1.0}, None])
def test_what_would_be_pickled_is_not_saved(learned, tmp_path):
    class Made(HashingMethod):
        learned = ("model",)

    method = Made()
    method.model = learned
    with pytest.raises(TypeError, match=r"^Made: model, of what is learned, must be an array or a"):
        method.save(tmp_path)
    assert not list(tmp_path.iterdir())


# Of each class a label of its own, and one that its sister class has, too.
TWO_LABELS = np.concatenate([np.eye(4), np.repeat(np.eye(2), 2, axis=0)], axis=1).astype(np.uint8)


@functools.cache
def tie_aware_ap(name, several=False, seed=0):
    vectors, labels = units(120, classes=4)
    made, affinity = training_set(name), EqualLabels(labels, labels)
    if several:
        labels = TWO_LABELS[labels]
        affinity = SharedLabels(labels, labels)
        made = labelled(vectors, labels, affinity_of(labels), levels=(0, 1, 2))
    codes = np.packbits(load_class(name)(bits=12, seed=seed).fit(made).encode(vectors), axis=1)
    return score_codes(codes, codes, 12, affinity).means["ap"]


def random_ap(several):
    return np.mean([tie_aware_ap("lsh", several, seed) for seed in range(3)])


@every_supervised_method
def test_a_method_that_sees_labels_beats_random_projections_on_them(name):
    assert tie_aware_ap(name) > random_ap(several=False) + 0.1


@pytest.mark.parametrize("name", [n for n in sorted(METADATA) if METADATA[n].supervision == "labels"])
def test_a_method_that_wants_labels_needs_them_and_serves_several_or_refuses_them(name):
    with refused("learns from labels"):
        short(name).fit(training_set(name, labels=None))
    if METADATA[name].several_labels:
        assert tie_aware_ap(name, several=True) > random_ap(several=True) + 0.05
    else:
        with refused(pattern=f"^{name} has no form for items with several labels$"):
            tie_aware_ap(name, several=True)


@every_supervised_method
@pytest.mark.parametrize("kind", ["all similar", "all dissimilar"])
def test_a_training_set_that_tells_nothing_apart_is_refused_in_one_line(name, kind):
    labels = np.zeros(120, np.int64) if kind == "all similar" else np.arange(120)
    made = training_set(name, affinity=block(affinity_of(labels)), levels=(0, 1), labels=labels)
    with refused():
        short(name).fit(made)
        pytest.fail("fit must refuse it: methods.base.supervision.similar_share does (docs/add-a-method.md)")


@every_method
def test_codes_are_the_signs_of_raw_scores(name, fitted, others):
    scores = fitted(name).raw_scores(others)
    if scores is not None:
        scores = base.check_raw_scores(scores, len(others), BITS, name)
        assert np.array_equal(scores > 0, fitted(name).encode(others))


@every_method
def test_a_value_just_outside_its_bounds_is_refused_in_one_line(name):
    for cls in load_class(name).__mro__:
        for parameter, interval in vars(cls).get("bounds", {}).items():
            for end, bracket, step in zip(interval[1:-1].split(", "), (interval[0], interval[-1]), (-1, 1)):
                if end == "inf":
                    continue
                value = float(end) + step * (bracket in "[]")
                with refused(pattern=f"^{parameter} must be in "):
                    short(name, **{parameter: value}).fit(training_set(name))
                    pytest.fail(f"fit must begin with check_settings(self): {parameter} = {value}")


@every_method
def test_a_word_that_a_setting_does_not_know_is_refused_with_the_nearest(name):
    for key, annotation in get_type_hints(load_class(name)).items():
        for part in (annotation, *get_args(annotation)):
            if get_origin(part) is Literal:
                known = get_args(part)[0]
                with refused(pattern=f"^unknown {key} '{known}x'.*\\b{known}\\b"):
                    short(name, **{key: f"{known}x"}).fit(training_set(name))
                    pytest.fail(f"fit must begin with check_settings(self): {key}")
