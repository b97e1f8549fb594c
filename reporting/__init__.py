"""Scores to tables, statistics, figures and one HTML page: pure functions of records and tidy frames."""

__all__ = ["load_results"]


def __getattr__(name: str):
    # On demand: planning a run asks only which figures there are, and should not wait for pandas.
    if name == "load_results":
        from reporting.records import load_results

        return load_results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
