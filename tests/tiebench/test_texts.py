"""One way to read text: every reader of the project, given every spelling of a text; numbers against C."""

import ctypes
import gzip
import json
import math
import random
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from datasets.loaders import cifar10_binary, imagenet100, mirflickr, nus_wide, retrieval_file
from datasets.readers.text_items import read_text_items
from tiebench import score_run, texts
from tiebench.runs import tokens
from tiebench.splits import lists
from workflow.configuration.yaml_reader import read_settings

RUN = {"q 1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}}
QRELS = {"q 1": {"d2": 1}, "q2": {"d1": 10}}


def read_run(path):
    return score_run(path, QRELS, ["ap"]).means


def read_judgements(path):
    return score_run(RUN, path, ["ap", "ndcg"]).means


def embeddings(folder, **ids):
    """Files of a database and of queries, with their ids where these are given."""
    for side in ("database", "query"):
        np.save(folder / f"{side}.npy", np.ones((len(ids.get(side, "ab")), 2)))
        if side in ids:
            (folder / f"{side}_ids.txt").write_text("".join(f"{one}\n" for one in ids[side]))
    return sorted(path for path in folder.iterdir() if path.stem.startswith(("database", "query")))


def read_loader_judgements(path):
    files = embeddings(path.parent, database=("d1", "d2"), query=("q 1", "q2"))
    made = retrieval_file.load([*files, path], path.parent)
    return made.given_split.tolist(), np.load(path.parent / "judgements.npy").tolist()


def read_ids(path):
    (path.parent / "test.tsv").write_text("q 1\t1\t1\n10\t0\t1\n")
    return retrieval_file.describe([*embeddings(path.parent), path.with_name("test.tsv")]).ids.tolist()


def read_list(path):
    (path.parent / "database.txt").write_text("a/1.jpg 7\n")
    return lists.read_sources([str(path), str(path.parent / "database.txt")], {})


def read_image_list(path):
    text = {path.name: texts.read(path)}
    image = re.compile(r"[a-z]+\.jpg")
    return imagenet100.read_list(text, "test", image, 2, [2])


def read_annotations(path):
    images = {f"{name}.txt": texts.Text("x", b"") for name in mirflickr.CONCEPTS}
    return mirflickr._labels(images | {"sky.txt": texts.read(path)})[0].sum(axis=1).nonzero()[0].tolist()


def read_concepts_of_images(path):
    found = {"label_ids.txt": texts.read(path), "mul_label_ids.txt": texts.Text("x", b"0\t1 10\n")}
    labels, names = nus_wide._labels_by_image(found)
    return labels[:1].tolist(), names


def read_images_of_concepts(path):
    found = {"label_ids.txt": texts.Text("x", b"1\tsea\n2\tsky\n"), "mul_label_ids.txt": texts.read(path)}
    return np.argwhere(nus_wide._labels_by_image(found)[0]).tolist()


def read_items(path):
    items = read_text_items(path)
    return list(items.texts()), items.columns


HEADER = "query-id\tcorpus-id\tscore\n"
READERS = {
    "run": ("run.txt", "q 1\tQ0\td1\t1\t2.5\tt\nq 1\tQ0\td2\t2\t10\tt\nq2\tQ0\td1\t1\t1\tt\n", read_run),
    "run of words": ("run.txt", "q2 Q0 d1 1 10 t\nq2 Q0 d3 2 1 t\n", read_run),
    "qrels of 4 columns": ("qrels.txt", "q 1\t0\td2\t1\nq2\t0\td1\t10\n", read_judgements),
    "qrels of 3 columns": ("qrels.tsv", f"{HEADER}q 1\td2\t1\nq2\td1\t10\n", read_judgements),
    "qrels of words": ("qrels.txt", "q2 0 d1 10\n", read_judgements),
    "judgements of a loader": ("test.tsv", "q 1\td2\t1\nq2\td1\t10\n", read_loader_judgements),
    "list": ("test.txt", "b/a b.jpg\t10\nb/2.jpg\t7\n", read_list),
    "annotations": ("sky.txt", "3\n10\n", read_annotations),
    "concepts": ("label_ids.txt", "1\tsea\n10\tsky\n", read_concepts_of_images),
    "images of concepts": ("mul_label_ids.txt", "3\t1\n10\t1 2\n", read_images_of_concepts),
    "ids": ("query_ids.txt", "q 1\n10\n", read_ids),
    "list of images": ("test.txt", "b/a.jpg 0 1\nb/b.jpg 1 1\n", read_image_list),
    "plain texts": ("texts.txt", "one text\nanother\n", read_items),
    "columns of texts": ("texts.tsv", "id\ttext\n1\tone text\n10\tanother\n", read_items),
    "objects of texts": ("texts.jsonl", '{"text": "one"}\n{"text": "two"}\n', read_items),
    "settings": ("mine.yaml", "a: 1\nb: 10\n", read_settings),
}
# Readers of text in which no number is read: ids, texts, JSON and YAML have grammars of their own.
NO_NUMBERS = {"ids", "list of images", "plain texts", "columns of texts", "objects of texts", "settings"}
KINDS_OF_NUMBERS = {"run": texts.number, "run of words": texts.number}


def outcome(reader, contents, folder):
    """What a reader says of a file: its result, or its one line."""
    name, _, read = READERS[reader]
    folder.mkdir()
    (folder / name).write_bytes(contents)
    try:
        return read(folder / name), None
    except (ValueError, Exception) as error:
        assert isinstance(error, ValueError) or type(error).__name__ == "ConfigurationError", repr(error)
        line = str(error)
        assert name in line and "\n" not in line and len(line) < 600, line
        return None, line


SAME = {
    "byte-order mark": lambda text: b"\xef\xbb\xbf" + text,
    "marks of files put together": lambda text: text.replace(b"\n", b"\n\xef\xbb\xbf"),
    "CRLF": lambda text: text.replace(b"\n", b"\r\n"),
    "CR": lambda text: text.replace(b"\n", b"\r"),
    "no final newline": lambda text: text[:-1],
    "blank lines at the end": lambda text: text + b"\n \r\n\n",
    "gzip": lambda text: gzip.compress(text),
    "gzip with a mark": lambda text: gzip.compress(b"\xef\xbb\xbf" + text),
}


@pytest.mark.parametrize("spelling", SAME)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_reads_every_spelling_of_a_text(reader, spelling, tmp_path):
    text = READERS[reader][1].encode()
    expected, error = outcome(reader, text, tmp_path / "plain")
    assert error is None, error
    found, error = outcome(reader, SAME[spelling](text), tmp_path / "other")
    assert error is None, error
    assert str(found) == str(expected)


REFUSED = {
    "NUL": (lambda text: text[:-2] + b"\0" + text[-2:], "line {} is not UTF-8 text"),
    "Latin-1": (lambda text: text[:-2] + b"\xe9" + text[-2:], "line {} is not UTF-8 text"),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "line 1 is not UTF-8 text but UTF-16"),
    "half of a gzip file": (lambda text: gzip.compress(text)[:-5], "not a whole gzip file"),
}


@pytest.mark.parametrize("damage", REFUSED)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_not_text_with_its_line(reader, damage, tmp_path):
    text = READERS[reader][1].encode()
    change, message = REFUSED[damage]
    found, error = outcome(reader, change(text), tmp_path / "x")
    assert found is None and message.format(text.count(b"\n")) in error


def strtod(text):
    """What C reads in the whole of a text, None if not the whole is a number."""
    library = ctypes.CDLL(None)
    library.strtod.restype = ctypes.c_double
    library.strtod.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]
    raw, end = ctypes.create_string_buffer(text.encode()), ctypes.c_char_p()
    value = library.strtod(ctypes.cast(raw, ctypes.c_char_p), ctypes.byref(end))
    used = len(text.encode()) - len(end.value)
    return value if used == len(text.encode()) and text.strip() == text and text else None


WORDS = (
    *("10", "+10", "1.0e1", "1e1", "010", "10.", "1_0", "1O", "１０", "1٠", "10x", "1,0", "0x", "--1"),
    *("1e", ".", "0xA", "0x1p3", "inf", "-Infinity", "nan", "1e999", "1e-999"),
    *("18446744073709551616", "1.5", "1.00000001", "9007199254740993", "1e400000000000", "0.1e1"),
    "1" * 70,
)


def test_numbers_are_what_strtod_reads_and_integers_what_decimals_say():
    generator = random.Random(0)
    made = ["".join(generator.choices("0123.eE+-_xXpf", k=generator.randint(1, 7))) for _ in range(20_000)]
    for text in (*WORDS, *made):
        expected = strtod(text)
        found = value_of(texts.number, text)
        assert found == expected or (math.isnan(found) and math.isnan(expected)), text
        decimal = expected is not None and math.isfinite(expected) and "x" not in text.lower()
        exact = Decimal(text) if decimal and len(text) < 12 else None
        if exact is not None:
            inside = -(2**63) <= exact < 2**63
            whole = int(exact) if inside and exact == exact.to_integral_value() else None
            assert value_of(texts.integer, text) == whole, text


def value_of(read, text):
    try:
        return read(text)
    except ValueError:
        return None


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("reader", sorted(set(READERS) - NO_NUMBERS))
def test_every_reader_reads_the_same_numbers(reader, word, tmp_path):
    """A number is read as the grammar says it, whatever the reader; else the line that holds it is named."""
    text = READERS[reader][1]
    expected = value_of(KINDS_OF_NUMBERS.get(reader, texts.integer), word)
    found, error = outcome(reader, text.replace("10", word).encode(), tmp_path / "x")
    if expected is None or math.isnan(expected):
        line = 1 + text[: text.index("10")].count("\n")
        assert found is None and f"line {line}" in error
    else:
        plain, refused = outcome(reader, text.replace("10", repr(expected)).encode(), tmp_path / "y")
        assert str(found) == str(plain) and (error is None) == (refused is None)


def test_the_columns_of_many_lines_are_those_of_each(monkeypatch):
    """Columns of whole texts against `fields`, line by line, in blocks of any size."""
    generator = random.Random(1)
    for _ in range(300):
        count = generator.randint(1, 4)
        separators = generator.choice(["\t", " ", " \t ", "\t\t", "  "])
        lines = []
        for _ in range(generator.randint(1, 9)):
            known = ["a", "bc d", "x  y", "é", "1"] if "\t" in separators else ["w"]
            words = [generator.choice(known) for _ in range(count)]
            blank = generator.choice(["", " ", "\t"]) if "\t" in separators and count > 1 else ""
            lines.append(blank + separators.join(words) + blank)
            lines += [""] * generator.randint(0, 1)
        if separators.strip(" ") and count == 1:
            continue
        text = "\n".join(lines) + "\n"
        expected = [texts.fields(line) for line in lines if line.strip()]
        raw = tokens.padded(text.encode())
        monkeypatch.setattr(tokens, "_BLOCK", generator.choice([5, 30, 1 << 20]))
        found = tokens.columns(raw, 0, count, tuple(range(count)), "\t" in text)
        assert [[one.text(row) for one in found] for row in range(len(expected))] == expected, text


def test_streamed_lines_are_those_of_the_whole(tmp_path, monkeypatch):
    contents = "".join(f"é{n}" + ("\n", "\r\n", "\r", "\n\n")[n % 4] for n in range(400)).encode()
    (tmp_path / "a.txt").write_bytes(contents)
    for block in (1, 2, 7, 1 << 20):
        monkeypatch.setattr(texts, "_BLOCK", block)
        found = list(texts.lines(tmp_path / "a.txt"))
        whole = texts.read(tmp_path / "a.txt").contents.decode()
        assert [line for _, line in found] == whole[:-1].split("\n")
        assert [number for number, _ in found] == list(range(1, len(found) + 1))
    monkeypatch.setattr(texts, "LONGEST_LINE", 10)
    (tmp_path / "b.txt").write_bytes(b"a\n" + b"x" * 30)
    with refused(pattern=r"b\.txt: line 2 is longer than 10 bytes"):
        list(texts.lines(tmp_path / "b.txt"))


def test_ids_with_spaces_between_tabs_score_as_those_of_dictionaries(tmp_path):
    run = {"how fast": {"a b": 2.0, "c": 1.0}, "q2": {"c": 1.0}}
    qrels = {"how fast": {"c": 1, "x y": 2}, "q2": {"c": 1}}
    expected = score_run(run, qrels).means
    lines = [f"{q}\tQ0\t{d}\t1\t{s}\tmy tag\n" for q, found in run.items() for d, s in found.items()]
    (tmp_path / "run").write_text("".join(lines))
    judged = [(q, d, r) for q, found in qrels.items() for d, r in found.items()]
    for name, form, header in (
        ("four", "{}\t0\t{}\t{}\n", ""),
        ("three", "{}\t{}\t{}\n", ""),
        ("header", "{}\t{}\t{}\n", HEADER),
        ("other header", "{}\t{}\t{}\n", "QID\tdocno\trel\n"),
        ("four with header", "{}\t0\t{} \t{}.0\n", "qid\titeration\tdocid\trelevance\n"),
    ):
        (tmp_path / name).write_text(header + "".join(form.format(*one) for one in judged))
        assert score_run(tmp_path / "run", tmp_path / name).means == expected, name
        loader = tmp_path / f"{name}.loader"
        loader.mkdir()
        (loader / "test.tsv").write_bytes((tmp_path / name).read_bytes())
        files = embeddings(loader, query=list(qrels), database=["a b", "c", "x y"])
        retrieval_file.load([*files, loader / "test.tsv"], loader)
        found = np.load(loader / "judgements.npy").tolist()
        assert [row for row in found if row[2]] == [[3, 1, 1], [3, 2, 2], [4, 1, 1]], name


def test_runs_and_judgements_are_read_from_json(tmp_path, printed):
    for name, value in (("run.json", RUN), ("qrels.json", QRELS)):
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "run.json.gz").write_bytes(gzip.compress(json.dumps(RUN).encode()))
    expected = score_run(RUN, QRELS).means
    assert score_run(tmp_path / "run.json.gz", tmp_path / "qrels.json").means == expected
    assert printed("score-run", tmp_path / "run.json", tmp_path / "qrels.json") == expected


def test_a_table_is_told_what_is_taken():
    pandas = pytest.importorskip("pandas")
    with refused(pattern=r"not DataFrame; columns of a table go to .*score_lists"):
        score_run(pandas.DataFrame({"q": ["1"]}), {"1": {"a": 1}})


def test_keys_and_numbers_written_as_text_are_read_as_numbers_are():
    expected = score_run({"1": {"a": 2.0, "b": 1.0}}, {"1": {"b": 1}}).means
    assert score_run({1: {b"a": "2.0", "b": "1e0"}}, {b"1": {"b": "1.0"}}).means == expected


@pytest.mark.parametrize(
    "form",
    [
        *("{} 1 0", "{}\t1 0", "{}\t1\t0", "{},1,0", "{}, 1, 0", "{}  1  0 ", "\t{}\t1,0"),
        *("{}\t1.0 0.0", "./{} 1 0", ".//{} 1 0", "{}\v1\f0"),
    ],
)
def test_a_leak_is_seen_however_a_line_is_written(form, tmp_path, leaking):
    (tmp_path / "test.txt").write_text(form.format("a/1.jpg") + "\n" + form.format("a/2.jpg") + "\n")
    (tmp_path / "database.txt").write_text("a/3.jpg 0 1\na\\2.jpg 1 0\n")
    report = leaking(tmp_path)
    assert report["examples"]["query_in_database"] == ["a/2.jpg"]
    assert report["labels"]["contradicting"] == 0 and report["labels"]["classes"]["query"] == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a/1.jpg 0 1 0", "test.txt: line 2: 3 labels where .*test.txt: line 1 has 2"),
        ("a/2.jpg 1 0\na/3.jpg 0 1 1", "test.txt: line 3: 3 labels"),
        ("a/1.jpg", "test.txt: line 2: 0 labels where .* has 2"),
        ("a/1.jpg,0 1", "line 2: must be a path and, behind white space or a comma, labels, not"),
        ("a/1.jpg;0;1", "line 2: must be a path and"),
        ("a/1.jpg 0\t1", "line 2: must be a path and"),
        ('"a/1.jpg" 0 1', "line 2: must be a path and"),
        (",0,1", "line 2: must be a path and"),
        ("my images/1.jpg 0 1", "line 2: .* there must be labels, integers, not 'images/1.jpg 0 1'"),
        ("a/1.jpg 0 2", "line 2: several labels must be a vector"),
        ("a/1.jpg 0 1_0", "line 2: after the path there must be labels"),
        ("a/1.jpg 0 １", "line 2: after the path there must be labels"),
    ],
)
def test_a_list_that_looks_otherwise_than_its_lines_say_is_refused(line, message, tmp_path, fails):
    (tmp_path / "test.txt").write_text(f"a/0.jpg 0 1\n{line}\n")
    (tmp_path / "database.txt").write_text("a/1.jpg 0 1\n")
    assert re.search(message, fails("check-split", tmp_path))


def test_lists_with_other_numbers_of_labels_are_no_split(tmp_path, fails):
    (tmp_path / "test.txt").write_text("a/0.jpg 0 1\n")
    (tmp_path / "database.txt").write_text("a/1.jpg 0 1 0\n")
    message = r"database\.txt: line 1: 3 labels where .*test\.txt: line 1 has 2"
    assert re.search(message, fails("check-split", tmp_path))


def test_paths_with_spaces_end_with_a_tab_and_packed_lists_are_found(tmp_path, leaking):
    (tmp_path / "test.txt").write_text("my images/a, b.jpg\t\nc.jpg\t\n")
    (tmp_path / "database.csv.gz").write_bytes(gzip.compress(b"d.jpg\t\r\nmy images\\a, b.jpg\t\r\n"))
    report = leaking(tmp_path)
    assert report["examples"]["query_in_database"] == ["my images/a, b.jpg"] and report["labels"] is None


def test_the_lists_of_loaders_are_read_as_they_are_checked(tmp_path):
    """Every form of a line: the labels of one reader are those of the other."""
    for form in ("x/{} 0 1", "x/{}\t0 1", "x/{},0,1", "x\\{}\t0,1", "x/{}  0 1.0"):
        (tmp_path / "test.txt").write_text(form.format("a.jpg") + "\n" + form.format("b.jpg") + "\n")
        assert read_image_list(tmp_path / "test.txt") == {"a.jpg": "01", "b.jpg": "01"}
        part = lists.read_sources([str(tmp_path / "test.txt")], {}, by_file_name=True)["query"]
        assert list(part.names) == ["a.jpg", "b.jpg"] and list(part.labels) == [(1,), (1,)]


def test_class_names_of_cifar10_are_text():
    with refused(pattern=r"batches\.meta\.txt: line 2 is not UTF-8 text"):
        cifar10_binary._class_names(Path("c.tar"), b"a\nb\xff\n")
