"""The measurement of growth: slopes of known powers, and the end of an axis."""

import pytest

from benchmarks import __main__ as command
from benchmarks import commands, fits, growth
from benchmarks.growth import AXES, BASE
from benchmarks.report import Report
from methods.base.catalogue import catalogue

SMALL = BASE._replace(items=300, dimensions=20, bits=8)


@pytest.mark.parametrize("power", [0, 1, 2.5])
def test_the_exponent_is_the_slope_of_the_upper_half(power):
    sizes = AXES["items"]
    assert growth.exponent({size: 3 * float(size) ** power for size in sizes}) == pytest.approx(
        power, abs=1e-9
    )
    # What a start costs hides the power of the lower half alone.
    middle = sizes[len(sizes) // 2]
    hidden = {size: float(max(size, middle)) ** power for size in reversed(sizes)}
    assert growth.exponent(hidden) == pytest.approx(power, abs=1e-9)


def test_an_exponent_needs_two_sizes():
    assert growth.exponent({10: 1.0}) is None
    assert growth.exponent({}) is None
    assert growth.exponent({10: 1.0, 20: 4.0}) == pytest.approx(2)


def test_an_axis_ends_where_a_training_takes_too_long_and_nothing_is_measured_twice(monkeypatch):
    asked = []

    def measure(name, size, settings, seconds):
        asked.append(size)
        return {"over": "over 7 s"} if size.items > 4000 else {"fit": float(size.items)}

    monkeypatch.setattr(growth, "in_process", measure)
    known = {}
    found = growth.climb("itq", "items", AXES["items"], {}, 7, known)
    assert found == {1000: {"fit": 1000}, 2000: {"fit": 2000}, 5000: {"over": "over 7 s"}}
    assert growth.climb("itq", "bits", (16, 32), {}, 7, known) == {16: {"fit": 2000}, 32: {"fit": 2000}}
    assert [size.items for size in asked] == [1000, 2000, 5000, 2000]  # the base once
    assert [size.bits for size in asked] == [32, 32, 32, 16]


def test_tables_have_sizes_and_exponents(monkeypatch, capsys):
    def measure(name, size, settings, seconds):
        assert settings == ({"epochs": 1} if name == "dpsh" else {})
        if name == "agh" and size.items == 5000:
            return {"refused": "agh needs fewer items"}
        if name == "dpsh" and size.items == 2000:
            return {"over": "over 7 s"}
        return {"fit": (size.items / 1000) ** 2, "encode": 0.01, "memory": 50.0}

    monkeypatch.setattr(growth, "in_process", measure)
    growth.run(Report(), True, methods=["itq", "agh", "dpsh"], axes=["items"], seconds=7)
    lines = capsys.readouterr().out.splitlines()
    assert "| `itq` | 1 | 4 | 25 | 2.0 | 1.0 |" in lines
    assert "| `agh` | 1 | 4 | refused | 2.0 | 1.0 |" in lines
    assert "| `dpsh` | 1 | over 7 s |  |  | 2.0 |" in lines
    assert "| `itq` | 0.01 | 0.01 | 0.01 |  |" in lines  # too short for an exponent
    assert "| `itq` | 50 | 50 | 50 | 0.0 |" in lines
    assert "- `agh`, 5,000 items: agh needs fewer items" in lines


def test_operations_are_of_methods_that_there_are():
    assert set(growth.OPERATIONS) <= set(catalogue())
    assert tuple(AXES) == BASE._fields == command.AXES


@pytest.mark.thorough
def test_a_training_that_takes_too_long_is_ended():
    """In LAPACK, too, where no handler of Python's would run."""
    large = BASE._replace(items=4000, dimensions=2000)
    assert fits.in_process("pcah", large, {}, 0.2) == {"over": "over 0.2 s"}


@pytest.mark.thorough
def test_a_training_within_its_seconds_is_measured():
    found = fits.in_process("itq", SMALL, {"iterations": 1}, 100)
    assert set(found) == {"fit", "encode", "memory"}
    assert found["fit"] > 0


def test_too_little_memory_ends_an_axis_and_other_errors_are_not_hidden(monkeypatch):
    def measure(*setup, **settings):
        raise errors.pop()

    monkeypatch.setattr(fits, "measure", measure)
    monkeypatch.setattr(fits.resource, "setrlimit", lambda *limit: None)
    errors = [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
    while errors:
        assert fits.within_memory("itq", SMALL, {}, 1) == {"over": "out of memory"}
    errors.append(RuntimeError("shapes differ"))
    with pytest.raises(RuntimeError, match="shapes differ"):
        fits.within_memory("itq", SMALL, {}, 1)


def test_unknown_methods_are_refused_before_anything_is_measured():
    with pytest.raises(commands.Failed, match="unknown method 'pcaf'; did you mean 'pcah'"):
        growth.run(Report(), True, methods=["pcaf"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lossses"], "unknown benchmark 'lossses'"),
        (["--output", "no/such/folder/file.md"], "no such folder: no/such/folder"),
        (["--record", "--quick", "losses"], "not those of --quick"),
        (["fits", "--axes", "bits"], "--axes is an option of growth, which is not named"),
        (["growth", "--seconds", "0"], "'0' is not a positive number of seconds"),
        (["growth", "--seconds", "nan"], "'nan' is not a positive number of seconds"),
        (["growth", "--axes", "bit"], "invalid choice: 'bit'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    last = capsys.readouterr().err.splitlines()[-1]
    assert ended.value.code == 2 and "error:" in last and said in last
