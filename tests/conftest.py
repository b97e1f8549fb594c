"""Settings of all tests.

One thread for BLAS and torch, the default of the workflow's jobs: set before they are imported.

Hypothesis generates the same cases in every run; HYPOTHESIS_PROFILE=thorough generates ten times as many,
new ones in each run. Tests ask for multiples of `settings.default.max_examples`.

Skips that tests/skip_gate.py does not list fail the run.
"""

import os

from hypothesis import HealthCheck, settings
from skip_gate import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

ALIKE = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("short", derandomize=True, database=None, max_examples=100, **ALIKE)
settings.register_profile("thorough", max_examples=1000, print_blob=True, **ALIKE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
