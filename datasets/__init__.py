"""Datasets: loaders, kinds of split and kinds of affinity, one file each, found by themselves.

A file of `datasets/loaders/` is a loader, a file of `datasets/splits/` a kind of split, a
file of `datasets/affinity/` a kind of affinity. Names that start with an underscore are helpers. Nothing is
registered; docs/add-a-dataset.md and docs/add-a-protocol.md describe what such a file defines.
"""
