"""Formats of files that loaders share."""
