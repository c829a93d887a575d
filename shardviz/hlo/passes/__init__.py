"""A compiler's dumps, pass by pass."""
