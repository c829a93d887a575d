"""A problem as a JAX program that compiles it and prints what the compiler made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.compiler.question import subscripts
from shardviz.compiler.targets import MAX_CPU_DEVICES, TARGETS, check_mesh
from shardviz.errors import plural
from shardviz.render.code.printed_code import printed_code
from shardviz.render.code.refusals import may_be_refused, needs_explicit
from shardviz.render.code.setting import setting_for
from shardviz.render.code.shardy_code import shardy_passes_code
from shardviz.render.code.size_limits import is_runnable
from shardviz.render.code.spelling import dtype_code, names_code, spec_code

if TYPE_CHECKING:
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Contraction, Problem
    from shardviz.sharding import PartitionSpec, ShardedArray

MAX_LISTED = 16
"""Devices whose part of the result is printed."""


def problem_code(problem: Problem, target: Target | None = None) -> str:
    """A complete program: mesh, arrays, the jitted einsums, their collectives, the result's layout.

    It compiles for the hardware of `target`; without one for simulated devices, or, where the mesh is too
    large for them, with Shardy alone, which needs none. Where the arrays are too large for a laptop it
    compiles without making them. Raises `TargetError` for a target of another size.
    """
    asked = problem
    if needs_explicit(problem):
        problem = replace(problem, axis_types="explicit")
    if target is None:
        target = TARGETS["cpu" if problem.mesh.size <= MAX_CPU_DEVICES else "shardy"]
    check_mesh(target, problem.mesh)
    setting = setting_for(target, problem)
    run = setting.has_devices and is_runnable(problem)
    guarded = may_be_refused(problem, target)
    parts = [
        [f'"""{_title(problem, target)}"""', ""],
        [*setting.imports, ""],
        [*_explained(asked, problem), *setting.mesh, "", ""],
        [*_placed(problem, run), "", ""],
        [*_program(problem), "", ""],
        _passes(problem, guarded) if target.name == "shardy" else _compiled(problem, guarded),
        ["", *_run(problem)] if run else [],
    ]
    return "".join(f"{line}\n" for lines in parts for line in lines)


def _title(problem: Problem, target: Target) -> str:
    einsums = "; ".join(str(part.einsum) for part in problem.parts)
    mesh = ", ".join(f"{name}={size}" for name, size in problem.mesh.shape.items())
    return f"{einsums} on the mesh {mesh}{'' if target.name in TARGETS else f' of {target.name}'}."


def _explained(asked: Problem, problem: Problem) -> list[str]:
    """Why the axes have another type than in the question."""
    if asked.axis_types == problem.axis_types:
        return []
    return ["# JAX leaves sums unreduced under Explicit axes alone, so the axes are Explicit here."]


def _placed(problem: Problem, run: bool) -> list[str]:
    dtype = dtype_code(problem.arguments[0].dtype)
    lines = ["def place(shape, spec):"]
    sharding = "NamedSharding(mesh, spec)"
    if run:
        lines.append(f"    return jax.device_put(jnp.ones(shape, {dtype}), {sharding})")
    else:
        lines.append("    # Shapes are enough to compile; jax.device_put(array, sharding) places real ones.")
        lines.append(f"    return jax.ShapeDtypeStruct(shape, {dtype}, sharding={sharding})")
    names = _names(problem)
    lines += ["", ""]
    lines += [f"{names[each.name]} = place({each.shape}, {_spec(each)})" for each in problem.arguments]
    return lines


def _program(problem: Problem) -> list[str]:
    names = _names(problem)
    arguments = ", ".join(names[array.name] for array in problem.arguments)
    lines = [f"def program({arguments}):"]
    previous: ShardedArray | None = None
    for part in problem.parts:
        lines += _constraint(problem, part, previous)
        lines.append(f"    {_einsum(problem, part)}")
        previous = part.result
        if problem.axis_types == "explicit":
            name = names[previous.name]
            lines.append(f'    print("{name}:", jax.typeof({name}))')
        elif previous.spec is not None and part is not problem.parts[-1]:
            lines.append(f"    {_constrained(problem, previous.name, previous.spec)}")
    return [*lines, f"    return {names[problem.result.name]}"]


def _einsum(problem: Problem, part: Contraction) -> str:
    names = _names(problem)
    operands = ", ".join(names[operand.name] for operand in part.operands)
    wanted = ""
    if problem.axis_types == "explicit" and part.result.spec is not None:
        wanted = f", out_sharding=NamedSharding(mesh, {spec_code(part.result.spec)})"
    return f'{names[part.result.name]} = jnp.einsum("{subscripts(part.einsum)}", {operands}{wanted})'


def _constraint(problem: Problem, part: Contraction, previous: ShardedArray | None) -> list[str]:
    """What a part asks of the result of the one before."""
    first = part.operands[0]
    if previous is None or first.spec is None or first.spec == previous.spec:
        return []
    return [f"    {_constrained(problem, first.name, first.spec)}"]


def _constrained(problem: Problem, array: str, spec: PartitionSpec) -> str:
    name = _names(problem)[array]
    explicit = problem.axis_types == "explicit"
    call = "jax.sharding.reshard" if explicit else "jax.lax.with_sharding_constraint"
    return f"{name} = {call}({name}, NamedSharding(mesh, {spec_code(spec)}))"


def _jitted(problem: Problem) -> str:
    """The jitted program, with the sharding that its result must have."""
    spec = problem.result.spec
    wanted = "" if spec is None else f", out_shardings=NamedSharding(mesh, {spec_code(spec)})"
    return f"jax.jit(program{wanted})"


def _arguments(problem: Problem) -> str:
    names = _names(problem)
    return ", ".join(names[array.name] for array in problem.arguments)


def _compiled(problem: Problem, guarded: bool) -> list[str]:
    return [
        f"jitted = {_jitted(problem)}",
        *_guarded(f"compiled = jitted.lower({_arguments(problem)}).compile()", guarded),
        "",
        'print("the result is split as", compiled.output_shardings)',
        *printed_code(),
    ]


def _passes(problem: Problem, guarded: bool) -> list[str]:
    lowered = f'lowered = jitted.trace({_arguments(problem)}).lower(lowering_platforms=("tpu",))'
    return [f"jitted = {_jitted(problem)}", *_guarded(lowered, guarded), *shardy_passes_code()]


def _guarded(line: str, guarded: bool) -> list[str]:
    """A line that ends the program where JAX or its compiler refuses, with what they say."""
    if not guarded:
        return [line]
    return [
        "try:",
        f"    {line}",
        "except Exception as error:",
        '    print("refused:", error)',
        "    raise SystemExit from None",
    ]


def _run(problem: Problem) -> list[str]:
    result = _names(problem)[problem.result.name]
    spec = problem.result.spec
    lines = [f"{result} = jitted({_arguments(problem)})"]
    if spec is not None and spec.unreduced:
        # JAX has no indices of addends.
        lines += [
            f"for shard in {result}.addressable_shards:",
            '    print(f"device {shard.device.id} holds an addend of {shard.data.shape}")',
        ]
    elif problem.mesh.size <= MAX_LISTED:
        lines += [
            f"for shard in {result}.addressable_shards:",
            '    print(f"device {shard.device.id} holds {shard.data.shape} from {shard.index}")',
        ]
    else:
        lines.append(f'print("{plural(problem.mesh.size, "device")} hold", {result}.sharding)')
    return lines


def _names(problem: Problem) -> dict[str, str]:
    arrays = [array.name for part in problem.parts for array in (*part.operands, part.result)]
    return names_code(dict.fromkeys(arrays))


def _spec(array: ShardedArray) -> str:
    return spec_code(array.decided_spec)
