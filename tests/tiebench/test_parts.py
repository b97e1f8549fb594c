"""A database in parts: the same bits as the whole, and parts of different databases are not merged."""

import itertools
import json

import numpy as np
import pytest
from refusals import refused

from tiebench.__main__ import main
from tiebench.counting import parts
from tiebench.counting.histograms import JointHistograms, merge


def arrays(multi_hot=False):
    rng = np.random.default_rng(0)
    made = {"query": rng.integers(0, 2, (7, 13)), "database": rng.integers(0, 2, (31, 13))}
    shape, most = ((5,), 2) if multi_hot else ((), 3)
    return made | {f"{name}_labels": rng.integers(0, most, (len(made[name]), *shape)) for name in made}


def write(folder, made):
    folder.mkdir()
    for name, array in made.items():
        np.save(folder / f"{name}.npy", array)
    return str(folder)


def counted(tmp_path, source, of):
    files = []
    for part in range(1, of + 1):
        files.append(str(tmp_path / f"part{part}of{of}.npz"))
        assert main(["score", source, "--part", f"{part}/{of}", "--histograms", files[-1]]) == 0
    return files


@pytest.mark.parametrize("multi_hot", [False, True])
@pytest.mark.parametrize("of", [1, 2, 7, 31])
def test_merged_parts_score_the_same_bits(tmp_path, capsys, multi_hot, of):
    made = arrays(multi_hot=multi_hot)
    made["database_labels"][15:] = 0 if multi_hot else 2  # the later parts lack levels
    folder = write(tmp_path / "codes", made)
    np.savez(tmp_path / "codes.npz", **made)
    files = counted(tmp_path, folder, of)
    printed = []
    for which in (["--merge", *files[::-1]], [folder], [str(tmp_path / "codes.npz")]):
        kept = tmp_path / "out.npz"
        assert main(["score", *which, "--at", "5", "--per-query", str(kept)]) == 0
        with np.load(kept) as per_query:
            values = {name: per_query[name].tobytes() for name in per_query.files}
        printed.append((capsys.readouterr().out, values))
    assert printed[0] == printed[1] == printed[2]
    assert json.loads(printed[0][0])["database"] == 31


def test_spans_cover_a_database_once():
    for items, of in [(10, 3), (7, 7), (10**9, 17)]:
        pieces = [parts.span(part, of, items) for part in range(1, of + 1)]
        assert pieces[0].start == 0 and pieces[-1].stop == items
        assert all(a.stop == b.start for a, b in itertools.pairwise(pieces))
        sizes = [piece.stop - piece.start for piece in pieces]
        assert max(sizes) - min(sizes) <= 1


def test_merge_adds_levels_by_their_value():
    first = JointHistograms(np.array([0, 1]), np.array([[[1, 2], [3, 4]]]))
    second = JointHistograms(np.array([0, 1, 5]), np.array([[[10, 0], [0, 10], [7, 8]]]))
    both = merge([first, second])
    assert both.levels.tolist() == [0, 1, 5]
    assert both.counts.tolist() == [[[11, 2], [3, 14], [7, 8]]]
    with refused("no histograms"):
        merge([])
    with refused("do not belong"):
        merge([first, JointHistograms(np.array([0, 1]), np.zeros((2, 2, 2), int))])


def mangled(tmp_path, name, **changes):
    file = str(tmp_path / name)
    with np.load(tmp_path / "part1of3.npz") as kept:
        np.savez(file, **{**kept, **changes})
    return file


def test_parts_that_do_not_belong_together_are_refused(tmp_path, fails):
    files = counted(tmp_path, write(tmp_path / "codes", arrays()), 3)
    (tmp_path / "text.npz").write_text("no")
    for given, message in (
        (files[:2], "of 3 parts, these are missing: 3"),
        (files[1:], "of 3 parts, these are missing: 1"),
        ([files[1], files[1], files[2]], "part 2 of 3 is given twice"),
        ([files[1], mangled(tmp_path, "n.npz", part=np.array([1, 4]))], "n.npz: its number of parts differ"),
        ([files[1], mangled(tmp_path, "d.npz", database=np.array(99))], "d.npz: its database differ"),
        ([mangled(tmp_path, "s.npz", part=np.array([3, 3]))], "counts are not those of 11 items"),
        ([files[1], mangled(tmp_path, "b.npz", counts=np.zeros((7, 2, 13), int))], "queries or bits differ"),
        ([mangled(tmp_path, "w.npz", counts=np.zeros((7, 2)))], "w.npz: not the histograms"),
        ([mangled(tmp_path, "x.npz", more=np.zeros(1))], "x.npz: not the histograms"),
        ([mangled(tmp_path, "c.npz", counts=np.full((7, 2, 14), -1))], "c.npz: not the histograms"),
        ([mangled(tmp_path, "l.npz", levels=np.array([1, 0]))], "l.npz: not the histograms"),
        ([mangled(tmp_path, "t.npz", part=np.array(["1", "3"]))], "t.npz: not the histograms"),
        ([mangled(tmp_path, "p.npz", part=np.array([7, 3]))], "part 7 of 3"),
        ([files[1], mangled(tmp_path, "q.npz", query=np.zeros(32, np.uint8))], "q.npz: its queries differ"),
        ([tmp_path / "text.npz"], "not a readable .npz"),
    ):
        assert message in fails("score", "--merge", *given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--part", "1/3"], "go together"),
        (["--part", "1/3", "--histograms", "x", "--at", "5"], "--part writes counts: give --at"),
        (["--part", "1/3", "--histograms", "x", "--per-query", "y"], "--part writes counts: give --at"),
        (["--part", "1/3", "--histograms", "x", "--merge"], "give one of them"),
        (["another.npz"], "one file of codes at a time"),
    ],
)
def test_options_that_do_not_go_together(misused, options, message):
    assert message in misused("score", "codes.npz", *options)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("3", "written as 3/16"),
        ("a/b", "written as 3/16"),
        ("-1/3", "written as 3/16"),
        ("0/3", "part 0 of 3: parts are numbered 1 to 3"),
        ("4/3", "part 4 of 3: parts are numbered 1 to 3"),
        ("1/32", "31 items cannot be 32 parts"),
    ],
)
def test_part_numbers_out_of_range_are_refused(tmp_path, fails, part, message):
    folder = write(tmp_path / "codes", arrays())
    assert message in fails("score", folder, f"--part={part}", "--histograms", tmp_path / "x.npz")
    assert not (tmp_path / "x.npz").exists()
