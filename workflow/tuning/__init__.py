"""Search of hyper-parameters."""
