"""What a table asks for."""
