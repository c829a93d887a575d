"""The statements of an optimizer for one parameter, and how its state is split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.problem.training import Optimizer
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray


def optimizer_statements(
    parameter: ShardedArray,
    gradient: ShardedArray,
    optimizer: Optimizer,
    mesh: Mesh,
    unused: Callable[[str], str],
) -> dict[str, Statement]:
    """The update of a parameter by its gradient: by each argument that it replaces a statement, in the order
    in which they run. `unused` makes of a name one that no other array has.

    The rate is a constant, as is Adam's correction of its moments' bias, which is a factor of the rate.
    """
    spec = state_spec(parameter, optimizer.over, mesh)
    updates: dict[str, Statement] = {}

    def state(name: str, dtype: str) -> ShardedArray:
        return ShardedArray(unused(f"{parameter.name}_{name}"), parameter.dims, parameter.shape, dtype, spec)

    def update(old: ShardedArray, function: str, *operands: ShardedArray) -> ShardedArray:
        new = replace(old, name=unused(f"{old.name}_new"))
        einsum = Einsum((old.dims,) * len(operands), old.dims)
        updates[old.name] = Statement(
            einsum, operands, new, function, phase="optimizer", source=parameter.name
        )
        return new.with_spec(None)

    master = parameter
    if optimizer.master and optimizer.master != parameter.dtype:
        master = state("master", optimizer.master)
    gradient = gradient.with_spec(None)
    if optimizer.rule == "adam":
        mean, square = state("mean", optimizer.moments), state("square", optimizer.moments)
        new_mean = update(mean, "adam_mean", mean, gradient)
        new_square = update(square, "adam_square", square, gradient)
        updated = update(master, "adam_update", master, new_mean, new_square)
    else:
        updated = update(master, "sgd_update", master, gradient)
    if master is not parameter:
        update(parameter, "convert", updated)
    return updates


def state_spec(parameter: ShardedArray, over: tuple[str, ...], mesh: Mesh) -> PartitionSpec:
    """The parameter's spec with the axes `over` that it does not use, each on the first dimension that then
    still divides; an axis that divides none is left out."""
    spec = PartitionSpec(parameter.decided_spec.dims)
    for axis in over:
        if axis in spec.axes:
            continue
        for dim, size in enumerate(parameter.shape):
            axes = (*spec.dims[dim], axis)
            if size % mesh.group_size(axes) == 0:
                spec = PartitionSpec((*spec.dims[:dim], axes, *spec.dims[dim + 1 :]))
                break
    return spec
