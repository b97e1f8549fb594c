"""Learners that several methods share: boosting, kernels, trees, graph cuts."""
