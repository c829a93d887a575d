"""Plans and programs on a machine: what runs when, what waits, and the memory that is live."""
