"""The best meshes and shardings of a program on a machine. Loads numpy. The space: docs/search.md."""
