"""The error of a mistake in the configuration."""


class ConfigurationError(ValueError):
    """A mistake in the configuration: one line that names file, key and what is allowed."""
