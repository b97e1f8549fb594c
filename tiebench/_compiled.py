"""Kernels that Numba compiles once and caches on disk, if a folder is writable.

Without Numba, or where NUMBA_DISABLE_JIT=1 turns its compiler off, the decorated functions run as plain
Python: correct, and slow. Modules whose kernels would then be too slow, or need Numba's own types, test
`NUMBA` and use another path.
"""

import importlib.util
from collections.abc import Callable
from contextlib import suppress
from typing import Any

if importlib.util.find_spec("numba") is None:
    NUMBA = False
else:  # an installed Numba that fails to load raises
    from numba import config, njit
    from numba.core.caching import FunctionCache

    NUMBA = not config.DISABLE_JIT  # type: ignore[attr-defined]

    class _Cache(FunctionCache):
        """Numba's cache, which may fail: a full disk or a damaged file costs the time to compile, no more."""

        def load_overload(self, *arguments):
            with suppress(Exception):
                return super().load_overload(*arguments)

        def save_overload(self, *arguments):
            with suppress(Exception):
                super().save_overload(*arguments)


def compiled(*signatures: Any, **options: Any) -> Callable[[Callable], Any]:
    """Decorator: `numba.njit(**options)` with the compiled code kept, as `cache=True` keeps it.

    signatures: types to compile for at once; none compiles at the first call. If no folder for the cache is
    writable (read-only installations), its disk is full or a file in it is damaged, `cache=True` would end
    the program; here the function is compiled again in every process.
    """

    def decorate(function):
        if not NUMBA:
            return function
        dispatcher = njit(**options)(function)
        # Numba has no public way to replace the cache. Where the private one is gone, so is the cache.
        if hasattr(dispatcher, "_cache"):
            with suppress(RuntimeError):  # no folder for the cache
                dispatcher._cache = _Cache(function)
        for signature in signatures:
            dispatcher.compile(signature)
        if signatures:
            dispatcher.disable_compile()
        return dispatcher

    return decorate
