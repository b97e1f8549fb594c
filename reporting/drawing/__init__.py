"""What figures share: style, axes, sheets."""
