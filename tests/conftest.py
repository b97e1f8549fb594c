"""One thread for BLAS and torch, as jobs of the workflow have by default: set before they are imported."""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
