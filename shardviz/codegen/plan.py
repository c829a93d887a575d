"""A plan as a JAX program: every step by hand in `shard_map`, checked against the einsum on one device."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from functools import cached_property

from shardviz.codegen import code_literals as code
from shardviz.codegen.problem import MAX_BYTES, SURE, is_small, is_uneven, title_of
from shardviz.codegen.program_function import ProgramFunction
from shardviz.collectives.operations.several_dims import collected, dealt
from shardviz.errors import QuestionError
from shardviz.planner.plan import Plan, PlanCopies, Step
from shardviz.planner.problem import unused_name
from shardviz.planner.problem.functions import FUNCTIONS, statement_code
from shardviz.planner.problem.jax_code import dtype_code
from shardviz.sharding import ShardedArray
from shardviz.stepping.plan_step import moved_axes, operation_of_step
from shardviz.targets import MAX_CPU_DEVICES

EXACT = frozenset(SURE - {"f16", "bf16"})
"""Types in which sums of a few ones are exact in any order."""
CLOSE = 0.05
"""The largest error by rounding of 16-bit types, as a part of the largest number."""
VERY_CLOSE = 1e-4


def plan_code(plan: Plan) -> str:
    """A complete program: the plan's collectives, slices and local functions, with the reason of each.

    It prints the collectives of what it compiled, and whether its results are those of one device, unless the
    arrays are too large to be made. Of a program that runs several times it is one run. The addends of a
    pending sum stand along an extra dimension in front. Raises `QuestionError` where no simulated devices
    could run the plan."""
    problem = plan.problem
    if problem.mesh.size > MAX_CPU_DEVICES:
        complaint = f"a plan for {problem.mesh.size:,} devices cannot run on simulated ones"
        raise QuestionError(complaint, f"use a mesh of up to {MAX_CPU_DEVICES:,} devices")
    if is_uneven(problem):
        complaint = "a dimension is split unevenly, and a program by hand needs equal parts"
        raise QuestionError(complaint, "give --sizes that the axes divide")
    if unsure := [array.dtype for array in problem.arguments if array.dtype not in {*SURE, "pred"}]:
        raise QuestionError(f"XLA for CPU may not multiply {unsure[0]}", "use f32, bf16 or s32")
    mesh = ", ".join(f"{name}={size}" for name, size in problem.mesh.shape.items())
    title = f"The plan of {title_of(problem)} on the mesh {mesh}, by hand."
    part_plan, part_axes = code.plan_on_parts(replace(plan, problem=replace(problem, layers=1)))
    writer = _Writer(part_plan)
    parts = [
        [*code.devices_code(problem.mesh.size, problem.arguments[0].dtype), ""],
        [*part_axes.comment, *code.mesh_code(part_plan.problem.mesh, "Auto"), "", ""],
        [*writer.program(), "", ""],
        [*writer.numbers(), ""],
        writer.compiled(),
        ["", "", *writer.check()] if writer.runs else [],
    ]
    return code.program_text(title, parts)


def steps_code(plan: Plan) -> tuple[Plan, str]:
    """The plan on a mesh whose axes are the parts that its steps name, and its functions: ``program``, of a
    device's shards, returns what each step makes, and ``on_one_device``, of whole arrays, the results."""
    part_plan, _ = code.plan_on_parts(plan)
    writer = _Writer(part_plan)
    return part_plan, "\n".join([*writer.program(with_steps=True), "", "", *writer.function.lines()])


@dataclass(frozen=True)
class _Writer:
    plan: Plan

    @cached_property
    def function(self) -> ProgramFunction:
        return ProgramFunction(self.plan.problem, is_split=False, name="on_one_device")

    @cached_property
    def copies(self) -> PlanCopies:
        return PlanCopies(self.plan)

    @cached_property
    def runs(self) -> bool:
        most = max((step.bytes for step in self.plan.steps), default=0)
        # On all devices, and on one.
        return is_small(self.plan.problem, times=2) and most * self.plan.problem.mesh.size <= MAX_BYTES

    @cached_property
    def arguments(self) -> dict[str, ShardedArray]:
        """The arrays that the program takes, by their names in it."""
        return {self.function.names[array.name]: array for array in self.plan.problem.arguments}

    def program(self, with_steps: bool = False) -> list[str]:
        """The function of one device; `with_steps`, it returns what every step makes."""
        copies = self.copies
        lines = [f"def program({', '.join(self.arguments)}):"]
        lines += self._wrapped("Every device runs this on its own shards.")
        lines += [
            f"    {name} = {name}[0]"
            for name, array in self.arguments.items()
            if array.decided_spec.unreduced and not with_steps
        ]
        lines += ["    _steps = []"] * with_steps
        called = dict(zip(copies.given, self.arguments, strict=True))
        last_use = {copy: index for index, taken in enumerate(copies.taken) for copy in taken}
        for index, (step, made) in enumerate(zip(self.plan.steps, copies.made, strict=True)):
            if step.is_beside:  # the code of its statement sends it
                lines += self._wrapped(f"{index + 1}. {step.reason}")
                continue
            operands = [called[copy] for copy in copies.taken[index]]
            alive = {name for copy, name in called.items() if last_use.get(copy, -1) > index}
            called[made] = self._free_name(step.array, alive)
            shape = "×".join(map(str, copies.shard(made))) or "one number"
            lines += self._wrapped(f"{index + 1}. {step.reason}")
            lines.append(f"    {called[made]} = {self._call(index, operands)}  # {shape}")
            lines += [f"    _steps.append({called[made]})"] * with_steps
        if with_steps:
            return [*lines, "    return _steps"]
        results = [
            f"{called[copy]}[None]" if copy[1].unreduced else called[copy] for copy in copies.taken[-1]
        ]
        return [*lines, f"    return {', '.join(results)}"]

    def _free_name(self, array: str, alive: set[str]) -> str:
        """The name of an array, or another one where a copy with that name is still needed."""
        own, names = self.function.names[array], {*self.function.names.values()}
        return unused_name(own, names - {own} | alive)

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, code.WIDTH, initial_indent="    # ", subsequent_indent="    # ")

    def _call(self, index: int, operands: list[str]) -> str:
        step = self.plan.steps[index]
        if step.op in ("einsum", "apply"):
            local = self.copies.local(index, code.axes_code)
            return statement_code(self.plan.problem.parts[step.part], operands, local=local)
        (name,) = operands
        if step.op in ("psum", "pmax"):
            return f"jax.lax.{step.op}({name}, {code.axes_code(step.axes)})"
        is_local = step.op in ("slice", "mask", "pad")
        if step.op != "ppermute" and (is_local or not moved_axes(step, self.plan.problem.mesh).is_of_one_dim):
            return self._moved(step, name)
        operation = operation_of_step(self.plan, index + 1)
        given = code.parameters_code(operation.parameters, self.copies.arrays[step.array].rank)
        return f"jax.lax.{step.op}({name}, {code.axes_code(step.axes)}{given})"

    def _moved(self, step: Step, name: str) -> str:
        """A local move, or a collective that changes several dimensions at once, while whose pieces are sent
        they stand along a dimension of their own, in front."""
        mesh, axes = self.plan.problem.mesh, code.axes_code(step.axes)
        shape = self.copies.shard(self.copies.copy(step.array, step.from_spec))
        moved = moved_axes(step, mesh)
        sizes = tuple(map(mesh.axis_size, step.axes))
        match step.op:
            case "all_gather":
                gathered = f"jax.lax.all_gather({name}, {axes})"
                return code.rearranged_code(gathered, collected(shape, moved.removed, sizes))
            case "psum_scatter":
                pieces = code.rearranged_code(name, dealt(shape, moved.appended, sizes))
                return f"jax.lax.psum_scatter({pieces}, {axes})"
            case "all_to_all":
                deal = dealt(shape, moved.appended, sizes)
                sent = f"jax.lax.all_to_all({code.rearranged_code(name, deal)}, {axes}, 0, 0, tiled=True)"
                return code.rearranged_code(sent, collected(deal.shape[1:], moved.removed, sizes))
            case "mask":
                return f"jnp.where(jax.lax.axis_index({axes}) == 0, {name}, 0)"
            case "pad":
                array, padded = name, list(shape)
                for dim, places in enumerate(moved.removed):
                    if places:
                        own = tuple(moved.group[index] for index in places)
                        padded[dim] *= mesh.group_size(own)
                        zeros = f"jnp.zeros({tuple(padded)}, {array}.dtype)"
                        start = f"jax.lax.axis_index({code.axes_code(own)}) * {shape[dim]}"
                        place = f"{zeros}, {name}, {start}, axis={dim}"
                        name = f"jax.lax.dynamic_update_slice_in_dim({place})"
                return name
        for dim, places in enumerate(moved.appended):
            if places:
                own = tuple(step.axes[index] for index in places)
                size = shape[dim] // mesh.group_size(own)
                start = f"jax.lax.axis_index({code.axes_code(own)}) * {size}"
                name = f"jax.lax.dynamic_slice_in_dim({name}, {start}, {size}, axis={dim})"
        return name

    @property
    def _is_linear(self) -> bool:
        return all(FUNCTIONS[part.function].keeps_integers for part in self.plan.problem.parts)

    def numbers(self) -> list[str]:
        """The arguments: made where they are small, else their shapes."""
        if not self.runs:
            lines = code.text_lines("shapes")
            for name, array in self.arguments.items():
                given = self._stacked(array), code.shard_map_spec(array.decided_spec), dtype_code(array.dtype)
                lines.append(f"{name} = shape_of({', '.join(map(str, given))})")
            return lines
        lines = code.text_lines("ones" if self._is_linear else "numbers")
        return [*lines, *(f"{name} = {self._values(array)}" for name, array in self.arguments.items())]

    def _values(self, array: ShardedArray) -> str:
        """Random values of an argument, such that neither sums nor products grow."""
        shape, dtype = self._stacked(array), dtype_code(array.dtype)
        uses = [
            (part, index)
            for part in self.plan.problem.parts
            for index, operand in enumerate(part.operands)
            if operand.name == array.name
        ]
        part, index = uses[0]
        if array.dtype == "pred":
            return f"rng.random({shape}) < 0.5"
        if index in FUNCTIONS[part.function].selects:
            rows = part.operands[0]
            most = next(n for dim, n in zip(rows.dims, rows.shape, strict=True) if dim not in array.dims)
            return f"rng.integers(0, {most}, {shape}).astype({dtype})"
        summed = math.prod(part.sizes[dim] for dim in part.einsum.contracted)
        is_first = array.name == self.plan.problem.arguments[0].name
        if not self._is_linear:
            largest = "1" if is_first or summed < 3 else f"{(3 / summed) ** 0.5:.3g}"
            least = ", 0" if any(FUNCTIONS[statement.function].of_positive for statement, _ in uses) else ""
            return f"numbers({shape}, {largest}, {dtype}{least})"
        # About four ones meet in an element of the first product, one in those of others.
        wanted = 4 if part is self.plan.problem.parts[0] else 1
        share = "1 / 2" if is_first or summed <= 2 * wanted else f"{wanted} / {summed}"
        return f"ones({shape}, {share}, {dtype})"

    def _stacked(self, array: ShardedArray) -> tuple[int, ...]:
        return code.stacked_shape(array.shape, array.decided_spec, self.plan.problem.mesh)

    def compiled(self) -> list[str]:
        into = [code.shard_map_spec(array.decided_spec) for array in self.arguments.values()]
        out = [code.shard_map_spec(spec) for _, spec in self.copies.taken[-1]]
        specs = f"({into[0]},)" if len(into) == 1 else f"({', '.join(into)})"
        out_specs = out[0] if len(out) == 1 else f"({', '.join(out)})"
        lines = code.mapped_code("program", specs, out_specs)
        placed = ", ".join(self.arguments)
        if self.runs:
            pairs = zip(self.arguments, into, strict=True)
            each = [f"jax.device_put({name}, NamedSharding(mesh, {spec}))," for name, spec in pairs]
            lines += code.text_lines("placed arguments", placed="\n".join(each))
            placed = "*placed"
        lines.append(f"compiled = jax.jit(mapped).lower({placed}).compile()")
        return [*lines, "", *code.text_lines("collectives")]

    def check(self) -> list[str]:
        is_exact = self._is_linear and self.plan.problem.result.dtype in EXACT
        is_narrow = any(array.dtype in SURE - EXACT for array in self.plan.problem.arrays)
        close = CLOSE if is_narrow else VERY_CLOSE
        same = ["    return np.array_equal(found, expected)"]
        if not is_exact:
            same = code.text_lines("close", close=close)
        lines = [*self.function.lines(), "", "", "def same(found, expected):", *same, "", ""]
        sums = [spec.unreduced for _, spec in self.copies.taken[-1]]
        is_one = len(sums) == 1
        lines.append(f"found = compiled(*placed){'.sum(0)' * (is_one and bool(sums[0]))}")
        if any(sums) and not is_one:
            added = ", ".join(f"found[{index}]{'.sum(0)' if sum_ else ''}" for index, sum_ in enumerate(sums))
            lines.append(f"found = [{added}]")
        lines += [
            f"{name} = {name}.sum(0).astype({name}.dtype)"
            for name, array in self.arguments.items()
            if array.decided_spec.unreduced
        ]
        expected = f"on_one_device({', '.join(self.arguments)})"
        agree = f"same(found, {expected})" if is_one else f"all(map(same, found, {expected}))"
        lines.append(f"assert {agree}")
        return [*lines, f'print("the {"result is" if is_one else "results are"} the same as on one device")']
