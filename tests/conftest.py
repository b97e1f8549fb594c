"""One thread for BLAS and torch, as jobs of the workflow have by default: set before they are imported.

Fuzz: the same cases on every run, or, with HYPOTHESIS_PROFILE=thorough, many and ever new ones. Tests ask for
multiples of `settings.default.max_examples`.
"""

import os

from hypothesis import HealthCheck, settings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

ALIKE = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("short", derandomize=True, database=None, max_examples=100, **ALIKE)
settings.register_profile("thorough", max_examples=1000, print_blob=True, **ALIKE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))
