"""Sources from the network."""
