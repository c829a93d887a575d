"""The best meshes and shardings of a program on a machine. `mesh_ranking` looks at all `meshes`,
`mesh_choices` at what may be chosen on one, `fastest_sharding` at one choice: it asks `program_tables` for
the figures of all shardings in the `program_space` of the axes' `rules`, and `least_sum` for the best.
Loads numpy. The space: docs/search.md."""
