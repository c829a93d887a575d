"""The statements of an optimizer for one parameter, and how its state is split."""

from __future__ import annotations

from collections.abc import Callable

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.training.options import Optimizer
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray


def optimizer_statements(
    parameter: ShardedArray,
    gradient: ShardedArray,
    optimizer: Optimizer,
    mesh: Mesh,
    unused: Callable[[str], str],
) -> tuple[Statement, ...]:
    """The update of a parameter by its gradient; `unused` makes a name that no other array has of one.

    The state's arrays are arguments, and the new ones are results, the new parameter's the last. The rate is
    a constant, as is Adam's correction of its moments' bias, which is a factor of the rate.
    """
    spec = state_spec(parameter, optimizer.over, mesh)
    parts: list[Statement] = []

    def state(name: str, dtype: str) -> ShardedArray:
        return ShardedArray(unused(f"{parameter.name}_{name}"), parameter.dims, parameter.shape, dtype, spec)

    def made(function: str, old: ShardedArray, *others: ShardedArray) -> ShardedArray:
        new = ShardedArray(unused(f"{old.name}_new"), old.dims, old.shape, old.dtype, old.spec)
        einsum = Einsum((old.dims,) * (1 + len(others)), old.dims)
        parts.append(
            Statement(einsum, (old, *others), new, function, phase="optimizer", source=parameter.name)
        )
        return new.with_spec(None)

    master = parameter
    if optimizer.master and optimizer.master != parameter.dtype:
        master = state("master", optimizer.master)
    gradient = gradient.with_spec(None)
    if optimizer.rule == "adam":
        mean = made("adam_mean", state("mean", optimizer.moments), gradient)
        square = made("adam_square", state("square", optimizer.moments), gradient)
        updated = made("adam_update", master, mean, square)
    else:
        updated = made("sgd_update", master, gradient)
    if master is not parameter:
        new = ShardedArray(
            unused(f"{parameter.name}_new"),
            parameter.dims,
            parameter.shape,
            parameter.dtype,
            parameter.spec,
        )
        einsum = Einsum((parameter.dims,), parameter.dims)
        parts.append(Statement(einsum, (updated,), new, "convert", phase="optimizer", source=parameter.name))
    return tuple(parts)


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
