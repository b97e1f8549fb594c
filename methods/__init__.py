"""Hashing methods, one file each: the file's stem is the method's name, and there is no registry.

A file defines one class derived from `methods.base.HashingMethod`, or from `methods.base.deep.DeepHashing`,
which brings the training loop. Names that begin with an underscore are helpers. docs/add-a-method.md walks
through an example.
"""
