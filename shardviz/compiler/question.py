"""Problems, programs, layouts, collectives and measurements as messages to the child, with what JAX needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardviz.codegen.program_function import returned_arrays, stacked_names
from shardviz.codegen.statement_code import statement_code, subscripts
from shardviz.compiler.messages import (
    Array,
    AskLayout,
    CompileModule,
    DeviceMesh,
    Question,
    RunCollective,
    ShardingChange,
    Spec,
    StatementPart,
    TimeLoop,
)
from shardviz.errors import QuestionError, TargetError, plural
from shardviz.sharding import canonical_dtype
from shardviz.sharding.axis_parts import axis_part, finest_parts, parts_within
from shardviz.targets import TARGETS, UNSAFE, check_mesh
from shardviz.targets.described_hardware import topology_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.devices.question import Case
    from shardviz.planner.problem import Problem
    from shardviz.reports.lowered_module import LoweredModule
    from shardviz.reports.suggestions import ShardingCandidate
    from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
    from shardviz.targets import Target


def question_for(problem: Problem, target: Target) -> Question:
    """The message that has the child compile the problem for a target.

    Of a train step the child gets the forward statements, whose gradients JAX derives, and the optimizer's.
    """
    specs = [array.spec for array in problem.arrays if array.spec is not None]
    is_explicit = problem.axis_types == "explicit"
    mesh = _mesh(problem.mesh, _axes_of(specs), is_explicit)
    parts = tuple(
        StatementPart(
            statement_code(
                part,
                [f"operands[{place}]" for place in range(len(part.operands))],
                "wanted" if is_explicit else "",
            ),
            subscripts(part.einsum),
            tuple(_array(operand, mesh) for operand in part.operands),
            _array(part.result, mesh),
            part.phase == "forward",
        )
        for part in problem.parts
        if part.phase in ("forward", "optimizer")
    )
    made = {part.result.name: _array(part.result, mesh) for part in problem.parts}
    pairs = problem.gradients
    return Question(
        target.name,
        mesh,
        parts,
        None if target.cluster is None else topology_request(target.cluster),
        arguments=tuple(_array(each, mesh) for each in problem.arguments),
        results=tuple(_array(each, mesh) for each in returned_arrays(problem)),
        layers=problem.layers,
        stacked=stacked_names(problem),
        gradients=tuple((name, made[gradient]) for name, gradient in pairs if name not in made),
        cotangents=tuple((name, given) for name, given in pairs if name in made),
        remat="none" if problem.training is None else problem.training.remat,
    )


def module_request(
    program: LoweredModule,
    target: Target,
    options: Mapping[str, Any],
    with_costs: bool,
    changes: Sequence[ShardingCandidate] = (),
) -> CompileModule:
    """The message that has the child make `changes` to a program of the user's, and compile it for a target.

    Raises `TargetError` for the devices at hand, for which JAX compiles in the user's process, and for a
    program with another number of devices than the target.
    """
    if target.name == "real":
        raise TargetError(
            "the program's own process compiles for the devices that JAX finds there",
            "leave out the target, or name hardware such as v5e:2x4",
        )
    if not program.meshes and target.cluster is not None and target.cluster.devices != program.devices:
        raise TargetError(
            f"no argument is on a mesh, so the program runs on {plural(program.devices, 'device')}, and "
            f"{target.name} has {target.cluster.devices:,}",
            f"give arguments NamedSharding(mesh, P(…)) on a mesh of {target.cluster.devices:,} devices",
        )
    check_mesh(target, program.mesh)
    # The hardware decides where the devices are, whatever their order was in the user's process.
    mesh = DeviceMesh(program.mesh.axis_names, program.mesh.axis_sizes, None)
    topology = None if target.cluster is None else topology_request(target.cluster)
    return CompileModule(
        target.name,
        mesh,
        program.code,
        topology,
        tuple(options.items()),
        with_costs=with_costs,
        changes=tuple(
            ShardingChange(
                one.spec.dims,
                None if one.argument is None else one.argument.number,
                one.made_by,
                one.opcode,
                one.shape,
            )
            for one in changes
        ),
    )


def layout_request(array: ShardedArray, mesh: Mesh) -> AskLayout:
    """The message that asks what every device holds of an array.

    Raises `TargetError` for a mesh of more devices than can be simulated.
    """
    check_mesh(TARGETS["cpu"], mesh)
    refined = _mesh(mesh, _axes_of([array.decided_spec]))
    return AskLayout(refined, _array(array, refined))


def run_request(operation: Operation, mesh: Mesh, shards: NDArray[Any], target: Target) -> RunCollective:
    """The message that has the child run a collective.

    Raises `QuestionError` for what the operation refuses, since some of it would end the child, and
    `TargetError` for a target that runs nothing or cannot hold the mesh.
    """
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
    refined = _mesh(mesh, operation.axes)
    return RunCollective(
        target.name,
        refined,
        operation.name,
        _in_parts(operation.axes, refined),
        _parameters(operation, shards.shape[1:]),
        shards.shape[1:],
        dtype,
        shards.tobytes(),
    )


def loop_request(case: Case, mesh: Mesh, target: Target, runs: int) -> TimeLoop:
    """The message that has the child time a case.

    Raises `TargetError` for a target that runs nothing or can never have as many devices.
    """
    if target.name == "shardy" or target.cluster is not None:
        raise TargetError(f"target {target.name} has no devices to run on", "use cpu or real")
    if target.max_devices is not None and mesh.size > target.max_devices:
        most = plural(target.max_devices, "device")
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices, and {most} can be simulated", "use a smaller mesh"
        )
    shape = (case.side, case.side) if case.side else (_elements(case),)
    described = DeviceMesh(mesh.axis_names, mesh.axis_sizes, mesh.device_order)
    return TimeLoop(target.name, described, case, shape, runs)


def _elements(case: Case) -> int:
    """Elements of a device's operand."""
    return case.count * case.group_size if case.op in ("psum_scatter", "all_to_all") else case.count


def _parameters(operation: Operation, shape: tuple[int, ...]) -> tuple[tuple[str, Any], ...]:
    """JAX's parameters by name; for one that changes several dimensions, how pieces of a shard of a shape are
    dealt and collected: the grid, the order of its dimensions, and the shape that they are joined to."""
    from shardviz.collectives.operations.several_dims import AllToAllOfSeveral, OfSeveral

    if not isinstance(operation, OfSeveral):
        return tuple(operation.parameters.items())
    found = {"dealt": operation.deal(shape)}
    if isinstance(operation, AllToAllOfSeveral):
        found["collected"] = operation.collect(shape)
    return tuple((name, (each.grid, each.order, each.shape)) for name, each in found.items())


def _axes_of(specs: Iterable[PartitionSpec]) -> set[str]:
    return {axis for spec in specs for axis in (*spec.axes, *spec.unreduced)}


def _mesh(mesh: Mesh, axes: Iterable[str], is_explicit: bool = False) -> DeviceMesh:
    """The mesh, in which the parts of axes among `axes` are axes."""
    parts: tuple[tuple[str, int], ...] = ()
    if any(axis_part(axis) for axis in axes):
        finest = finest_parts(mesh.shape, axes)
        parts = tuple((part, mesh.axis_size(part)) for axis in mesh.axis_names for part in finest[axis])
    return DeviceMesh(mesh.axis_names, mesh.axis_sizes, mesh.device_order, is_explicit, parts)


def _in_parts(axes: Iterable[str], mesh: DeviceMesh) -> tuple[str, ...]:
    """The axes as the JAX mesh has them."""
    return tuple(part for axis in axes for part in parts_within(axis, mesh.jax_names))


def _array(array: ShardedArray, mesh: DeviceMesh) -> Array:
    spec = None
    if array.spec is not None:
        dims = tuple(_in_parts(axes, mesh) for axes in array.spec.dims)
        spec = Spec(dims, _in_parts(array.spec.unreduced, mesh))
    return Array(array.name, array.shape, array.dtype, spec)
