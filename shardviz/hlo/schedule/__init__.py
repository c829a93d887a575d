"""What a schedule tells beyond bytes: what overlaps, by which algorithm, what became a collective matmul."""
