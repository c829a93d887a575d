"""The devices at hand: the processes that hold them."""
