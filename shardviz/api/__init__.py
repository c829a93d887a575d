"""The Python interface: the command line's answers as objects that print themselves.

explain   an einsum's plan, and the compilers' answers
rank      every sharding of an einsum that is worth considering
search    the meshes and shardings that run a program fastest
read_hlo  the collectives in a compiler's text
inspect   the collectives in a function of this process, also for hardware you don't have
lesson    a lesson: to see, to check predictions, to reveal
with_shardings   shapes of arguments, each with its sharding

`shardviz` itself offers all of them; each is loaded when it is first used."""
