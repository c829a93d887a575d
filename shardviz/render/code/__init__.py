"""JAX code: complete programs that run as they are, on simulated devices.

spelling           names, specs, dtypes and meshes as JAX writes them
problem_code       a problem: arrays placed, the einsums jitted and compiled, its collectives printed
plan_code          a plan by hand in `shard_map`, its result compared with that of one device
layout_code        one array: what JAX says of who holds what
size_limits        what a laptop can hold and multiply
printed_code       the lines that print a compiled program's collectives
setting            where it compiles: imports and mesh, for simulated or real devices
described_code     the same for TPUs and GPUs that are not here
shardy_code        the same for Shardy, which decides without devices
refusals           what JAX may refuse, and what it takes under Explicit axes alone
collective_code    one collective in `shard_map`, its result printed
rounds_code        the same by hand, one ppermute an exchange, printed round by round
ragged_code        ragged_all_to_all, which JAX has not on CPUs, by an all_gather
highlighted        code in colours
"""
