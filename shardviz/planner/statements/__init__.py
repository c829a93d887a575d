"""The ways to divide the work of a statement over a mesh."""
