"""Nearest codes, hash tables, rescoring, and exports to other programs."""
