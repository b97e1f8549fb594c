"""The marks of progress: what a resumed computation must have in common with the one that was interrupted."""

import os
import subprocess
from importlib.metadata import version

from workflow.stages import checkpoints
from workflow.stages.checkpoints import checkpoint_path, decided_by, git_commit, remove_checkpoint

TALR = {"class": "talr_ap", "affinity": {"kind": "class"}}
OF_SMALL = TALR | {"network": {"architecture": "small", "options": {}}}


def test_weights_are_known_by_their_content_wherever_they_are(tmp_path):
    first, second = tmp_path / "a.npz", tmp_path / "elsewhere" / "b.npz"
    second.parent.mkdir()
    first.write_bytes(b"weights")
    second.write_bytes(b"weights")
    os.utime(second, (1, 1))
    before = decided_by(OF_SMALL, str(first))
    assert decided_by(OF_SMALL, second) == before
    second.write_bytes(b"weighty")
    assert decided_by(OF_SMALL, second) != before
    assert decided_by(OF_SMALL, None) != before


def test_a_mark_changes_with_the_method_the_network_and_the_settings():
    given = [
        decided_by(TALR, None),
        decided_by(TALR | {"class": "itq"}, None),
        decided_by(OF_SMALL, None),
        decided_by(TALR | {"affinity": {"kind": "shared_label"}}, None),
        decided_by(TALR, None, "workflow.tuning.validation"),
    ]
    marks = {checkpoint_path("runs/a", [decisive, {"epochs": 3}], "npz") for decisive in given}
    marks |= {checkpoint_path("runs/a", [given[0], {"epochs": 4}], "npz")}
    assert len(marks) == 6
    assert {path.parent.as_posix() for path in marks} == {"results/checkpoints/runs/a"}


def test_what_another_version_of_a_package_began_is_not_resumed(monkeypatch):
    before = decided_by(TALR, None)
    monkeypatch.setattr(checkpoints, "version", lambda name: "0.1" if name == "numpy" else version(name))
    assert decided_by(TALR, None) != before


def test_a_commit_is_marked_where_code_and_only_where_code_is_not_in_it(tmp_path):
    def git(*words):
        name = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *name, *words], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert git_commit(tmp_path) is None
    git("init", "--quiet")
    (tmp_path / "methods").mkdir()
    (tmp_path / "methods" / "mine.py").write_text("a = 1")
    (tmp_path / "table.yaml").write_text("a: 1")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "table.yaml").write_text("a: 2")  # its content is in the record of a run
    for file in ("mine.yaml", "prepare_mine.py", "tests/test_mine.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("a: int")
    assert git_commit(tmp_path) == commit
    (tmp_path / "methods" / "mine.py").write_text("a = 2")
    assert git_commit(tmp_path) == commit + "+"
    (tmp_path / "methods" / "mine.py").write_text("a = 1")
    (tmp_path / "methods" / "other.py").write_text("b = 1")
    assert git_commit(tmp_path) == commit + "+"
    (tmp_path / ".gitignore").write_text("unpacked\n")
    (tmp_path / "unpacked").mkdir()  # an archive without .git, in somebody's own repository
    assert git_commit(tmp_path / "unpacked") is None


def test_a_checkpoint_is_removed_with_what_a_killed_writer_left(tmp_path):
    path, other = tmp_path / "run" / "mark.npz", tmp_path / "run" / "other.npz"
    remove_checkpoint(path)  # nothing there
    path.parent.mkdir()
    for file in (path, path.with_name(".mark.npz.left"), other):
        file.write_bytes(b"arrays")
    remove_checkpoint(path)
    assert list(path.parent.iterdir()) == [other]
    other.unlink()
    remove_checkpoint(path)
    assert not path.parent.exists()
