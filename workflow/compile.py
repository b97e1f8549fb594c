"""Compile every kernel once, so that later processes load them: python -m workflow.compile."""

import importlib
import multiprocessing
import sys
import time

from methods.base.catalogue import catalogue, load_class
from tiebench.compile import compile_kernels


def main():
    started = time.perf_counter()
    # Those of the library take as long as all others: each half has a process of its own.
    library = multiprocessing.get_context("spawn").Process(target=compile_kernels)
    library.start()
    # Kernels of networks and methods declare their types, and are compiled on import.
    importlib.import_module("networks.layers.response_normalisation")
    try:
        for name in catalogue():
            load_class(name)
    except ValueError as error:  # a file of a method that is wrong, or that cannot be imported
        sys.exit(f"error: {error}")
    library.join()
    if library.exitcode:
        sys.exit("error: the kernels of the library cannot be compiled (see above)")
    print(f"kernels ready ({time.perf_counter() - started:.1f} s)", file=sys.stderr)


if __name__ == "__main__":
    main()
