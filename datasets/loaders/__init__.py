"""Loaders, one file each, found by themselves."""
