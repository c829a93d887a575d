"""A lesson in lines: what is read beside the picture, the goal above it, and the list of the course."""
