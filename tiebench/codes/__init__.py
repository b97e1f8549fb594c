"""What codes are: accepted inputs, packed bytes, collapse."""
