"""A database in many files: the same bytes as the arrays in one go, in every format and however it is cut."""

import sys
import tracemalloc

import numpy as np
import pytest
from part_databases import FORMATS, arrays, assert_same_bytes, count, needed, whole, write
from refusals import refused

import tiebench
from tiebench.counting import distributed, part_files
from tiebench.counting.distributed import count_parts


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("labels", ["classes", "text", "several"])
def test_every_format_counts_the_same_bytes(tmp_path, form, labels, monkeypatch):
    made = arrays(labels=labels)
    if form == "zarr" and labels == "text":
        made["database_labels"] = made["database_labels"].astype(np.dtypes.StringDType())
    if labels == "several":
        made["database_labels"][100:] = 0  # later parts lack levels
    paths = write(tmp_path, made, form)
    for part_items, block_bytes in ((1 << 20, 1 << 20), (70, 400), (1, 1)):
        monkeypatch.setattr(distributed, "_BLOCK_BYTES", block_bytes)
        assert_same_bytes(count(made, paths, part_items=part_items), whole(made))


def test_queries_may_be_unpacked_and_names_others(tmp_path):
    made = arrays()
    np.savez(tmp_path / "a.npz", codes=made["database"], classes=made["database_labels"])
    queries = np.unpackbits(made["query"], axis=1, count=21).tolist(), list(made["query_labels"])
    for path in (str(tmp_path / "a.npz"), tmp_path / "a.npz"):
        assert_same_bytes(count_parts(*queries, path, names=("codes", "classes")), whole(made))


@pytest.mark.parametrize("form", ["npz", "npy", "parquet"])
def test_files_behind_a_url_are_read_by_fsspec(tmp_path, form):
    fsspec = needed("fsspec")
    made = arrays()
    write(tmp_path, made, form)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/database", recursive=True)
    try:
        part = "memory://database/part*"
        urls = (f"{part}.codes.npy", f"{part}.labels.npy") if form == "npy" else (part, None)
        assert_same_bytes(count(made, urls, part_items=70), whole(made))
        with refused("no file matches memory://database/other"):
            count(made, ("memory://database/other*.npz", None))
        with refused("memory://nothing.npz: "):
            count(made, ("memory://nothing.npz", None))
    finally:
        memory.rm("/database", recursive=True)


def test_files_without_items_are_allowed_beside_others(tmp_path):
    made = arrays()
    paths = write(tmp_path, made, "npz")
    np.savez(tmp_path / "part9.npz", database=made["database"][:0], database_labels=np.zeros(0, int))
    assert_same_bytes(count(made, paths), whole(made))
    with refused("part9.npz: there are no codes"):
        count(made, (str(tmp_path / "part9.npz"), None))


def test_memory_holds_a_block_and_not_a_file(tmp_path, monkeypatch):
    """Peak of everything that Python and NumPy allocate."""
    made = arrays(items=400_000, bits=21, queries=2)
    size = made["database"].nbytes + made["database_labels"].nbytes
    monkeypatch.setattr(distributed, "_BLOCK_BYTES", 1 << 16)
    for form in ("npz", "npz compressed", "npy"):
        folder = tmp_path / form.replace(" ", "-")
        folder.mkdir()
        paths = write(folder, made, form, files=1)
        count(made, paths)  # kernels are loaded
        tracemalloc.start()
        count(made, paths)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < size / 4, form


@pytest.fixture
def read(monkeypatch):
    """(file, begin, end) of every part that is read, in order."""
    found = []

    def noted(part, queries):
        found.append((part.file.codes.rsplit("/", 1)[-1], part.begin, part.end))
        return original(part, queries)

    original = distributed._count
    monkeypatch.setattr(distributed, "_count", noted)
    return found


def stopping_after(parts):
    def progress(now):
        if now.parts == parts:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_count_resumes_and_reads_nothing_twice(tmp_path, read):
    made = arrays()
    paths, keep = write(tmp_path, made, "npy"), tmp_path / "kept"
    for stop in (2, 5):
        with pytest.raises(KeyboardInterrupt):
            count(made, paths, part_items=30, keep=keep, progress=stopping_after(stop))
        assert len(read) == stop
    seen = []
    assert_same_bytes(count(made, paths, part_items=30, keep=keep, progress=seen.append), whole(made))
    assert len(read) == len(set(read)) == 5 + 3 + 3 and all(end - begin <= 30 for _, begin, end in read)
    assert seen[-1] == (11, 11, 300, 300, 5)
    read.clear()
    assert_same_bytes(count(made, paths, part_items=30, keep=keep), whole(made))
    assert read == []


def test_what_is_kept_is_of_these_queries_and_of_unchanged_files(tmp_path, read):
    made = arrays()
    paths, keep = write(tmp_path, made, "npz"), tmp_path / "kept"
    count(made, paths, keep=keep)
    others = made | {"query_labels": made["query_labels"][::-1].copy()}
    assert_same_bytes(count(others, paths, keep=keep), whole(others))
    assert len(read) == 6
    with np.load(tmp_path / "part1.npz") as kept:
        changed = {name: kept[name] for name in kept.files}
    changed["database"] ^= 0x80
    first = (len(np.load(tmp_path / "part0.npz")["database"]), len(changed["database"]))
    np.savez(tmp_path / "part1.npz", **changed)
    made["database"][first[0] : sum(first)] ^= 0x80
    read.clear()
    assert_same_bytes(count(made, paths, keep=keep), whole(made))
    assert [file for file, _, _ in read] == ["part1.npz"]
    read.clear()
    more = arrays(items=50, seed=8)
    np.savez(tmp_path / "part7.npz", database=more["database"], database_labels=more["database_labels"])
    both = made | {name: np.concatenate([made[name], more[name]]) for name in ("database", "database_labels")}
    assert_same_bytes(count(both, paths, keep=keep), whole(both))
    assert [file for file, _, _ in read] == ["part7.npz"]


def counts(change):
    return lambda found: found | {"counts": change(found["counts"])}


@pytest.mark.parametrize(
    "damage",
    [
        counts(lambda made: made + (np.arange(22) == 3)),  # other items
        counts(lambda made: made[1:]),  # other queries
        counts(lambda made: made + 1000 * (np.arange(22) == 1) - 1000 * (np.arange(22) == 0)),
        lambda found: found | {"more": np.zeros(1)},
        None,  # cut short
    ],
)
def test_a_damaged_count_is_an_error_that_names_it(tmp_path, damage):
    made = arrays()
    paths, keep = write(tmp_path, made, "npz"), tmp_path / "kept"
    count(made, paths, keep=keep)
    file = sorted(keep.glob("*.npz"))[1]
    with np.load(file) as kept:
        found = {name: kept[name] for name in kept.files}
    if damage is None:
        file.write_bytes(file.read_bytes()[:-40])
    else:
        np.savez(file, **damage(found))
    with refused(file.name):
        count(made, paths, keep=keep)


def test_a_file_that_changes_while_it_is_counted_is_an_error(tmp_path, monkeypatch):
    made = arrays()
    paths = write(tmp_path, made, "npz")
    identities = iter([*"abc", *"ab", "d"])
    monkeypatch.setattr(part_files, "identity", lambda file: next(identities))
    with refused("part2.npz: the file has changed since the count began"):
        count(made, paths)


def npz(**changes):
    def damage(folder, made):
        kept = {"database": made["database"][:50], "database_labels": made["database_labels"][:50]} | changes
        np.savez(folder / "part1.npz", **{name: value for name, value in kept.items() if value is not None})

    return damage


def npy(codes=None, labels=None):
    def damage(folder, made):
        for name, array in (("codes", codes), ("labels", labels)):
            if array is not None:
                np.save(folder / f"part1.{name}.npy", array)

    return damage


def cut(folder, made):
    file = folder / "part1.codes.npy"
    file.write_bytes(file.read_bytes()[:-5])


def text(folder, made):
    (folder / "part1.npz").write_text("no")


def flipped(folder, made):
    file = folder / "part1.npz"
    data = bytearray(file.read_bytes())
    data[400] ^= 1
    file.write_bytes(bytes(data))


def of_parquet(change):
    def damage(folder, made):
        from pyarrow import parquet

        parquet.write_table(change(parquet.read_table(folder / "part1.parquet")), folder / "part1.parquet")

    return damage


def column(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, [values(table[name])])


def ending(last):
    """A column whose last value is this one."""
    return lambda column: [*column.to_pylist()[:-1], last]


PARQUET_FAULTS = [
    (lambda table: table.drop_columns(["database_labels"]), "it lacks the column 'database_labels'; did you"),
    (lambda table: table.rename_columns(["o", "l", "codes"]), "it lacks the column 'database'; known: o, l"),
    (column("database_labels", ending(None)), "the column 'database_labels' has 1 null values"),
    (column("database", ending(b"four")), "the column 'database' has rows of 3 to 4 values"),
    (column("database", lambda c: [b[:2] for b in c.to_pylist()]), "database must be packed codes, uint8 of"),
    (column("database", lambda c: [[1, 2, None]] * len(c)), "has null values inside its lists"),
    (column("database", lambda c: [[1, 2, 3]] * len(c)), "not int64"),
    (column("database_labels", lambda c: [[1, 0]] * len(c)), "database_labels must be of shape (n,)"),
]


def without_a_chunk(folder, made):
    (folder / "part1.zarr" / "database" / "c" / "1" / "0").unlink()


def without_labels(folder, made):
    import zarr

    del zarr.open_group(folder / "part1.zarr")["database_labels"]


CODES, CLASSES = np.zeros((50, 3), np.uint8), np.zeros(50, int)
FAULTS = [
    ("npz", npz(database=np.zeros((50, 4), np.uint8)), "must be packed codes, uint8 of shape (n, 3)"),
    ("npz", npz(database=np.zeros((50, 3), int)), "database must be packed codes, uint8 of shape (n, 3)"),
    ("npz", npz(database=CODES + 1), "has bits set beyond bit 21"),
    ("npz", npz(database_labels=None), "it lacks 'database_labels'; did you mean 'database'?"),
    ("npz", npz(database=None, databse=CODES), "it lacks 'database'; did you mean 'databse'?"),
    ("npz", npz(database_labels=np.zeros(49, int)), "there are 50 codes but 49 labels"),
    ("npz", npz(database_labels=np.zeros((50, 6), int)), "database_labels must be of shape (n,), as the"),
    ("npz", npz(database_labels=np.full(50, 0.5)), "labels[0] is 0.5; it must be an integer"),
    ("npz", npz(database_labels=np.array(["cat"] * 50)), "database labels are strings but query labels are"),
    ("npz", npz(database_labels=np.array([None] * 50)), "database_labels holds pickled Python objects"),
    ("npz", npz(database=np.asfortranarray(CODES + 0)), "database is stored column by column"),
    ("npz", text, "File is not a zip file"),
    ("npz", flipped, "CRC"),
    ("npy", npy(codes=CODES[:, :2]), "the array must be packed codes, uint8 of shape (n, 3)"),
    ("npy", npy(labels=CLASSES), "labels"),
    ("npy", npy(codes=np.uint8(3)), "the array has the shape ()"),
    ("npy", cut, "the length of the array does not fit its shape"),
    *(("parquet", of_parquet(change), message) for change, message in PARQUET_FAULTS),
    ("zarr", without_a_chunk, "database has 1 of its 2 chunks"),
    ("zarr", without_labels, "it lacks the array 'database_lab"),
]


@pytest.mark.parametrize(("form", "damage", "message"), FAULTS)
def test_a_wrong_file_is_an_error_of_one_line_that_names_it(tmp_path, form, damage, message):
    made = arrays()
    paths = write(tmp_path, made, form)
    damage(tmp_path, made)
    with refused(message) as error:
        count(made, paths)
    assert str(error.value).startswith(str(tmp_path / "part1")) and str(error.value).count("part1") == 1


@pytest.mark.parametrize(
    ("paths", "labels", "message"),
    [
        (["part*.npz"], None, "part0.codes.npz"),
        (["none*.npz"], None, "no file matches none*.npz"),
        (["part0.cods.npy"], None, "part0.cods.npy: no such file; did you mean 'part0.codes.npy'?"),
        (["nowhere/part0.npz"], None, "nowhere/part0.npz: no such file"),
        (
            ["part*.codes.npy"],
            None,
            "part0.codes.npy has no labels: give --labels",
        ),
        (["part*.codes.npy"], "part1.labels.npy", "there are 3 .npy files of codes, from "),
        (["part*.codes.npy", "part1.codes.npy"], "part*.labels.npy", "part1.codes.npy is given twice"),
        (["part1.codes.npy", "link.npy"], ["part1.labels.npy"] * 2, "part1.codes.npy is given twice"),
        ([], None, "the list of files of the database is empty"),
        (["other.txt"], None, "other.txt: files of a database are .npy, .npz, .parquet, .zarr, not .txt"),
        (["part*.codes.npy"], "other.txt", "other.txt: files of a database are"),
        (["unknown://a.npz"], None, "unknown://a.npz: Protocol not known: unknown"),
    ],
)
def test_paths_that_name_no_database_are_refused(tmp_path, monkeypatch, paths, labels, message):
    needed("fsspec")
    made = arrays()
    write(tmp_path, made, "npy")
    (tmp_path / "other.txt").touch()
    (tmp_path / "link.npy").symlink_to(tmp_path / "part1.codes.npy")
    monkeypatch.chdir(tmp_path)
    if paths == ["part*.npz"]:
        (tmp_path / "part0.codes.npz").touch()
    with refused(message):
        count(made, (paths, labels))


@pytest.mark.parametrize(
    ("codes", "labels"),
    [
        (["part10.codes.npy", "part9.codes.npy", "part1.codes.npy"], "part*.labels.npy"),
        ("part*.codes.npy", ["part1.labels.npy", "part9.labels.npy", "part10.labels.npy"]),
        ("part*.codes.npy", "labels-*.npy"),  # 001, 009, 010 beside 1, 10, 9
        (["part9.codes.npy", "part1.codes.npy", "part10.codes.npy"], ["b.npy", "c.npy", "a.npy"]),
    ],
)
def test_labels_are_those_of_the_codes_whatever_the_order(tmp_path, monkeypatch, codes, labels):
    made, monkey = arrays(items=300), {1: "c", 9: "b", 10: "a"}
    monkeypatch.chdir(tmp_path)
    for part, number in enumerate(monkey):
        rows = slice(100 * part, 100 * part + 100)
        np.save(f"part{number}.codes.npy", made["database"][rows])
        for name in (f"part{number}.labels", f"labels-{number:03}", monkey[number]):
            np.save(f"{name}.npy", made["database_labels"][rows])
    assert_same_bytes(count(made, (codes, labels)), whole(made))


def test_labels_that_no_name_and_no_order_gives_to_codes_are_refused(tmp_path, monkeypatch):
    made = arrays(items=200)
    monkeypatch.chdir(tmp_path)
    for name in ("part1.codes", "part2.codes", "x.labels", "y.labels"):
        ending = "database_labels" if "labels" in name else "database"
        np.save(f"{name}.npy", made[ending][:100])
    with refused(pattern=r"do not say which labels are of which codes, as .*y\.labels\.npy"):
        count(made, ("part*.codes.npy", ["y.labels.npy", "x.labels.npy"]))


@pytest.mark.parametrize(
    ("package", "path"), [("pyarrow", "a.parquet"), ("zarr", "a.zarr"), ("fsspec", "s3://a/b.npz")]
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, package, path):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.parquet").touch()
    with refused(f"{path}: reading it needs a package (", f": pip install {package}"):
        count(arrays(), (path, None))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (ModuleNotFoundError("No module named 'tiebench'"), "cannot import tiebench: No module named"),
        ("0.1", "has tiebench 0.1, this process"),
    ],
)
def test_a_worker_without_this_version_is_named_before_anything_waits_for_it(answer, message):
    class Client:
        def run(self, function, *given, on_error):
            assert function(*given) == tiebench.__version__ and on_error == "return"
            return {"tcp://a:1": tiebench.__version__, "tcp://b:2": answer}

    with refused(f"worker tcp://b:2 {message}"):
        distributed.count_parts(np.eye(8, dtype=np.uint8), np.arange(8), "a.npz", client=Client())
