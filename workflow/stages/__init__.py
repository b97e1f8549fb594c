"""What the scripts of rules do."""
