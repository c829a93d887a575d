"""What runs in the child process: the only files of shardviz that import jax."""
