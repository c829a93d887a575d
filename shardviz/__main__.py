"""`python -m shardviz` is the command `shardviz`."""

from shardviz.cli import main

main()
