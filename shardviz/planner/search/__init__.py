"""The best meshes and shardings of a program on a machine. `mesh_ranking` looks at all `meshes`; `mesh_choices`
is what may be chosen on each, `fastest_sharding` the best sharding for one choice; it asks `program_tables` for
the figures of all shardings that a `program_space` has under the `rules` of its axes, and `least_sum` for the
best of them. Loads numpy. The space: docs/search.md."""
