"""A database in many files: the same bytes as the arrays in one go, in every format and however it is cut."""

import sys
import tracemalloc

import numpy as np
import part_databases as databases
import pytest
from part_databases import FORMATS, arrays, assert_same_bytes, needed, whole, write

from tiebench.counting import distributed, part_files
from tiebench.counting.distributed import count_parts


def count(made, paths, **options):
    found, labels = paths
    return count_parts(made["query"], made["query_labels"], found, 21, database_labels=labels, **options)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("labels", ["classes", "text", "several"])
def test_every_format_counts_the_same_bytes(tmp_path, form, labels, monkeypatch):
    made = arrays(labels=labels)
    if form == "zarr" and labels == "text":
        made["database_labels"] = made["database_labels"].astype(np.dtypes.StringDType())
    if labels == "several":
        made["database_labels"][300:] = 0  # later parts lack levels
    paths = write(tmp_path, made, form)
    for part_items, block_bytes in ((1 << 20, 1 << 20), (130, 400), (1, 1)):
        monkeypatch.setattr(distributed, "_BLOCK_BYTES", block_bytes)
        assert_same_bytes(count(made, paths, part_items=part_items), whole(made))


def test_queries_may_be_unpacked_and_names_others(tmp_path):
    made = arrays()
    np.savez(tmp_path / "a.npz", codes=made["database"], classes=made["database_labels"])
    query = np.unpackbits(made["query"], axis=1, count=21)
    found = count_parts(
        query.tolist(), list(made["query_labels"]), str(tmp_path / "a.npz"), names=("codes", "classes")
    )
    assert_same_bytes(found, whole(made))


@pytest.mark.parametrize("form", ["npz", "npy", "parquet"])
def test_files_behind_a_url_are_read_by_fsspec(tmp_path, form):
    fsspec = needed("fsspec")
    made = arrays()
    write(tmp_path, made, form)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/database", recursive=True)
    try:
        urls = "memory://database/part*", None
        if form == "npy":
            urls = "memory://database/part*.codes.npy", "memory://database/part*.labels.npy"
        assert_same_bytes(count(made, urls, part_items=130), whole(made))
        with pytest.raises(ValueError, match="no file matches memory://database/other"):
            count(made, ("memory://database/other*.npz", None))
        with pytest.raises(ValueError, match=r"memory://nothing\.npz: "):
            count(made, ("memory://nothing.npz", None))
    finally:
        memory.rm("/database", recursive=True)


@pytest.mark.parametrize(
    ("edges", "most", "expected"),
    [
        (range(11), 4, [0, 4, 8, 10]),
        (range(11), 10, [0, 10]),
        ([0, 5, 6, 20, 21], 6, [0, 6, 20, 21]),  # 6 to 20 cannot be cut
        ([0, 0, 3, 3, 3, 7, 7], 3, [0, 3, 7]),  # empty row groups
        ([0, 0], 3, [0]),
        ((0, 9), 1, [0, 9]),
    ],
)
def test_files_are_cut_where_they_can_be(edges, most, expected):
    file = part_files.PartFile("a.npz")
    found = list(distributed._cut(file, distributed._Described(edges, "x"), most))
    assert [0, *(part.end for part in found)] == expected
    assert [part.begin for part in found] == expected[:-1]


def test_files_without_items_are_allowed_beside_others(tmp_path):
    made = arrays()
    paths = write(tmp_path, made, "npz")
    np.savez(tmp_path / "part9.npz", database=made["database"][:0], database_labels=np.zeros(0, int))
    assert_same_bytes(count(made, paths), whole(made))
    with pytest.raises(ValueError, match=r"part9\.npz: there are no codes"):
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


# -- what is kept -------------------------------------------------------------------------------------------


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
            count(made, paths, part_items=100, keep=keep, progress=stopping_after(stop))
        assert len(read) == stop
    seen = []
    assert_same_bytes(count(made, paths, part_items=100, keep=keep, progress=seen.append), whole(made))
    assert len(read) == len(set(read)) and sum(end - begin for _, begin, end in read) == 1000
    assert seen[-1] == (len(read), len(read), 1000, 1000, 5)
    read.clear()
    assert_same_bytes(count(made, paths, part_items=100, keep=keep), whole(made))
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


@pytest.mark.parametrize("damage", ["cut", "other items", "other queries", "negative", "other arrays"])
def test_a_damaged_count_is_an_error_that_names_it(tmp_path, damage):
    made = arrays()
    paths, keep = write(tmp_path, made, "npz"), tmp_path / "kept"
    count(made, paths, keep=keep)
    file = sorted(keep.glob("*.npz"))[1]
    with np.load(file) as kept:
        found = {name: kept[name] for name in kept.files}
    if damage == "other items":
        found["counts"][:, 0, 3] += 1
    elif damage == "other queries":
        found["counts"] = found["counts"][1:]
    elif damage == "negative":
        found["counts"][0, 0, :2] += np.array([-1000, 1000])
    elif damage == "other arrays":
        found["more"] = np.zeros(1)
    np.savez(file, **found)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ValueError, match=file.name) as error:
        count(made, paths, keep=keep)
    assert "\n" not in str(error.value)


def test_a_file_that_changes_while_it_is_counted_is_an_error(tmp_path, monkeypatch):
    made = arrays()
    paths = write(tmp_path, made, "npz")
    identities = iter([*"abc", *"ab", "d"])
    monkeypatch.setattr(part_files, "identity", lambda file: next(identities))
    with pytest.raises(ValueError, match=r"part2\.npz: the file has changed since the count began"):
        count(made, paths)


# -- errors -------------------------------------------------------------------------------------------------


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


CODES, CLASSES = np.zeros((50, 3), np.uint8), np.zeros(50, int)
FAULTS = [
    (
        "npz",
        npz(database=np.zeros((50, 4), np.uint8)),
        "database must be packed codes, uint8 of shape (n, 3)",
    ),
    ("npz", npz(database=np.zeros((50, 3), int)), "database must be packed codes, uint8 of shape (n, 3)"),
    ("npz", npz(database=CODES + 1), "has bits set beyond bit 21"),
    ("npz", npz(database_labels=None), "it lacks 'database_labels'; did you mean 'database'?"),
    ("npz", npz(database=None, databse=CODES), "it lacks 'database'; did you mean 'databse'?"),
    ("npz", npz(database_labels=np.zeros(49, int)), "there are 50 codes but 49 labels"),
    (
        "npz",
        npz(database_labels=np.zeros((50, 6), int)),
        "database_labels must be of shape (n,), as the labels",
    ),
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
]


@pytest.mark.parametrize(("form", "damage", "message"), FAULTS)
def test_a_wrong_file_is_an_error_of_one_line_that_names_it(tmp_path, form, damage, message):
    made = arrays()
    paths = write(tmp_path, made, form)
    damage(tmp_path, made)
    with pytest.raises(ValueError) as error:
        count(made, paths)
    line = str(error.value)
    assert message in line and line.startswith(str(tmp_path / "part1")) and "\n" not in line
    assert line.count("part1") == 1


def of_parquet(change):
    def damage(folder, made):
        from pyarrow import parquet

        parquet.write_table(change(parquet.read_table(folder / "part1.parquet")), folder / "part1.parquet")

    return damage


def column(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, [values(table[name])])


def longer(column):
    return [*column.to_pylist()[:-1], b"four"]


def with_null(column):
    return [*column.to_pylist()[:-1], None]


PARQUET_FAULTS = [
    (lambda table: table.drop_columns(["database_labels"]), "it lacks the column 'database_labels'; did you"),
    (
        lambda table: table.rename_columns(["o", "l", "codes"]),
        "it lacks the column 'database'; known: o, l, c",
    ),
    (column("database_labels", with_null), "the column 'database_labels' has 1 null values"),
    (column("database", longer), "the column 'database' has rows of 3 to 4 values"),
    (column("database", lambda c: [b[:2] for b in c.to_pylist()]), "database must be packed codes, uint8 of"),
    (column("database", lambda c: [[1, 2, None]] * len(c)), "has null values inside its lists"),
    (column("database", lambda c: [[1, 2, 3]] * len(c)), "not int64"),
    (column("database_labels", lambda c: [[1, 0]] * len(c)), "database_labels must be of shape (n,)"),
]


@pytest.mark.parametrize(("change", "message"), PARQUET_FAULTS)
def test_a_wrong_parquet_file_is_an_error_that_names_it(tmp_path, change, message):
    needed("pyarrow")
    test_a_wrong_file_is_an_error_of_one_line_that_names_it(tmp_path, "parquet", of_parquet(change), message)


def without_a_chunk(folder, made):
    (folder / "part1.zarr" / "database" / "c" / "1" / "0").unlink()


def without_labels(folder, made):
    import zarr

    del zarr.open_group(folder / "part1.zarr")["database_labels"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (without_a_chunk, "database has 3 of its 4 chunks"),
        (without_labels, "it lacks the array 'database_lab"),
    ],
)
def test_a_wrong_zarr_group_is_an_error_that_names_it(tmp_path, damage, message):
    needed("zarr")
    test_a_wrong_file_is_an_error_of_one_line_that_names_it(tmp_path, "zarr", damage, message)


@pytest.mark.parametrize(
    ("paths", "labels", "message"),
    [
        (["part*.npz"], None, "part0.codes.npz"),
        (["none*.npz"], None, "no file matches none*.npz"),
        (["part0.cods.npy"], None, "part0.cods.npy: no such file; did you mean 'part0.codes.npy'?"),
        (["nowhere/part0.npz"], None, "nowhere/part0.npz: no such file"),
        (["part*.codes.npy"], None, "part0.codes.npy has no labels: also name the .npy files of labels"),
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
    with pytest.raises(ValueError) as error:
        count(made, (paths, labels))
    assert message in str(error.value) and "\n" not in str(error.value)


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
    with pytest.raises(ValueError, match=r"do not say which labels are of which codes, as .*y\.labels\.npy"):
        count(made, ("part*.codes.npy", ["y.labels.npy", "x.labels.npy"]))


@pytest.mark.parametrize(("package", "form"), [("pyarrow", "parquet"), ("zarr", "zarr")])
def test_a_missing_package_is_named(tmp_path, monkeypatch, package, form):
    monkeypatch.setitem(sys.modules, package, None)
    file = tmp_path / f"a.{form}"
    file.mkdir() if form == "zarr" else file.touch()
    with pytest.raises(ValueError, match=rf"a\.{form}: reading it needs {package} .*tiebench\[distributed\]"):
        count(arrays(), (str(file), None))


def test_missing_fsspec_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ValueError, match=r"s3://a/b\.npz: reading it needs fsspec .*tiebench\[distributed\]"):
        count(arrays(), ("s3://a/b.npz", None))


def test_the_oracle_itself_is_right():
    """Two items by hand, so that `whole` cannot hide an error that both sides share."""
    made = {
        "query": databases.pack([[1, 0, 1]]),
        "query_labels": np.array([4]),
        "database": databases.pack([[1, 1, 1], [0, 1, 0]]),
        "database_labels": np.array([4, 5]),
    }
    assert whole(made, 3).counts.tolist() == [[[0, 0, 0, 1], [0, 1, 0, 0]]]
