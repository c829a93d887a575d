"""JAX code: complete programs that run as they are, on simulated devices.

problem        arrays placed, the einsums jitted and compiled for a target, its collectives printed; one
               array: what JAX says of who holds what
plan           a plan by hand in `shard_map`, its result compared with that of one device
collective     one collective in `shard_map`, its result printed; the same by hand, round by round
code_literals  names, specs, dtypes and meshes as JAX writes them"""
