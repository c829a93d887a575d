"""Whole models: names and shapes of parameters, and rules, become specs, memory and the collectives of a
step. `sources` read a model, `rules/` split its parameters, and `layer_program` writes its parts as programs
for the planner. Standard library only; no weights are read."""
