"""The Python interface: the command line's answers as objects that print themselves.

explain   an einsum's plan, and what the compilers make of it
rank      every sharding of an einsum that is worth considering
search    the meshes and shardings that run a program fastest
read_hlo  the collectives in a compiler's text
inspect   the collectives in a function of this process, also for hardware that is not here

`shardviz` itself offers all of them; each is loaded when it is first used.
"""
