"""The meaning of each collective, the schedules that carry it out, and the simulator that runs them.

Operation  what JAX calls it, with JAX's parameters: how shards are cut into chunks
Pattern    which member of a group starts with which chunk, and which ends with it
Schedule   rounds of sends by which an algorithm carries out a pattern
Frames     a schedule run on numbers: who holds what after every round"""
