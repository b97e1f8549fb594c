"""Files of runs, read."""
