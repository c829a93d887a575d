"""Questions to the compilers while a person edits, and their answers as they arrive."""
