"""The plan that a textbook would give for a problem, with the reason of every step; standard library only."""
