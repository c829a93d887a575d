"""Chips, the machines that they make, and what a schedule or a collective costs on their links."""
