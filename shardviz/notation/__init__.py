"""Text to objects and back: meshes, sizes, einsums, and every notation for one sharding."""
