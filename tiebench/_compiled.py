"""Kernels that Numba compiles once and keeps on disk, where there is a disk to keep them on."""

from contextlib import suppress

from numba import njit
from numba.core.caching import FunctionCache


class _Cache(FunctionCache):
    """Numba's cache, which may fail: a full disk or a damaged file costs the time to compile, no more."""

    def load_overload(self, *arguments):
        with suppress(Exception):
            return super().load_overload(*arguments)

    def save_overload(self, *arguments):
        with suppress(Exception):
            super().save_overload(*arguments)


def compiled(*signatures, **options):
    """Decorator: `numba.njit(**options)` with the compiled code kept, as `cache=True` keeps it.

    signatures: types to compile for at once; none compiles at the first call. Where no folder for the cache
    can be written (read-only installations), its disk is full or a file in it is damaged, `cache=True` would
    end the program; here the function is compiled anew in every process.
    """

    def decorate(function):
        dispatcher = njit(**options)(function)
        with suppress(RuntimeError):  # no folder for the cache
            dispatcher._cache = _Cache(function)
        for signature in signatures:
            dispatcher.compile(signature)
        if signatures:
            dispatcher.disable_compile()
        return dispatcher

    return decorate
