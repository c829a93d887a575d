"""The problem panel: mesh, einsum, sizes, dtype, arrays, targets."""
