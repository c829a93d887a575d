"""Problems, layouts and collectives as messages to the child: what JAX needs of them and no more."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING, Any

from shardviz.compiler.described_hardware import topology_request
from shardviz.compiler.messages import Array, AskLayout, DeviceMesh, EinsumPart, Question, RunCollective, Spec
from shardviz.errors import QuestionError, TargetError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.compiler.targets import Target
    from shardviz.notation.einsum import Einsum
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh, ShardedArray


UNSAFE = ("s2", "u2")
"""Types whose values XLA for CPU mixes up, or on which it dies (jaxlib 0.10 and 0.12)."""


def question_for(problem: Problem, target: Target) -> Question:
    """The message that has the child compile the problem for a target."""
    parts = tuple(
        EinsumPart(subscripts(part.einsum), tuple(map(_array, part.operands)), _array(part.result))
        for part in problem.parts
    )
    mesh = _mesh(problem.mesh, is_explicit=problem.axis_types == "explicit")
    topology = None if target.cluster is None else topology_request(target.cluster)
    return Question(target.name, mesh, parts, topology)


def layout_request(array: ShardedArray, mesh: Mesh) -> AskLayout:
    """The message that asks what every device holds of an array.

    Raises `TargetError` for a mesh of more devices than can be simulated.
    """
    from shardviz.compiler.targets import TARGETS, check_mesh

    check_mesh(TARGETS["cpu"], mesh)
    return AskLayout(_mesh(mesh), _array(array))


def run_request(operation: Operation, mesh: Mesh, shards: NDArray[Any], target: Target) -> RunCollective:
    """The message that has the child run a collective.

    Raises `QuestionError` for what the operation refuses, since some of it would end the child, and
    `TargetError` for a target that runs nothing or cannot hold the mesh.
    """
    from shardviz.sharding import canonical_dtype

    if target.name == "shardy" or target.cluster is not None:
        raise TargetError(f"target {target.name} has no devices to run on", "use cpu or real")
    if target.max_devices is not None and mesh.size > target.max_devices:
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but {target.name} has at most {target.max_devices:,}",
            "use a smaller mesh",
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
        raise TargetError(f"XLA for CPU does not move {dtype} reliably", "use s4, u4 or s8")
    return RunCollective(
        target.name,
        _mesh(mesh),
        operation.name,
        operation.axes,
        tuple(operation.parameters.items()),
        shards.shape[1:],
        dtype,
        shards.tobytes(),
    )


def subscripts(einsum: Einsum) -> str:
    """The einsum as `jnp.einsum` takes it: a dimension with a longer name gets a letter that is free."""
    free = (letter for letter in ascii_letters if letter not in einsum.dims)
    letters = {dim: dim if len(dim) == 1 and dim in ascii_letters else next(free) for dim in einsum.dims}
    operands = ",".join("".join(letters[dim] for dim in operand) for operand in einsum.operands)
    return f"{operands}->{''.join(letters[dim] for dim in einsum.result)}"


def _mesh(mesh: Mesh, is_explicit: bool = False) -> DeviceMesh:
    return DeviceMesh(mesh.axis_names, mesh.axis_sizes, mesh.device_order, is_explicit)


def _array(array: ShardedArray) -> Array:
    spec = None if array.spec is None else Spec(array.spec.dims, array.spec.unreduced)
    return Array(array.name, array.shape, array.dtype, spec)
