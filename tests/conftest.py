"""Settings of all tests.

One thread for BLAS and torch, the default of the workflow's jobs: set before they are imported.

Hypothesis generates the same cases in every run; HYPOTHESIS_PROFILE=thorough generates ten times as many,
new ones in each run. Tests ask for multiples of `settings.default.max_examples`.

Skips that tests/skip_gate.py does not list fail the run.

Workers of pytest-xdist take whole files, the longest first, so that none is left alone with one at the end.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from skip_gate import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# What is collected stays until the end: looking through it for garbage takes seconds.
gc.disable()

ALIKE = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("short", derandomize=True, database=None, max_examples=100, **ALIKE)
settings.register_profile("thorough", max_examples=1000, print_blob=True, **ALIKE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "short"))

# Files that take more than about ten seconds, longest first.
LONG = (
    "workflow/test_snakemake.py",
    "workflow/test_real_data.py",
    "workflow/test_notebooks.py",
    "workflow/test_images.py",
    "workflow/test_planned_runs.py",
    "workflow/test_interruption.py",
    "test_documentation.py",
    "workflow/test_documentation_site.py",
    "workflow/test_bad_results.py",
    "methods/test_conformance.py",
    "methods/test_end_to_end.py",
    "workflow/test_downloads.py",
    "test_bad_input.py",
    "workflow/test_external_codes.py",
    "benchmarks/test_benchmarks.py",
    "workflow/test_documentation_pages.py",
    "workflow/test_site_leaderboards.py",
    "workflow/test_site_in_browser.py",
    "reporting/test_page_in_browser.py",
    "reporting/test_reporting_curves.py",
    "workflow/test_leaderboard_rows.py",
    "tiebench/test_fuzz.py",
    "tiebench/test_hamming.py",
    "tiebench/test_relaxed.py",
    "workflow/test_site_in_firefox.py",
    "reporting/test_page_in_firefox.py",
    "workflow/test_plan.py",
    "tiebench/test_score.py",
    "workflow/test_codes_of_methods.py",
    "reporting/test_figure_options.py",
    "tiebench/test_library_documentation.py",
)


def pytest_collection_modifyitems(items):
    if "PYTEST_XDIST_WORKER" in os.environ:
        order = {Path(__file__).parent / name: place for place, name in enumerate(LONG)}
        items.sort(key=lambda item: order.get(item.path, len(LONG)))


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Each device that this machine has, as a `torch.device`."""
    import torch

    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.device(request.param)
