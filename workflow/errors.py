"""What a mistake in the configuration raises."""


class ConfigurationError(ValueError):
    """A mistake in the configuration, as one line that names file, key and what would be right."""
