"""A problem as a JAX program that compiles it and prints what the compiler made of it; the layout of one
array as one that prints who holds what."""

from __future__ import annotations

import math
from dataclasses import replace

from shardviz.codegen import code_literals as code
from shardviz.codegen.code_literals import PartAxes
from shardviz.codegen.program_function import ProgramFunction, stacked
from shardviz.errors import QuestionError, plural
from shardviz.hardware.chip_torus import SPLIT, parts_by_slice
from shardviz.hardware.machine import Machine
from shardviz.planner.problem import Problem, sizes_of
from shardviz.planner.problem.jax_code import dtype_code
from shardviz.sharding import Layout
from shardviz.targets import MAX_CPU_DEVICES, SHARDY_PASSES, TARGETS, Target, check_mesh
from shardviz.targets.hardware import target_config, topology_request

SURE = frozenset(("f16", "bf16", "f32", "f64", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"))
MAX_BYTES = 2**28
"""Bytes that the devices may hold together for arrays to be made and the program to be run."""
MAX_MULTIPLICATIONS = 2**36
"""Work of a second or so."""
MAX_LISTED = 16


def problem_code(problem: Problem, target: Target | None = None) -> str:
    """A complete program: mesh, arrays, the jitted einsums, their collectives, the result's layout. It
    compiles for the hardware of `target`; without one for simulated devices, or, where the mesh is too large
    for them, with Shardy alone. Where the arrays are too large it compiles without making them. Raises
    `TargetError` for a target of another size."""
    mesh = ", ".join(f"{name}={size}" for name, size in problem.mesh.shape.items())
    title = title_of(problem)
    text = title if title == problem.text else title.capitalize()
    part_axes = PartAxes.of(problem.mesh, code.axes_in(problem.arrays))
    problem, explained = part_axes.problem(problem), part_axes.comment
    is_sum = any(array.spec is not None and array.spec.unreduced for array in problem.arrays)
    if is_sum and problem.axis_types == "auto":
        problem = replace(problem, axis_types="explicit")
        explained += ["# JAX keeps partial sums under Explicit axes only, so the axes are Explicit here."]
    if target is None:
        target = TARGETS["cpu" if problem.mesh.size <= MAX_CPU_DEVICES else "shardy"]
    check_mesh(target, problem.mesh)
    title = f"{text} on the mesh {mesh}{'' if target.name in TARGETS else f' of {target.name}'}."
    is_summed = any(array.decided_spec.unreduced for array in problem.arguments)
    can_run = target.machine is None and target.name != "shardy" and not is_summed and not is_uneven(problem)
    run = can_run and is_small(problem, problem.layers)
    function = ProgramFunction(problem)
    parts = [
        [*explained, *_mesh_for(target, problem), "", ""],
        [*_placed(function, run), "", ""],
        [*function.lines(), "", ""],
        _passes(function) if target.name == "shardy" else _compiled(function),
        ["", *_run(function)] if run else [],
    ]
    is_tpu = target.machine is not None and target.process == "tpu"
    return code.program_text(title, parts, code.text_lines("tpu") if is_tpu else ())


def title_of(problem: Problem) -> str:
    """The einsums of a chain; of a longer program what it is."""
    if problem.is_chain and problem.layers == 1:
        return problem.text
    what = "a train step" if problem.gradients else "a program"
    often = f", {problem.layers} times" if problem.layers > 1 else ""
    return f"{what} of {plural(len(problem.forward), 'statement')}{often}"


def is_small(problem: Problem, times: int = 1) -> bool:
    """True if all devices together hold little of the arrays, and multiply little, so many times over."""
    held = sum(
        array.nbytes if array.spec is None else array.bytes_per_device(problem.mesh) * problem.mesh.size
        for array in (*problem.arguments, *(part.result for part in problem.parts))
    )
    work = sum(math.prod(sizes_of(part.operands).values()) for part in problem.parts)
    return held <= MAX_BYTES and times * work <= MAX_MULTIPLICATIONS


def is_uneven(problem: Problem) -> bool:
    """True if devices along some axes do not divide a dimension, which JAX refuses."""
    return any(
        size % count
        for array in problem.arrays
        if array.spec is not None
        for size, count in zip(array.shape, array.spec.parts(problem.mesh), strict=True)
    )


def _placed(function: ProgramFunction, run: bool) -> list[str]:
    problem = function.problem
    dtypes = [array.dtype for array in problem.arguments]
    usual = max(dtypes, key=dtypes.count)
    given = "" if len({*dtypes}) == 1 else f", dtype={dtype_code(usual)}"
    dtype = "dtype" if given else dtype_code(usual)
    lines = code.text_lines("place ones" if run else "place", given=given, dtype=dtype)
    for argument in problem.arguments:
        taken = stacked(argument, problem)
        spec = code.spec_code(taken.decided_spec)
        other = "" if argument.dtype == usual else f", {dtype_code(argument.dtype)}"
        lines.append(f"{function.names[argument.name]} = place({taken.shape}, {spec}{other})")
    return lines


def _jitted(problem: Problem) -> list[str]:
    specs = [stacked(array, problem).spec for array in problem.returned_arrays]
    if not any(specs):
        return ["jitted = jax.jit(program)"]
    wanted = ["None" if spec is None else f"NamedSharding(mesh, {code.spec_code(spec)})" for spec in specs]
    if len(wanted) == 1:
        return [f"jitted = jax.jit(program, out_shardings={wanted[0]})"]
    return ["jitted = jax.jit(program, out_shardings=(", *(f"    {sharding}," for sharding in wanted), "))"]


def _compiled(function: ProgramFunction) -> list[str]:
    are = "results are" if len(function.problem.returned_arrays) > 1 else "result is"
    lines = code.text_lines("compiled", arguments=function.arguments, are=are)
    return [*_jitted(function.problem), *lines, *code.text_lines("collectives")]


def _passes(function: ProgramFunction) -> list[str]:
    pipelines = "\n".join(f'"{pipeline}",' for pipeline in SHARDY_PASSES.values())
    arguments = function.arguments
    return [*_jitted(function.problem), *code.text_lines("shardy", arguments=arguments, pipelines=pipelines)]


def _run(function: ProgramFunction) -> list[str]:
    problem, arguments = function.problem, function.arguments
    if len(problem.returned_arrays) > 1:
        names = code.tuple_code(tuple(array.name for array in problem.returned_arrays))
        return code.text_lines("results", names=names, arguments=arguments)
    result, spec = function.names[problem.result.name], problem.result.spec
    # JAX has no indices of addends.
    held = "partial sums" if spec is not None and spec.unreduced else "shards"
    if held == "shards" and problem.mesh.size > MAX_LISTED:
        held = "sharding"
    devices = plural(problem.mesh.size, "device")
    return [
        f"{result} = jitted({arguments})",
        *code.text_lines(f"held {held}", result=result, devices=devices),
    ]


def _mesh_for(target: Target, problem: Problem) -> list[str]:
    mesh, types = problem.mesh, "Explicit" if problem.axis_types == "explicit" else "Auto"
    wide = code.wide_code(problem.arguments[0].dtype)
    host = code.text_lines("host")
    if target.name == "shardy":
        sizes, names = code.tuple_code(mesh.axis_sizes), code.tuple_code(mesh.axis_names)
        made = code.text_lines("abstract mesh", sizes=sizes, names=names, types=code.types_code(mesh, types))
        return [*wide, *host, *made]
    if (machine := target.machine) is not None:
        lines = [*wide, *host, *_found(target, machine)]
        if mesh.device_order is not None or machine.family.slices == 1:
            return [*lines, *code.mesh_code(mesh, types, "devices")]
        within, across = map(code.tuple_code, parts_by_slice(mesh.axis_sizes, machine.family.slices))
        split = machine.chip in SPLIT
        placed = code.text_lines("mesh of slices", within=within, across=across, split=split)
        return [*lines, *placed, code.placed_mesh_code(mesh, types)]
    devices = code.devices_code(mesh.size, problem.arguments[0].dtype) if target.name == "cpu" else wide
    return [*devices, *[""] * bool(devices), *code.mesh_code(mesh, types)]


def _found(target: Target, machine: Machine) -> list[str]:
    """The lines that make the list of a target's devices."""
    words, request = target.description.removeprefix("XLA for "), topology_request(machine)
    given = {"words": words, "topology": request.topology}
    if target.process == "tpu":
        options = "".join(f", {name}={value!r}" for name, value in request.options).replace("'", '"')
        key = "(device.slice_index, device.id)" if machine.family.slices > 1 else "device.id"
        return code.text_lines("found tpus", options=options, key=key, **given)
    return code.text_lines("found gpus", config=target_config(machine.chip), **given)


def layout_code(layout: Layout) -> str:
    """A complete program that asks JAX what every device holds, and makes no array for that. Raises
    `QuestionError` for what JAX cannot say: uneven parts, pending sums, too many devices."""
    mesh, array = layout.mesh, layout.array
    if mesh.size > MAX_CPU_DEVICES:
        problem = f"{mesh.size:,} devices are too many to simulate"
        raise QuestionError(problem, f"use up to {MAX_CPU_DEVICES:,} devices")
    if layout.uneven:
        problem = "JAX places no array that its axes do not divide"
        raise QuestionError(problem, "give sizes that are multiples of their parts")
    if layout.spec.unreduced:
        raise QuestionError("JAX has no indices for partial sums", "leave the pending sum out of the spec")
    if layout.spec.only_device is not None:
        problem = "a NamedSharding is over all devices of its mesh, and one device holds this array"
        hint = f"jax.sharding.SingleDeviceSharding(jax.devices()[{layout.spec.only_device}]) says it"
        raise QuestionError(problem, hint)
    shape = "×".join(map(str, array.shape)) or "One number"
    title = f"{shape}, split as {code.spec_code(layout.spec)} on the mesh {mesh}."
    parts = [
        [*code.devices_code(mesh.size, ""), ""],
        [*code.mesh_code(mesh, "Auto"), f"sharding = NamedSharding(mesh, {code.spec_code(layout.spec)})", ""],
        code.text_lines("layout", shape=array.shape),
    ]
    return code.program_text(title, parts)
