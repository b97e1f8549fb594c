"""Scores to tables, statistics, figures and one HTML page: pure functions of records and tidy frames."""

from reporting.records import load_results

__all__ = ["load_results"]
