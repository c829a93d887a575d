"""A collective that JAX ran: what it is asked, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.compiler.messages import RunCollective
from shardviz.errors import QuestionError, TargetError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.compiler.messages import RunOutput, Versions
    from shardviz.compiler.targets import Target
    from shardviz.sharding import Mesh


@dataclass(frozen=True)
class ExecutionResult:
    """What JAX made of shards. `status` is "ok", "error" or "unavailable" as in `TargetResult`.

    `shards` is every device's result, by mesh position; None where there is none. `program` is the call
    that ran, and `note` says what stood in for an operation that the platform lacks. `elapsed_s` are the
    seconds from request to answer in the child.
    """

    target: str
    status: str
    shards: NDArray[Any] | None = None
    program: str = ""
    note: str = ""
    elapsed_s: float = 0.0
    error: str = ""
    hint: str = ""
    versions: tuple[tuple[str, str], ...] = ()


UNSAFE = ("s2", "u2")
"""Types whose values XLA for CPU mixes up, or on which it dies (jaxlib 0.10 and 0.12)."""


def run_request(operation: Operation, mesh: Mesh, shards: NDArray[Any], target: Target) -> RunCollective:
    """The request to the child.

    Raises `QuestionError` for what the operation refuses, since some of it would end the child, and
    `TargetError` for a target that runs nothing or cannot hold the mesh.
    """
    from shardviz.sharding import canonical_dtype

    if target.name == "shardy" or target.machines is not None:
        raise TargetError(f"target {target.name} has no devices to run on", "use cpu or real")
    if target.max_devices is not None and mesh.size > target.max_devices:
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but {target.name} has at most {target.max_devices:,}",
            "use a smaller mesh, or leave out the comparison with --on none",
        )
    if len(shards) != mesh.size:
        raise QuestionError(
            f"{len(shards):,} shards for the {mesh.size:,} devices of the mesh {mesh}", "give one a device"
        )
    dims = operation.dims(mesh)
    pattern = operation.pattern(dims)
    dtype = canonical_dtype(str(shards.dtype))
    operation.check(shards.shape[1:], dtype, pattern.group_size)
    if target.name == "cpu" and dtype in UNSAFE:
        raise TargetError(f"XLA for CPU does not move {dtype} reliably", "use s4, u4 or s8, or --on none")
    return RunCollective(
        target.name,
        operation.name,
        operation.axes,
        tuple(operation.parameters.items()),
        mesh.axis_names,
        mesh.axis_sizes,
        mesh.device_order,
        shards.shape[1:],
        dtype,
        shards.tobytes(),
    )


def ran(output: RunOutput, mesh: Mesh, target: str, versions: Versions) -> ExecutionResult:
    """The answer that the child's reply holds."""
    shards = None
    if output.status == "ok":
        import numpy as np

        from shardviz.collectives.values import numpy_dtype

        flat = np.frombuffer(output.shards, dtype=numpy_dtype(output.dtype))
        shards = flat.reshape(mesh.size, *output.shape)
    return ExecutionResult(
        target,
        output.status,
        shards,
        output.program,
        output.note,
        output.elapsed_s,
        output.error,
        output.hint,
        versions,
    )
