"""Ties to metrics: exact means over all orders, and ranges."""
