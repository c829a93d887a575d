"""The devices at hand: what is asked of them, how long it took them, and the lines that this makes."""
