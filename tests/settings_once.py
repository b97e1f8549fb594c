"""Files of settings that many tests read, such as those of config/, parsed once; and a good configuration."""

import contextlib
import copy
from pathlib import Path

import pytest

from workflow.configuration import checks, merged

MINE = {"dataset": "digits", "affinity": {"kind": "class"}, "at": [10]}
MINE["split"] = {"kind": "random", "query": 20, "training": 60}
BLOCK = {"protocol": "mine", "metric": "ap", "bits": [8]}
TABLE = {"seeds": [0], "methods": ["lsh", "talr_ap"], "blocks": [BLOCK]}
GOOD = {"protocols": {"mine": MINE}, "tables": {"mine": TABLE}}


@contextlib.contextmanager
def parsed_once():
    """Inside, `load` parses a file again only where its time or size has changed."""
    read_settings, kept = merged.read_settings, {}

    def read(path):
        try:
            status = Path(path).stat()
        except OSError:
            return read_settings(path)
        key = (str(path), status.st_ino, status.st_mtime_ns, status.st_size)
        if key not in kept:
            kept[key] = read_settings(path)
        return copy.deepcopy(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        for module in (merged, checks):
            patch.setattr(module, "read_settings", read)
        yield
