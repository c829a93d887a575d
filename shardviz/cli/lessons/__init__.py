"""What `shardviz lesson` does: opens and prints lessons, keeps the list, and checks lesson files with JAX."""
