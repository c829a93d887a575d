"""Plans and scheduled modules on a machine: operations on lanes, what waits, and the memory that is live."""
