"""5 Time: when each operation runs, what it waits for, and the memory that is live."""
