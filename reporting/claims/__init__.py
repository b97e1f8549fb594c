"""Claims of a paper, judged."""
