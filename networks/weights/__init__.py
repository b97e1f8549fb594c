"""Weights from files."""
