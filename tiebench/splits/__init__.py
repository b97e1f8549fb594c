"""Checks of a split."""
