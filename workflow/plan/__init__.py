"""Which files are made of which."""
