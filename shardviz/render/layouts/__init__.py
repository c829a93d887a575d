"""Arrays on a mesh: pictures of who holds what."""
