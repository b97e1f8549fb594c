"""Scores to tables, statistics, figures and one HTML page: pure functions of a table and its results."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pandas takes time to load, and checks of a configuration need the names of figures alone
    from reporting.records.read import load_results

__all__ = ["load_results"]


def __getattr__(name: str) -> Any:
    if name == "load_results":
        from reporting.records.read import load_results

        return load_results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
