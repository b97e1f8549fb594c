"""Rankings of other programs, and their judgements."""
