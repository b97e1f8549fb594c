"""Writing files so that nothing half-written is ever taken for whole."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success fsync it and rename it to `path`, else delete it."""
    temporary = path.with_name(path.name + ".new")
    try:
        yield temporary
        settle(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def settle(temporary: Path, path: Path) -> None:
    """Have a written file on disk, then rename it to `path`."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    temporary.replace(path)
