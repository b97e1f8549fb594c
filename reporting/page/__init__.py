"""The HTML page of a table."""
