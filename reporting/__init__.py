"""Scores to tables, statistics, figures and one HTML page: pure functions of records and tidy frames."""
