"""The problem as it is edited: its fields as cells that a cursor can stand on, and as one line."""
