"""See where every shard lives and which collectives `jit` inserts."""

__version__ = "0.1.0"
