"""Views over the engines' objects: lines of text for a terminal, and files. A view computes nothing."""
