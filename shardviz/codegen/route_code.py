"""A way from one sharding to another as JAX code: a constraint for each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardviz.reports.rematerialization import RouteStep


def route_code(route: Iterable[RouteStep], name: str = "x") -> Iterator[str]:
    """A line for each step; `name` is the array's. The specs need a mesh in context (`jax.set_mesh`)."""
    for move in route:
        yield f"{name} = jax.lax.with_sharding_constraint({name}, {move.spec})  # {move.op.replace('_', '-')}"
