"""Codes as SQL, in a real PostgreSQL, and its neighbours beside those that TieBench ranks."""

import re
import shutil
from pathlib import Path

import numpy as np
import postgresql
import pytest
from refusals import refused
from test_neighbours import made

from tiebench.codes.packing import pack
from tiebench.search.export import write_sql
from tiebench.search.neighbours import nearest

pytestmark = pytest.mark.thorough

PLAIN = """SELECT q.query, n.item, n.distance FROM {table}_query AS q CROSS JOIN LATERAL (
  SELECT item, bit_count(code # q.code) AS distance FROM {table} ORDER BY distance, item LIMIT 10) AS n
  ORDER BY q.query, n.distance, n.item"""


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture(scope="module")
def server():
    folder = postgresql.programs()
    if folder is None:
        pytest.skip("no PostgreSQL: install Debian's postgresql, or pgserver from PyPI")
    with postgresql.server(folder) as running:
        yield running


@pytest.fixture
def load(server, tmp_path):
    """Export, and run the script with psql as its comments say."""

    def load(*codes, table="codes", **options):
        file = tmp_path / "codes.sql"
        write_sql(file, *codes, table=table, **options)
        for name in (table, f"{table}_query"):
            server.run("--command", f"DROP TABLE IF EXISTS {quoted(name)}")
        # A copy: the server's user may not read the test's folder.
        copy = Path(server.data, "codes.sql")
        shutil.copy(file, copy)
        copy.chmod(0o644)
        server.run("--file", str(copy))
        return file.read_text(encoding="utf-8")

    return load


@pytest.mark.parametrize(("bits", "inserts"), [(1, True), (8, False), (13, False), (64, True), (100, False)])
def test_postgresql_finds_the_neighbours_that_tiebench_ranks(server, load, bits, inserts):
    query, database = made(bits, items=2500)  # more rows than one INSERT has
    load(pack(query), pack(database), bits, inserts=inserts)
    found = server.rows(PLAIN.format(table="codes"))
    expected = [
        (str(row), str(item), str(distance))
        for row, one in enumerate(nearest(pack(query), pack(database), bits, 10))
        for item, distance in zip(one.items.tolist(), one.distances.tolist())
    ]
    assert found == expected
    assert server.rows("SELECT count(*) FROM codes") == [("2500",)]
    # Bit i of a code is character i of its string.
    strings = [code for (code,) in server.rows("SELECT code FROM codes ORDER BY item")]
    assert strings == ["".join(map(str, code)) for code in database.tolist()]
    ((kind,),) = server.rows("SELECT DISTINCT pg_typeof(code) || '' || length(code) FROM codes")
    assert kind == f"bit{bits}"


def test_the_queries_in_the_comments_run(server, load):
    query, database = made(13)
    text = load(pack(query), pack(database), 13, table="mine")
    comments = "\n".join(line.removeprefix("--").strip() for line in text.splitlines() if line[:2] == "--")
    statements = [part + ";" for part in re.findall(r"^(SELECT [^;]+);", comments, re.MULTILINE)]
    assert len(statements) == 3
    (one,) = nearest(pack(query[:1]), pack(database), 13, 10)
    first = [(str(item), str(distance)) for item, distance in zip(one.items, one.distances)]
    assert server.rows(statements[0]) == first
    assert [row[1:] for row in server.rows(statements[1]) if row[0] == "0"] == first
    ties = statements[0].replace("distance, item LIMIT 10", "distance FETCH FIRST 10 ROWS WITH TIES")
    (whole,) = nearest(pack(query[:1]), pack(database), 13, 10, whole_ties=True)
    assert {int(item) for item, _ in server.rows(ties)} == set(whole.items.tolist())


def test_the_operator_of_pgvector_gives_the_same_distances(server, load):
    """Runs where the server has pgvector 0.7 or later; earlier ones have no `<~>`."""
    version = server.rows("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
    if not version or tuple(map(int, version[0][0].split(".")))[:2] < (0, 7):
        pytest.skip(f"no PostgreSQL with pgvector 0.7 or later: {version or 'none'}")
    server.run("--command", "CREATE EXTENSION IF NOT EXISTS vector")
    for bits in (7, 13, 64):
        query, database = made(bits)
        text = load(pack(query), pack(database), bits)
        differing = "SELECT count(*) FROM codes, codes_query q WHERE codes.code <~> q.code <> "
        assert server.rows(differing + "bit_count(codes.code # q.code)") == [("0",)]
        index = re.search(r"CREATE INDEX[^;]+;", text)[0]
        server.run("--command", index)
        searched = re.search(r"SELECT item FROM codes ORDER BY code <~>[^;]+;", text)[0]
        plain = f"SET enable_indexscan = off; {searched}"
        (one,) = nearest(pack(query[:1]), pack(database), bits, 10)
        distances = (query[0] != database).sum(axis=1)
        assert sorted(distances[[int(item) for (item,) in server.rows(plain)]]) == one.distances.tolist()
        explained = server.run("--command", f"SET enable_seqscan = off; EXPLAIN {searched}")
        assert "Index Scan" in explained  # the hint makes an index that the query uses


def test_names_and_labels_arrive_whatever_they_contain(server, load):
    names = ["a b", "tab\there", "line\nfeed", "back\\slash", "o'clock", "é\r", "\\N", "\\."]
    query, database = made(9, 2, len(names))
    tags = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], *[[0, 1, 0]] * 5])
    given = pack(query), pack(database), 9
    encoded = [name.encode().hex() for name in names]
    for inserts in (False, True):
        load(*given, database_ids=names, query_labels=tags[:2], database_labels=tags, inserts=inserts)
        columns = "encode(convert_to(item, 'UTF8'), 'hex'), array_to_string(labels, ' ')"
        found = server.rows(f"SELECT {columns} FROM codes")
        expected = [" ".join(map(str, np.flatnonzero(row))) for row in tags]
        assert sorted(found) == sorted(zip(encoded, expected))
        load(*given, query_labels=["x", "y"], database_labels=names, inserts=inserts)
        found = server.rows("SELECT encode(convert_to(label, 'UTF8'), 'hex') FROM codes ORDER BY item")
        assert [one for (one,) in found] == encoded
        load(*given, query_labels=[-1, 2], database_labels=np.arange(8), inserts=inserts)
        assert server.rows("SELECT query, label FROM codes_query ORDER BY query") == [("0", "-1"), ("1", "2")]


NAMES = ["select", "MixedCase", 'say "x"', "a b; --", "1st", "naïve", "x" * 57, "'", ":a \\d", "{table}"]


@pytest.mark.parametrize(
    ("table", "inserts"), [*((name, False) for name in NAMES), ('say "x"', True), (":a \\d", True)]
)
def test_any_name_of_a_table_is_that_table(server, load, table, inserts):
    query, database = made(8)
    text = load(pack(query), pack(database), 8, table=table, inserts=inserts)
    counts = [server.rows(f"SELECT count(*) FROM {quoted(name)}") for name in (table, f"{table}_query")]
    assert counts == [[(str(len(database)),)], [(str(len(query)),)]]
    listed = server.rows("SELECT encode(convert_to(tablename, 'UTF8'), 'hex') FROM pg_tables")
    assert (table.encode().hex(),) in listed and (f"{table}_query".encode().hex(),) in listed
    assert f"FROM {quoted(table)} ORDER BY distance" in text


def test_a_script_that_fails_leaves_no_table(server, tmp_path):
    query, database = made(8)
    file = tmp_path / "codes.sql"
    write_sql(file, pack(query), pack(database), 8, table="half")
    broken = Path(server.data, "broken.sql")
    broken.write_text(file.read_text().replace("COMMIT;", "SELECT 1/0;\nCOMMIT;"))
    broken.chmod(0o644)
    assert server.run("--file", str(broken), check=False).returncode != 0
    assert server.rows("SELECT to_regclass('half') IS NULL") == [("t",)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ""}, "table '': a name has one or more printable characters"),
        ({"table": "a\n; DROP TABLE b"}, "printable characters"),
        ({"table": "x" * 58}, "at most 63 bytes"),
        ({"table": "é" * 29}, "at most 63 bytes"),
        ({"database_ids": [1, 1, 2]}, "database_ids has '1' twice"),
        ({"database_ids": [1.5, 2, 3]}, "database_ids[0] is 1.5; it must be an integer"),
        ({"database_ids": [1, 2]}, "there are 3 codes but 2 database_ids"),
        ({"database_ids": np.array([1, 2, 2**64 - 1], np.uint64)}, "exceeds the integers of PostgreSQL"),
        ({"database_ids": ["a", "b", "c\0d"]}, "cannot hold the character NUL"),
        ({"database_labels": [1, 2]}, "there are 3 codes but 2 database_labels"),
        ({"database_labels": [[1, 2], [0, 0], [0, 1]]}, "database_labels[0, 1] is 2; a matrix of labels"),
    ],
)
def test_what_postgresql_could_not_take_is_refused_and_nothing_is_written(tmp_path, options, message):
    codes = np.zeros((3, 1), np.uint8)
    with refused(message):
        write_sql(tmp_path / "codes.sql", codes, codes, 8, **options)
    assert list(tmp_path.iterdir()) == []
