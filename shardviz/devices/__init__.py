"""The devices at hand: the processes that hold them, how long work takes there, and the lines of that."""
