"""The marks of progress: what a resumed computation must have in common with the one that was interrupted."""

import os

from workflow.checkpoints import checkpoint_path, decided_by

SMALL = {"architecture": "small", "options": {}}


def test_weights_are_known_by_their_content_wherever_they_are(tmp_path):
    first, second = tmp_path / "a.npz", tmp_path / "elsewhere" / "b.npz"
    second.parent.mkdir()
    first.write_bytes(b"weights")
    second.write_bytes(b"weights")
    os.utime(second, (1, 1))
    before = decided_by("talr_ap", SMALL, str(first))
    assert decided_by("talr_ap", SMALL, second) == before
    second.write_bytes(b"weighty")
    assert decided_by("talr_ap", SMALL, second) != before
    assert decided_by("talr_ap", SMALL, None) != before


def test_a_mark_changes_with_the_method_the_network_and_the_settings():
    given = [
        decided_by("talr_ap", None, None),
        decided_by("itq", None, None),
        decided_by("talr_ap", SMALL, None),
    ]
    marks = {checkpoint_path("runs/a", [decisive, {"epochs": 3}], "npz") for decisive in given}
    marks |= {checkpoint_path("runs/a", [given[0], {"epochs": 4}], "npz")}
    assert len(marks) == 4
    assert {path.parent.as_posix() for path in marks} == {"results/checkpoints/runs/a"}
