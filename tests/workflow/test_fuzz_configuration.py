"""Any settings on top of the real configuration: it is made, or refused in one line, and nothing else.

What is accepted must hold everything that rules ask of it: cells, groups, hyper-parameters, sources, JSON.
"""

import copy
import functools
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow.configuration import merged
from workflow.configuration.merged import Configuration, load
from workflow.errors import ConfigurationError
from workflow.plan.groups import groups
from workflow.plan.pages import PagePlan
from workflow.plan.runs import Plan

from conftest import ROOT  # isort: skip

pytestmark = pytest.mark.thorough

LONGEST = 700  # characters of a line

WHOLE = yaml.safe_load(
    """
device: auto
threads: {train: 2}
report: [mine]
skip: [labelme]
datasets:
  mine:
    loader: images
    sources:
      - {file: mine/a.tar, urls: [https://host/a.tar], bytes: 5, sha256: SHA256}
      - {file: /absent/b.tar, md5: MD5, instructions: ask}
    options: {paths: "{class}/{name}", size: [8, 8]}
    picture: [8, 8, 3]
networks:
  mine: {architecture: small, options: {width: 8}, weights: {file: w.npz}}
protocols:
  mine:
    dataset: mine
    split: {kind: per_class, query: 2, training: all}
    affinity: {kind: distance_levels, percentiles: [5.0, 1.0], levels: [1, 2]}
    input: {kind: network, network: mine}
    end_to_end: mine
    at: [10, 20]
    ap_at_normaliser: min
    runs_per_job: {seeds: 2, bits: [8, 12]}
methods:
  talr_ap:
    defaults: {epochs: 2, learning_rate: 0.5, by_bits: {8: {epochs: 3}}}
    protocols: {mine: {momentum: 0.5, by_bits: {"12": {tanh_scale: 3.0}}}}
tables:
  mine:
    title: Mine
    seeds: [0, 1]
    methods: [lsh, talr_ap]
    published: [mine]
    claims: [mine]
    blocks:
      - {protocol: mine, metric: ap, bits: [8, 12]}
      - {protocol: mine, metric: ndcg@10, bits: [8], methods: [lsh]}
published:
  mine: {source: mine, values: [{protocol: mine, metric: ap, method: lsh, bits: 8, value: 0.5}]}
claims:
  mine:
    source: mine
    claims:
      - {id: best, claim: It is best., of: Table 1, stated_for: [mine], kind: best, method: talr_ap,
         where: {metric: [ap], bits: [8]}}
tuning:
  mine:
    {protocol: mine, methods: [itq], bits: [8], space: {iterations: [1, 2]}, shares: {fit: 0.5, query: 0.1}}
""".replace("SHA256", f"'{'0' * 64}'").replace("MD5", f"'{'0' * 32}'")
)


def words(values):
    """Keys and texts of nested values."""
    if isinstance(values, dict):
        return {word for key, value in values.items() for word in {str(key)} | words(value)}
    if isinstance(values, list):
        return {word for value in values for word in words(value)}
    return {values} if isinstance(values, str) else set()


KNOWN = sorted(words(WHOLE) | {"kind", "by_bits", "random", "given", "class", "quick", "digits", "ap@7"})
NAMES = st.one_of(st.sampled_from(KNOWN), st.text(max_size=8))
NUMBERS = st.one_of(st.integers(), st.integers(-2, 20), st.floats())
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, NAMES, st.dates(), st.binary(max_size=3))
KEYS = st.one_of(NAMES, st.integers(0, 20), st.none(), st.booleans())
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
CHANGES = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=8),
    st.one_of(
        st.tuples(st.sampled_from(["set", "add"]), ANYTHING),
        st.tuples(st.sampled_from(["remove", "double"]), st.none()),
        st.tuples(st.just("rename"), KEYS),
    ),
)


def changed(values, changes):
    """WHOLE with values replaced, added, removed, doubled or renamed, each at a place found by numbers."""
    values = copy.deepcopy(values)
    for path, (kind, what) in changes:
        place = values
        for step, number in enumerate(path):
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = keys[number % len(keys)]
            inside = isinstance(place[key], (dict, list))
            if inside and step < len(path) - 1:
                place = place[key]
                continue
            if kind == "set":
                place[key] = what
            elif kind == "remove":
                del place[key]
            elif isinstance(place, list):
                place.append(what if kind in ("add", "rename") else copy.deepcopy(place[key]))
            elif kind == "rename":
                place[what] = place.pop(key)
            elif kind == "add":
                place[str(what)[:8]] = what
            break
    return values


@pytest.fixture(autouse=True, scope="module")
def methods_found_once():
    """The files of this checkout are the same for every example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merged, "catalogue", functools.cache(merged.catalogue))
        yield


def serves(found):
    """Everything that the rules ask of a configuration before anything runs."""
    assert isinstance(found, Configuration)
    json.dumps(found.values, sort_keys=True, allow_nan=False)
    plan = Plan(found)
    for *_, runs in groups(plan):
        assert len(runs) > 1
    for table in found["tables"]:
        for cell in plan.cells(table):
            assert plan.refusal(cell) is None or isinstance(plan.refusal(cell), str)
            json.dumps(plan.hyperparameters(cell), allow_nan=False)
            assert str(cell.bits).isdigit()
            plan.end_to_end(cell.protocol, cell.method)
            PagePlan(plan).has_pictures(cell.protocol)
        json.dumps(plan.table_settings(table), allow_nan=False)
        assert all(str(seed).isdigit() for seed in found["tables"][table]["seeds"])
    found.sources.to_download()
    for line, _ in found.sources.missing().values():
        assert "\n" not in line


def is_made_or_refused_in_one_line(overrides):
    before = copy.deepcopy(overrides)
    try:
        found = load(ROOT, overrides)
    except ConfigurationError as error:
        line = str(error)
        assert "\n" not in line and 0 < len(line) < LONGEST
        assert line.startswith(("--configfile: ", "config/"))
        line.encode("utf-8")
    else:
        serves(found)
    assert repr(overrides) == repr(before)


def test_the_whole_is_accepted():
    serves(load(ROOT, WHOLE))


@settings(max_examples=settings.default.max_examples // 2)
@given(st.lists(CHANGES, min_size=1, max_size=3))
def test_changes_of_a_good_configuration(changes):
    is_made_or_refused_in_one_line(changed(WHOLE, changes))


@given(st.dictionaries(st.one_of(st.sampled_from(list(WHOLE)), KEYS), ANYTHING, max_size=4))
def test_anything_at_all(overrides):
    is_made_or_refused_in_one_line(overrides)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.data())
def test_yaml_files_with_anything_in_them(tmp_path_factory, data):
    """The text of a file changed as text: the reader says where, or reads what YAML makes of it."""
    text = yaml.safe_dump(WHOLE["tables"]["mine"], sort_keys=False).encode()
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 6))
        put = data.draw(
            st.one_of(
                st.binary(max_size=6),
                st.sampled_from([b"\t", b"- ", b"{", b"]", b": ", b"&a ", b"*a", b"!!python/name:os.x "]),
                st.sampled_from([b"2020-99-99", b"\xff", b"\0", b"!!int ''", b"<<: ", b"? ", b"%", b"|\n"]),
            )
        )
        text = text[:at] + put + text[at + cut :]
    file = tmp_path_factory.getbasetemp() / "fuzzed.yaml"
    file.write_bytes(text)
    try:
        values = READ(file)
    except ConfigurationError as error:
        assert "\n" not in str(error) and str(error).startswith(str(file)) and len(str(error)) < LONGEST
    else:
        json.dumps(values, allow_nan=False)


READ = merged.read_settings
