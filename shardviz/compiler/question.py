"""Problems, programs, layouts, collectives and measurements as calls to the child, with what JAX needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from shardviz.codegen.code_literals import parameters_code
from shardviz.codegen.collective import shard_code
from shardviz.codegen.program_function import ProgramFunction, stacked
from shardviz.collectives.operations.several_dims import OfSeveral
from shardviz.compiler.messages import (
    ChildCall,
    CollectiveCode,
    ModuleQuestion,
    Question,
    StatementPart,
    TargetMesh,
)
from shardviz.errors import QuestionError, TargetError, plural
from shardviz.lazy_names import LazyImports
from shardviz.planner.problem.functions import statement_code
from shardviz.reports.lowered_module import LoweredModule, ProgramChange, ScheduleCandidate
from shardviz.sharding import Mesh, PartitionSpec, canonical_dtype
from shardviz.sharding.axis_parts import finest_parts, in_parts
from shardviz.targets import UNSAFE, Target, check_mesh
from shardviz.targets.hardware import topology_request

with LazyImports():
    from shardviz.codegen import plan as plan_program

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives.operation import Operation
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem, Statement


class _ChildFunction(ProgramFunction):
    """A program's functions, in which the child makes each statement, and splits what else is to be split."""

    @cached_property
    def parts(self) -> list[Statement]:
        """The forward statements, which JAX differentiates, and the optimizer's."""
        return [part for part in self.problem.parts if part.phase in ("forward", "optimizer")]

    def _statements(self, parts: Sequence[Statement]) -> list[str]:
        lines = []
        for part in parts:
            operands = [self.names[operand.name] for operand in part.operands]
            made = f"module.statement({', '.join([str(self.parts.index(part)), *operands])})"
            lines.append(f"    {self.names[part.result.name]} = {made}")
        return lines

    def _constraint(self, name: str, spec: PartitionSpec) -> str:
        return f"module.split({name}, {spec.dims}, {spec.unreduced})"


def question_for(problem: Problem, target: Target) -> Question:
    """A problem's program: of a train step the forward statements, to differentiate, and the optimizer's."""
    is_explicit = problem.axis_types == "explicit"
    function, parts = _ChildFunction(problem), []
    for part in function.parts:
        operands = [f"operands[{index}]" for index in range(len(part.operands))]
        code = statement_code(part, operands, "wanted" if is_explicit else "")
        parts.append(StatementPart(code, part.operands, part.result, part is problem.parts[-1]))
    mesh = target_mesh(target, problem.mesh, (array.spec for array in problem.arrays), is_explicit)
    arguments, results = (
        tuple(stacked(array, problem) for array in arrays)
        for arrays in (problem.arguments, problem.returned_arrays)
    )
    lines = function.lines()
    taken, last = problem.passed_on or problem.arguments[0], problem.forward[-1].result
    if problem.layers > 1 and (last.shape, last.dtype) != (taken.shape, taken.dtype):
        differs = "shape" if last.shape != taken.shape else "dtype"
        refused = f"{last.name} cannot be the next layer's {taken.name}: it has another {differs}"
        lines = ["def program(*values):", f"    module.refuse({refused!r})"]
    return Question(mesh, tuple(parts), arguments, results, "\n".join(lines))


def module_question(
    program: LoweredModule, target: Target, options: Mapping[str, Any], changes: Sequence[ProgramChange]
) -> ModuleQuestion:
    """A program of the user's for a target, with `changes` that are made to it before; `options` go before
    those of its jit. Raises `TargetError` for the devices at hand, for which JAX compiles in the user's
    process, and for a program with another number of devices than the target."""
    if target.name == "real":
        problem = "the program's own process compiles for the devices that JAX finds there"
        raise TargetError(problem, "leave out the target, or name hardware such as v5e:2x4")
    if not program.meshes and target.machine is not None and target.machine.devices != program.devices:
        raise TargetError(
            f"no argument is on a mesh, so the program runs on {plural(program.devices, 'device')}, and "
            f"{target.name} has {target.machine.devices:,}",
            f"give arguments NamedSharding(mesh, P(…)) on a mesh of {target.machine.devices:,} devices",
        )
    check_mesh(target, program.mesh)
    devices = target_mesh(target, program.mesh)
    # What a jit asks of another compiler, XLA for CPU refuses.
    given = dict(program.options if target.machine is not None else ()) | dict(options)
    for change in changes:
        given |= dict(change.options if isinstance(change, ScheduleCandidate) else ())
    return ModuleQuestion(devices, program.code, tuple(given.items()), tuple(changes))


def run_call(operation: Operation, mesh: Mesh, shards: NDArray[Any], target: Target) -> ChildCall:
    """The call that runs a collective. Raises `QuestionError` for what the operation refuses, since some of
    it would end the child, and `TargetError` for a target that runs nothing or cannot hold the mesh."""
    check_runs(target, mesh)
    if len(shards) != mesh.size:
        problem = f"{len(shards):,} shards for the {mesh.size:,} devices of the mesh {mesh}"
        raise QuestionError(problem, "give one per device")
    dtype = canonical_dtype(str(shards.dtype))
    operation.check(shards.shape[1:], dtype, operation.pattern(operation.dims(mesh)).group_size)
    if target.name == "cpu" and dtype in UNSAFE:
        raise TargetError(f"XLA for CPU does not move {dtype} reliably", "use s4, u4 or s8")
    devices = target_mesh(target, mesh, [PartitionSpec((operation.axes,))])
    code = _collective_code(operation, shards.shape[1:], in_parts(operation.axes, devices.jax_names))
    return ChildCall("collective.run", (devices, code, shards, dtype))


def plan_call(
    plan: Plan, shards: Sequence[NDArray[Any]], arguments: Sequence[NDArray[Any]], target: Target
) -> ChildCall:
    """The call that runs a plan step by step, and its program on one device; raises as `run_call`."""
    check_runs(target, plan.problem.mesh)
    part_plan, code = plan_program.steps_code(plan)
    mesh = target_mesh(target, part_plan.problem.mesh)
    return ChildCall("collective.run_plan", (mesh, code, tuple(shards), tuple(arguments)))


def check_runs(target: Target, mesh: Mesh) -> None:
    """Raise `TargetError` for a target that runs nothing or can never have as many devices."""
    if target.name == "shardy" or target.machine is not None:
        raise TargetError(f"target {target.name} has no devices to run on", "use cpu or real")
    if target.max_devices is not None and mesh.size > target.max_devices:
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but {target.name} has at most {target.max_devices:,}",
            "use a smaller mesh",
        )


def _collective_code(operation: Operation, shape: tuple[int, ...], axes: tuple[str, ...]) -> CollectiveCode:
    """The code of a collective on shards of a shape; JAX 0.10 and 0.12 lack two on some platforms."""
    name, over = operation.name, repr(axes[0] if len(axes) == 1 else axes)
    before, lines = shard_code(operation, shape, "x", over)
    if isinstance(operation, OfSeveral):
        tiled = ", 0, 0, tiled=True" if name == "all_to_all" else ""
        return CollectiveCode(name, f"jax.lax.{name}(pieces, {over}{tiled})", tuple(lines))
    if name == "ragged_all_to_all":
        given = "output, input_offsets, send_sizes, output_offsets, recv_sizes"
        program = f"jax.lax.{name}(x, {given}, axis_name={over})"
        call = f"{name}(x, {over}, {operation.parameters['send_sizes']})"
        instead = f"jax.lax.all_gather(x, {over})[rows]", (*before, *lines)
        return CollectiveCode(name, program, (call,), ("gpu", "tpu"), instead)
    given = parameters_code(operation.parameters, len(shape))
    if name == "ppermute":
        given = f", perm={operation.parameters['perm']}"
    program = f"jax.lax.{name}(x, {over}{given})"
    if name == "pbroadcast":
        return CollectiveCode(name, program, (program,), ("gpu",), (lines[0], tuple(lines)))
    return CollectiveCode(name, program, (program,))


def target_mesh(
    target: Target, mesh: Mesh, specs: Iterable[PartitionSpec | None] = (), is_explicit: bool = False
) -> TargetMesh:
    """The mesh on a target's devices, in which the parts of axes that specs name are axes."""
    axes = {axis for spec in specs if spec is not None for axis in (*spec.axes, *spec.unreduced)}
    jax_axes = tuple((part, mesh.axis_size(part)) for part in finest_parts(mesh.shape, axes))
    topology = None if target.machine is None else topology_request(target.machine)
    return TargetMesh(target.name, mesh, jax_axes, is_explicit, topology)
