"""`o`: a file, a folder or a text is found, told apart, and shown where it belongs."""
