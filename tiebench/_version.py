"""The version of the package, read by the build without importing anything else."""

__version__ = "0.1.0"
