"""Plans that are wrong in one place, to see that the executor notices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.sharding import PartitionSpec

OPS = ("all_gather", "psum", "psum_scatter", "all_to_all", "slice")


def mutants(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Plans with one fault each, and the kind of fault."""
    steps = plan.steps
    for place, step in enumerate(steps):
        for kind, wrong in _wrong_steps(step):
            yield kind, _with(plan, place, wrong)
        yield "without a step", replace(plan, steps=(*steps[:place], *steps[place + 1 :]))
        for kind, spec in _wrong_specs(step.to_spec):
            yield f"{kind}, all steps agreeing", _relabelled(plan, place, spec)
        if step.op in ("psum", "psum_scatter"):
            yield "a sum forgotten, all steps agreeing", _forgotten(plan, place)


def _with(plan: Plan, place: int, step: Step) -> Plan:
    return replace(plan, steps=(*plan.steps[:place], step, *plan.steps[place + 1 :]))


def _wrong_steps(step: Step) -> Iterator[tuple[str, Step]]:
    if step.op in LOCAL_OPS and step.einsum is not None:
        operands, result = step.einsum.operands, step.einsum.result
        # A piece of one element is the same turned.
        if len(result) > 1 and any(size > 1 for size in step.shape):
            turned = replace(step.einsum, result=result[::-1])
            yield "a result turned", replace(step, einsum=turned)
        # Of the same dimensions in another order they may be the same sum with other letters.
        is_square = len(step.operands) > 1 and step.operands[0] == step.operands[1]
        is_alike = len(operands) > 1 and len(operands[0]) == len(operands[1]) and not is_square
        if is_alike and {*operands[0]} != {*operands[1]}:
            yield "operands exchanged", replace(step, einsum=replace(step.einsum, operands=operands[::-1]))
        return
    for op in OPS:
        if op != step.op:
            yield "another operation", replace(step, op=op)
    if len(step.axes) > 1:
        yield "an axis too few", replace(step, axes=step.axes[1:])
        # The order of a sum's devices does not matter, and a permute's pairs follow from its specs.
        if step.dim is not None and _one_dim(step):
            yield "axes in another order", replace(step, axes=step.axes[::-1])
    if step.dim is not None and step.from_spec.rank > 1:
        yield "another dimension", replace(step, dim=(step.dim + 1) % step.from_spec.rank)


def _one_dim(step: Step) -> bool:
    """The step changes no more than one dimension each way, so that the order of its axes tells it."""
    pairs = list(zip(step.from_spec.dims, step.to_spec.dims, strict=True))
    return (
        sum(len(old) > len(new) for old, new in pairs) <= 1
        and sum(len(old) < len(new) for old, new in pairs) <= 1
    )


def _wrong_specs(spec: PartitionSpec) -> Iterator[tuple[str, PartitionSpec]]:
    for dim, axes in enumerate(spec.dims):
        others = list(spec.dims)
        if len(axes) > 1:
            others[dim] = axes[::-1]
            yield "a dimension's axes in another order", replace(spec, dims=tuple(others))
        if axes and spec.rank > 1:
            others = list(spec.dims)
            others[dim], others[dim - 1] = axes[:-1], (*others[dim - 1], axes[-1])
            yield "an axis on another dimension", replace(spec, dims=tuple(others))
    if spec.unreduced:
        yield "sums not pending", replace(spec, unreduced=())


def _relabelled(plan: Plan, place: int, spec: PartitionSpec) -> Plan:
    """The plan in which a step leaves its array under another spec, which later steps take it from."""
    old, steps = plan.steps[place], list(plan.steps)
    steps[place] = replace(old, to_spec=spec)
    for index in range(place + 1, len(steps)):
        step = steps[index]
        if step.array == old.array and step.from_spec == old.to_spec:
            steps[index] = replace(step, from_spec=spec)
            if step.to_spec != old.to_spec:
                break
        taken = tuple(
            spec if name == old.array and held == old.to_spec else held
            for name, held in zip(step.operands, step.operand_specs, strict=bool(step.operand_specs))
        )
        steps[index] = replace(steps[index], operand_specs=taken)
    return replace(plan, steps=tuple(steps))


def _forgotten(plan: Plan, place: int) -> Plan:
    """The plan without a sum: the array is taken for what the sum would have made of it."""
    gone = plan.steps[place]
    steps = [
        replace(step, to_spec=gone.to_spec)
        if index < place and step.array == gone.array and step.to_spec == gone.from_spec
        else step
        for index, step in enumerate(plan.steps)
        if index != place
    ]
    return replace(plan, steps=tuple(steps))
