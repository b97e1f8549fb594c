"""The merged configuration, checked."""
