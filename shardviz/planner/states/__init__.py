"""States of an array, the moves between them, and the cheapest way from one to another."""
