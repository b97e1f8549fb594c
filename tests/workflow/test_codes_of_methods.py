"""Codes that a method returns, and methods that end the process: wrong ones end their run with one line."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from datasets import affinity
from methods.base import HashingMethod, catalogue, check_codes
from methods.rabitq import RaBitQ
from tiebench.affinities import EqualLabels
from tiebench.scoring import score_codes
from workflow import compile as compiling
from workflow.scripts import train_and_encode
from workflow.stages import protocol_data
from workflow.stages.protocol_data import ProtocolData
from workflow.stages.run_records import read_estimates
from workflow.tuning.validation import validation_score

from conftest import read_json  # isort: skip

pytestmark = pytest.mark.thorough

SHARES = {"fit": 0.3, "query": 0.3}
CLASSES, ITEMS, BITS = 4, 80, 6
LABELS = np.arange(ITEMS) % CLASSES
CODES = np.random.default_rng(3).random((CLASSES, BITS)) < 0.5


class Returns(HashingMethod):
    """Encodes an item, a one-hot class, by the code of its class, as `form` returns it."""

    supervision = "none"
    form = staticmethod(lambda codes: codes)

    def fit(self, training_set):
        training_set.log({"objective": None, "seconds": 0.0})
        return self

    def encode(self, items):
        return self.form(CODES[items[:].argmax(axis=1)])

    def state(self):
        return {}

    def set_state(self, state):
        pass


def packed(rows):
    """Codes of items by their class."""
    return np.packbits(CODES[LABELS[rows]], axis=1)


def method_of(form):
    return type("Returns", (Returns,), {"form": staticmethod(form), "__module__": "methods.wrong"})


@pytest.fixture
def protocol():
    made = object.__new__(ProtocolData)
    made.items, made.labels = np.eye(CLASSES, dtype=np.float32)[LABELS], LABELS
    made.affinity = affinity.make({"kind": "class"}, LABELS)
    parts = np.split(np.random.default_rng(0).permutation(ITEMS), [20, 50])
    made.split = SimpleNamespace(query=parts[0], database=parts[1], training=parts[2])
    made.network = made.weights = made._kept = None
    made.fingerprints = {"dataset": "none", "split": "none"}
    return made


@pytest.fixture
def train(protocol, tmp_path, monkeypatch):
    """train(form): run the adapter on a method that returns its codes in this form; the folder of the run."""

    def trained(form, method_class=None, **more):
        monkeypatch.setattr(catalogue, "load_class", lambda name: method_class or method_of(form))
        monkeypatch.setattr(protocol_data, "ProtocolData", lambda *arguments: protocol)
        settings = {"class": "lsh", "hyperparameters": {str(BITS): {}}, "affinity": {"kind": "class"}} | more
        train_and_encode.work(
            SimpleNamespace(
                settings=settings,
                protocol="tiny",
                method="wrong",
                protocol_folder=None,
                dataset=None,
                items=None,
                weights=None,
                folder=str(tmp_path),
                runs=[f"{BITS}/0"],
                threads=1,
                log="log",
            )
        )
        return tmp_path / str(BITS) / "0"

    return trained


def test_what_distances_are_estimated_from_is_kept_where_it_is_asked_for(train, protocol):
    record = {"bits": BITS}
    folder = train(None, RaBitQ, estimates=True)
    queries, factors = read_estimates(folder, record, 20, 30)
    method = RaBitQ.load(folder)
    assert np.array_equal(queries, method.query_vectors(protocol.items[protocol.split.query]))
    assert np.array_equal(factors, method.item_factors(protocol.items[protocol.split.database]))
    for asked in (train(None, RaBitQ), train(lambda codes: codes, estimates=True)):
        assert read_estimates(asked, record, 20, 30) is None


ACCEPTED = {
    "bool": lambda codes: codes,
    "0/1 of uint8": lambda codes: codes.astype(np.uint8),
    "0/1 of float": lambda codes: codes.astype(np.float64),
    "-1/+1 of int8": lambda codes: np.where(codes, 1, -1).astype(np.int8),
    "-1/+1 of float32": lambda codes: np.where(codes, 1, -1).astype(np.float32),
    "nested lists": lambda codes: codes.tolist(),
    "Fortran order": lambda codes: np.asfortranarray(np.where(codes, 1, -1)),
}


@pytest.mark.parametrize("form", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_codes_in_any_of_the_accepted_forms_are_scored_as_the_same_codes(form, train, protocol):
    folder = train(form)
    with np.load(folder / "codes.npz") as archive:
        query, database = archive["query"], archive["database"]
    assert np.array_equal(query, packed(protocol.split.query))
    assert np.array_equal(database, packed(protocol.split.database))
    # The classes have different codes, so that each query finds its own class first.
    assert len(np.unique(CODES, axis=0)) == CLASSES
    labels = EqualLabels(LABELS[protocol.split.query], LABELS[protocol.split.database])
    assert score_codes(query, database, BITS, labels).means["ap"] == pytest.approx(1)
    assert read_json(folder / "run.json")["status"] == "done"


def _with(value, dtype=np.float64):
    def changed(codes):
        values = codes.astype(dtype)
        values[3, 2] = value
        return values

    return changed


REFUSED = {
    "one row too few": (lambda codes: codes[:-1], f"an array of shape (19, {BITS})"),
    "one bit too few": (lambda codes: codes[:, :-1], f"an array of shape (20, {BITS - 1})"),
    "packed": (lambda codes: np.packbits(codes, axis=1), "an array of shape (20, 1)"),
    "transposed": (lambda codes: codes.T, f"an array of shape ({BITS}, 20)"),
    "NaN": (_with(np.nan), "NaN or infinite values"),
    "a third value": (_with(2, np.int64), "the values 0, 1, 2"),
    "0 and -1": (lambda codes: -codes.astype(np.int8), "the values -1, 0"),
    "raw scores": (lambda codes: np.where(codes, 0.5, -0.5), "the values -0.5, 0.5"),
    "0/255": (lambda codes: codes * np.uint8(255), "the values 0, 255"),
    "text": (lambda codes: np.where(codes, "1", "0"), "an array of type <U1"),
    "complex": (lambda codes: codes.astype(complex), "an array of type complex128"),
    "nothing": (lambda codes: None, "an object of type NoneType"),
    "ragged lists": (lambda codes: [[1], *codes.tolist()], "an object of type list"),
}


@pytest.mark.parametrize(("form", "found"), REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_ends_the_run_with_one_line_and_leaves_no_file(form, found, train, tmp_path):
    with pytest.raises(ValueError) as caught:
        train(form)
    expected = f"boolean, 0/1 or -1/+1 codes of shape (20, {BITS}), but it returned {found}"
    assert str(caught.value) == f"method wrong: encode must return {expected}"
    assert caught.value.__notes__ == [f"tiny/wrong/{BITS} bits/seed 0"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_forgotten_return_is_named(train):
    class Forgets(Returns):
        encode, encode_block = HashingMethod.encode, lambda self, items: None

    with pytest.raises(ValueError, match="it returned an object of type NoneType"):
        train(None, Forgets)


@pytest.mark.parametrize("asked", ["labels", "affinity"])
def test_a_method_without_supervision_is_given_none(train, asked):
    class Peeks(Returns):
        def fit(self, training_set):
            if asked == "affinity":
                training_set.affinity(np.arange(2), np.arange(2))
            assert training_set.labels is None
            raise ValueError("no labels")

    with pytest.raises(ValueError, match="no labels" if asked == "labels" else "given no affinities"):
        train(None, Peeks)


def test_what_json_cannot_express_is_logged_as_null(train):
    class Logs(Returns):
        def fit(self, training_set):
            training_set.log({"objective": float("nan"), "seconds": 0.5})
            return self

    line = (train(None, Logs) / "training.jsonl").read_text()
    assert json.loads(line, parse_constant=pytest.fail) == {"objective": None, "seconds": 0.5}


def test_scalars_of_libraries_are_logged_as_numbers_and_what_is_none_is_refused_by_key(train):
    class Logs(Returns):
        last = None

        def fit(self, training_set):
            line = {"a": np.float32(0.5), "b": np.int64(3), "c": torch.tensor(2.0), "d": np.float64("inf")}
            training_set.log(line | {"last": self.last})
            return self

    class LogsArray(Logs):
        last = np.zeros(2)

    line = json.loads((train(None, Logs) / "training.jsonl").read_text())
    assert line == {"a": 0.5, "b": 3, "c": 2.0, "d": None, "last": None}
    with pytest.raises(TypeError, match=r"the record that a method logged: last: .* ndarray"):
        train(None, LogsArray)


def test_tuning_scores_the_same_codes_and_ends_with_the_same_line(protocol):
    for form in ACCEPTED.values():
        assert validation_score(method_of(form), protocol, BITS, {}, "ap", SHARES, 0) == 1.0
    with pytest.raises(ValueError, match=r"^method wrong: encode must return boolean"):
        validation_score(method_of(REFUSED["raw scores"][0]), protocol, BITS, {}, "ap", SHARES, 0)


@pytest.mark.parametrize("value", [0, 1, -1])
def test_constant_codes_are_accepted(value):
    assert np.array_equal(check_codes(np.full((3, 2), value), 3, 2, "x"), np.full((3, 2), value > 0))


def test_no_items_have_no_codes():
    assert check_codes(np.zeros((0, 5)), 0, 5, "x").shape == (0, 5)


class Learns(Returns):
    """Learns codes of the items that it is given, other ones than it encodes."""

    sees = "database labels"
    learned = staticmethod(lambda codes: ~codes)

    def fit(self, training_set):
        self.given = training_set
        return super().fit(training_set)

    def learned_codes(self):
        return self.learned(CODES[np.asarray(self.given.items).argmax(axis=1)])


def learner(learned, **attributes):
    attributes |= {"learned": staticmethod(learned), "__module__": "methods.wrong"}
    return type("Learns", (Learns,), attributes)


@pytest.fixture
def database_codes(train, monkeypatch):
    """database_codes(learned, **attributes): packed codes of the database that the adapter writes."""

    def found(learned, **attributes):
        monkeypatch.setattr(sys.modules[__name__], "method_of", lambda form: learner(learned, **attributes))
        with np.load(train(None) / "codes.npz") as archive:
            return archive["database"]

    return found


def test_learned_codes_stand_for_the_database_in_its_order(database_codes, protocol):
    found = database_codes(lambda codes: np.where(codes, -1, 1))
    assert np.array_equal(found, np.packbits(~CODES[LABELS[protocol.split.database]], axis=1))


@pytest.mark.parametrize(
    ("learned", "sees"), [(lambda codes: None, "database labels"), (lambda codes: ~codes, "training set")]
)
def test_without_learned_codes_or_with_those_of_a_training_set_the_database_is_encoded(
    database_codes, protocol, learned, sees
):
    assert np.array_equal(database_codes(learned, sees=sees), packed(protocol.split.database))


def test_learned_codes_are_checked_as_those_of_encode(database_codes):
    words = rf"method wrong: learned_codes must return .* an array of shape \(29, {BITS}\)"
    with pytest.raises(ValueError, match=words):
        database_codes(lambda codes: codes[:-1])


def test_a_method_that_sees_the_database_is_given_its_items_labels_and_affinity(train, protocol, monkeypatch):
    given = []
    of = learner(lambda codes: None)
    of.learned_codes, of.supervision = lambda self: None, "labels"
    of.fit = lambda self, training_set: given.append(training_set) or self
    monkeypatch.setattr(sys.modules[__name__], "method_of", lambda form: of)
    train(None)
    rows = protocol.split.database
    (training_set,) = given
    assert np.array_equal(training_set.items, protocol.items[rows])
    assert np.array_equal(training_set.labels, LABELS[rows])
    pairs = training_set.affinity(np.arange(30), np.arange(30))
    assert np.array_equal(pairs, LABELS[rows][:, None] == LABELS[rows])


def test_tuning_gives_it_parts_of_the_training_set_and_encodes_both_validation_parts(protocol):
    """Learned codes are of the part that was fitted, and here the complement of the right ones."""
    of, seen = learner(lambda codes: ~codes), []
    fit = of.fit
    of.fit = lambda self, training_set: seen.append(len(training_set)) or fit(self, training_set)
    assert validation_score(of, protocol, BITS, {}, "ap", SHARES, 0) == 1.0
    assert seen == [9]


def test_a_method_that_calls_exit_in_fit_or_encode_ends_its_run_with_one_line(train, protocol):
    for form in (lambda codes: sys.exit(0), lambda codes: sys.exit("enough")):
        with pytest.raises(ValueError, match=r"^method wrong calls sys.exit\((0|'enough')\) instead of"):
            train(form)
        with pytest.raises(ValueError, match=r"^method wrong calls sys.exit"):
            validation_score(method_of(form), protocol, BITS, {}, "ap", SHARES, 0)


def test_compiling_ends_with_the_line_of_a_method_that_cannot_be_imported(monkeypatch):
    """tests/test_plugins.py has what can be wrong with a file."""

    def broken(name):
        raise ValueError(f"{name}.py: cannot be imported: why")

    started = SimpleNamespace(start=lambda: None)
    processes = SimpleNamespace(Process=lambda target: started)
    monkeypatch.setattr(compiling.multiprocessing, "get_context", lambda kind: processes)
    monkeypatch.setattr(compiling, "load_class", broken)
    with pytest.raises(SystemExit, match=r"^error: \w+\.py: cannot be imported: why$"):
        compiling.main()
