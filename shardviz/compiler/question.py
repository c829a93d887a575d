"""A problem as a question to the child."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING

from shardviz.compiler.messages import Array, AskLayout, Part, Question, Spec

if TYPE_CHECKING:
    from shardviz.compiler.targets import Target
    from shardviz.notation.einsum import Einsum
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh, ShardedArray


def question_for(problem: Problem, target: Target) -> Question:
    """What the child must know to compile the problem for a target."""
    mesh = problem.mesh
    parts = tuple(
        Part(subscripts(part.einsum), tuple(map(_array, part.operands)), _array(part.result))
        for part in problem.parts
    )
    explicit = problem.axis_types == "explicit"
    machine = target.machines.machine if target.machines is not None else None
    return Question(
        target.name, mesh.axis_names, mesh.axis_sizes, mesh.device_order, explicit, parts, machine
    )


def layout_request(array: ShardedArray, mesh: Mesh) -> AskLayout:
    """What the child must know to say what every device holds of an array.

    Raises `TargetError` for a mesh of more devices than can be simulated.
    """
    from shardviz.compiler.targets import TARGETS, check_mesh

    check_mesh(TARGETS["cpu"], mesh)
    return AskLayout("cpu", mesh.axis_names, mesh.axis_sizes, mesh.device_order, _array(array))


def subscripts(einsum: Einsum) -> str:
    """The einsum as `jnp.einsum` takes it: a dimension with a longer name gets a letter that is free."""
    free = (letter for letter in ascii_letters if letter not in einsum.dims)
    letters = {dim: dim if len(dim) == 1 and dim in ascii_letters else next(free) for dim in einsum.dims}
    operands = ",".join("".join(letters[dim] for dim in operand) for operand in einsum.operands)
    return f"{operands}->{''.join(letters[dim] for dim in einsum.result)}"


def _array(array: ShardedArray) -> Array:
    spec = None if array.spec is None else Spec(array.spec.dims, array.spec.unreduced)
    return Array(array.name, array.shape, array.dtype, spec)
