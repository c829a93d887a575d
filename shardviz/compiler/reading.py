"""From what the child sends back to an answer. Texts are read here, where no compiler waits for it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.compiler.compiled import Compiled
from shardviz.hlo import read_hlo, read_shardy
from shardviz.notation import write_spec
from shardviz.sharding import PartitionSpec

if TYPE_CHECKING:
    from shardviz.compiler.messages import Output, Spec, Versions
    from shardviz.planner.problem import Problem


def read_output(output: Output, problem: Problem, target: str, versions: Versions) -> Compiled:
    """The answer of a target. Raises what the readers raise for a text that they cannot read."""
    answer = Compiled(
        target,
        output.status,
        result_spec=_partition_spec(output.result_spec),
        typeof=output.typeof,
        text=output.text,
        elapsed_s=output.elapsed_s,
        error=output.error,
        hint=output.hint or _hint(output, problem),
        versions=versions,
    )
    if output.status != "ok":
        return answer
    if target == "shardy":
        module = read_shardy(output.text, problem.mesh)
        spec = module.result_specs[0]
        if spec is None and "sdy.mesh" not in output.text:
            spec = PartitionSpec.replicated(problem.result.rank)
        return replace(answer, collectives=module.collectives, result_spec=_as_asked(spec, problem))
    # Without partitions there is no module after partitioning, and nothing that moves.
    partitioned = read_hlo(output.partitioned, problem.mesh).collectives if output.partitioned else ()
    return replace(
        answer, collectives=read_hlo(output.text, problem.mesh).collectives, partitioned=partitioned
    )


def _partition_spec(spec: Spec | None) -> PartitionSpec | None:
    return None if spec is None else PartitionSpec(spec.dims, spec.unreduced)


def _as_asked(spec: PartitionSpec | None, problem: Problem) -> PartitionSpec | None:
    """Shardy leaves out axes of size 1; where that is all, the result is as the question has it."""
    asked, shape = problem.result.spec, problem.mesh.shape
    if spec is None or asked is None:
        return spec
    split = tuple(tuple(axis for axis in axes if shape[axis] > 1) for axes in asked.dims)
    return asked if spec == PartitionSpec(split, asked.unreduced) else spec


def _hint(output: Output, problem: Problem) -> str:
    """What would make JAX accept the question; "" when that is not known."""
    if output.status == "ok":
        return ""
    settled = _partition_spec(output.settled_by)
    if settled is not None:
        name = problem.parts[output.refused_part].result.name
        return f"out_sharding={settled} settles it: give {name} the spec {write_spec(settled)}"
    arrays = (*problem.arguments, *(part.result for part in problem.parts))
    for array in arrays:
        if re.search(rf"\b{array.dtype}\b", output.error, re.IGNORECASE):
            return f"this compiler lacks an operation on {array.dtype}: use --dtype bf16, f32 or s8"
    for array in arrays:
        if array.spec is None:
            continue
        parts = array.spec.parts(problem.mesh)
        for dim, size, count, axes in zip(array.dims, array.shape, parts, array.spec.dims, strict=True):
            if size % count:
                return (
                    f"dimension {dim} of {array.name} has {size:,} elements, which {count:,} devices along "
                    f"{', '.join(axes)} do not divide: choose a multiple of {count:,}, or leave it whole"
                )
    return ""
