"""Tables as text: Markdown, LaTeX, health."""
