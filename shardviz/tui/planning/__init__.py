"""Plans that take longer than a key may, made by another process."""
