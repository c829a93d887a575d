"""Operands that a program may add up before it multiplies them."""

from __future__ import annotations

from dataclasses import replace

from shardviz.planner import Contraction
from shardviz.sharding import ShardedArray


def summed_operands(part: Contraction) -> dict[str, ShardedArray]:
    """What is left of an operand once the dimensions that it alone has are added up, by the operand's name.

    `jax.numpy.einsum` does so: of ``a,dg->ad`` it multiplies A by the sums of W over g. A single operand has
    no such sums, as they are the result.
    """
    summed = {}
    for place, operand in enumerate(part.operands):
        others = [each.dims for number, each in enumerate(part.operands) if number != place]
        elsewhere = {dim for dims in (*others, part.result.dims) for dim in dims}
        alone = [dim for dim in dict.fromkeys(operand.dims) if dim not in elsewhere]
        if others and alone:
            kept = [place for place, dim in enumerate(operand.dims) if dim in elsewhere]
            summed[operand.name] = replace(
                operand,
                name=f"the sums of {operand.name} over {', '.join(alone)}",
                dims=tuple(operand.dims[place] for place in kept),
                shape=tuple(operand.shape[place] for place in kept),
                spec=None,
            )
    return summed
