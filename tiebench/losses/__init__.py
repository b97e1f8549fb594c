"""Differentiable relaxations of the metrics (needs torch)."""
