"""`shardviz.with_shardings`: shapes of arrays that do not exist, and how each would be sharded."""

from __future__ import annotations

import sys
from typing import Any

from shardviz.errors import QuestionError


def with_shardings(shapes: Any, shardings: Any, mesh: Any = None) -> Any:
    """Return a tree of `jax.ShapeDtypeStruct`s, for `inspect` and for `shardviz program`.

    `shapes` is a tree of what has a shape and a dtype, such as `jax.eval_shape` returns; other leaves stay.
    `shardings` is a tree of JAX's shardings, or of `PartitionSpec`s on `mesh`, a mesh of JAX's. As in
    `jax.jit`'s `in_shardings`, one stands for all leaves below it, and None leaves them to the compiler.

    Raises `QuestionError` for a `PartitionSpec` without a mesh, and what JAX raises for trees that differ.
    """
    jax = sys.modules["jax"]
    spec = jax.sharding.PartitionSpec

    def placed(sharding: Any, below: Any) -> Any:
        if isinstance(sharding, spec):
            if mesh is None:
                raise QuestionError(f"{sharding} is on no mesh", "add mesh=mesh, the mesh of its axes")
            sharding = jax.sharding.NamedSharding(mesh, sharding)

        def of_leaf(leaf: Any) -> Any:
            is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
            return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if is_array else leaf

        return jax.tree.map(of_leaf, below)

    return jax.tree.map(
        placed, shardings, shapes, is_leaf=lambda each: each is None or isinstance(each, spec)
    )
