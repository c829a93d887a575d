"""JAX code: complete programs that run as they are, on simulated devices.

spelling           names, specs, dtypes and meshes as JAX writes them
problem_code       a problem: arrays placed, the einsums jitted and compiled, its collectives printed
setting            where it compiles: imports and mesh, for simulated or real devices
described_code     the same for TPUs and GPUs that are not here
shardy_code        the same for Shardy, which decides without devices
refusals           what JAX may refuse, and what it takes under Explicit axes alone
collective_code    one collective in `shard_map`, its result printed
ragged_code        ragged_all_to_all, which JAX has not on CPUs, by an all_gather
highlighted        code in colours
"""
