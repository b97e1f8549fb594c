"""Pairs, triplets and rankings of a batch."""
