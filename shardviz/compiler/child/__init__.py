"""The child process: the only files of shardviz that import jax."""
