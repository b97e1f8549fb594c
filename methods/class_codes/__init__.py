"""Target codes of classes."""
