"""Prices of moves and of local work on a machine, and what whole plans cost."""
