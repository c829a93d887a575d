"""A plan as a JAX program: every step by hand in `shard_map`, checked against the einsum on one device."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import (
    WIDTH,
    axes_code,
    devices_code,
    mesh_code,
    names_code,
    parameters_code,
    printed_code,
    program_text,
    shard_map_spec,
    stacked_shape,
)
from shardviz.codegen.problem import MAX_BYTES, SURE, is_small, is_uneven
from shardviz.compiler.statement_code import dtype_code, subscripts
from shardviz.compiler.targets import MAX_CPU_DEVICES
from shardviz.errors import QuestionError
from shardviz.sharding import PartitionSpec, ShardedArray, shard_shape

if TYPE_CHECKING:
    from shardviz.planner import Plan, Step


EXACT = frozenset(SURE - {"f16", "bf16"})
"""Types in which sums of a few ones are exact in any order."""
CLOSE = 0.05
"""The largest error by rounding of 16-bit types, as a part of the number."""


def plan_code(plan: Plan) -> str:
    """A complete program: the plan's collectives, slices and local einsums, with the reason of each.

    It prints the collectives of what it compiled, and whether the result is that of one device, unless the
    arrays are too large to be made. The addends of a pending sum stand along an extra dimension in front.
    Raises `QuestionError` where no simulated devices could run the plan.
    """
    problem = plan.problem
    if problem.mesh.size > MAX_CPU_DEVICES:
        raise QuestionError(
            f"a plan for {problem.mesh.size:,} devices cannot run on simulated ones",
            f"use a mesh of up to {MAX_CPU_DEVICES:,} devices",
        )
    if is_uneven(problem):
        raise QuestionError(
            "a dimension is split unevenly, and a program by hand needs equal parts",
            "give --sizes that the axes divide",
        )
    if problem.arguments[0].dtype not in SURE:
        raise QuestionError(
            f"XLA for CPU may not multiply {problem.arguments[0].dtype}", "use f32, bf16 or s32"
        )
    writer = _Writer(plan)
    dtype = problem.arguments[0].dtype
    parts = [
        [f'"""{writer.title}"""', ""],
        [*_IMPORTS, ""],
        [*devices_code(problem.mesh.size, dtype), ""],
        [*mesh_code(problem.mesh, "Auto"), "", ""],
        [*writer.program(), "", ""],
        [*writer.numbers(), ""],
        writer.compiled(),
        ["", *writer.check()] if writer.runs else [],
    ]
    return program_text(parts)


_IMPORTS = [
    "import re",
    "",
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
    "from jax.sharding import AxisType, NamedSharding",
    "from jax.sharding import PartitionSpec as P",
]


@dataclass(frozen=True)
class _Writer:
    """Writes the parts of one plan's program."""

    plan: Plan

    @property
    def title(self) -> str:
        problem = self.plan.problem
        mesh = ", ".join(f"{name}={size}" for name, size in problem.mesh.shape.items())
        return f"The plan of {problem.text} on the mesh {mesh}, by hand."

    @cached_property
    def runs(self) -> bool:
        """True if the arrays are small enough to be made."""
        devices = self.plan.problem.mesh.size
        # On all devices, and on one.
        return is_small(self.plan.problem, times=2) and all(
            step.bytes * devices <= MAX_BYTES for step in self.plan.steps
        )

    @cached_property
    def arrays(self) -> dict[str, ShardedArray]:
        """Every array by its name."""
        return {array.name: array for array in self.plan.problem.arrays}

    @cached_property
    def names(self) -> dict[str, str]:
        return names_code(self.arrays)

    @cached_property
    def arguments(self) -> dict[str, ShardedArray]:
        """The arrays that the program takes, by their names in it."""
        return {self.names[array.name]: array for array in self.plan.problem.arguments}

    def shard(self, name: str, spec: PartitionSpec) -> tuple[int, ...]:
        """The shape that one device holds."""
        return shard_shape(self.arrays[name].shape, spec, self.plan.problem.mesh)

    def program(self) -> list[str]:
        """The function of one device."""
        lines = [f"def program({', '.join(self.arguments)}):"]
        lines += self._wrapped("Every device runs this on its own shards.")
        lines += [
            f"    {name} = {name}[0]"
            for name, array in self.arguments.items()
            if array.decided_spec.unreduced
        ]
        for number, step in enumerate(self.plan.steps, 1):
            name = self.names[step.array]
            shape = "×".join(map(str, self.shard(step.array, step.to_spec))) or "one number"
            lines += self._wrapped(f"{number}. {step.reason}")
            lines.append(f"    {name} = {self._call(number, step)}  # {shape}")
        result = self.names[self.plan.problem.result.name]
        return [*lines, f"    return {result}[None]" if self._pending else f"    return {result}"]

    @property
    def _pending(self) -> bool:
        return bool(self.plan.result_spec.unreduced)

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, WIDTH, initial_indent="    # ", subsequent_indent="    # ")

    def _call(self, number: int, step: Step) -> str:
        name = self.names[step.array]
        if step.op == "einsum":
            assert step.einsum is not None
            operands = ", ".join(self.names[operand] for operand in step.operands)
            return f'jnp.einsum("{subscripts(step.einsum)}", {operands})'
        axes = axes_code(step.axes)
        if step.op == "slice":
            assert step.dim is not None
            size = self.shard(step.array, step.to_spec)[step.dim]
            start = f"jax.lax.axis_index({axes}) * {size}"
            return f"jax.lax.dynamic_slice_in_dim({name}, {start}, {size}, axis={step.dim})"
        from shardviz.stepping.plan_step import operation_of_step

        rank = len(self.arrays[step.array].shape)
        given = parameters_code(operation_of_step(self.plan, number).parameters, rank)
        return f"jax.lax.{step.op}({name}, {axes}{given})"

    def numbers(self) -> list[str]:
        """The arguments: made where they are small, else their shapes."""
        dtype = dtype_code(self.plan.problem.arguments[0].dtype)
        if not self.runs:
            return [
                "def shape_of(shape, spec):",
                "    # Shapes are enough to compile; jax.device_put(array, sharding) places real ones.",
                f"    return jax.ShapeDtypeStruct(shape, {dtype}, sharding=NamedSharding(mesh, spec))",
                "",
                "",
                *(
                    f"{name} = shape_of({self._stacked(array)}, {shard_map_spec(array.decided_spec)})"
                    for name, array in self.arguments.items()
                ),
            ]
        return [
            "rng = np.random.default_rng(0)",
            "",
            "",
            "def ones(shape, share):",
            "    # Ones among zeros: so few that their sums stay small, and exact.",
            f"    return (rng.random(shape) < share).astype({dtype})",
            "",
            "",
            *(
                f"{name} = ones({self._stacked(array)}, {share})"
                for (name, array), share in zip(self.arguments.items(), self._shares(), strict=True)
            ),
        ]

    def _stacked(self, array: ShardedArray) -> tuple[int, ...]:
        return stacked_shape(array.shape, array.decided_spec, self.plan.problem.mesh)

    def _shares(self) -> list[str]:
        """The share of ones among each argument's numbers: about four meet in an element of the result."""
        shares = ["1 / 2"]
        for place, part in enumerate(self.plan.problem.parts):
            sizes = {
                dim: size
                for operand in part.operands
                for dim, size in zip(operand.dims, operand.shape, strict=True)
            }
            summed = math.prod(sizes[dim] for dim in part.einsum.contracted)
            wanted = 1 if place else 4
            shares += [f"{wanted} / {summed}" if summed > 2 * wanted else "1 / 2"] * (len(part.operands) - 1)
        return shares

    def compiled(self) -> list[str]:
        """The lines that compile the program for the mesh, and print its collectives."""
        into = [shard_map_spec(array.decided_spec) for array in self.arguments.values()]
        out = shard_map_spec(self.plan.result_spec)
        specs = f"({into[0]},)" if len(into) == 1 else f"({', '.join(into)})"
        lines = [
            "mapped = jax.shard_map(",
            f"    program, mesh=mesh, in_specs={specs}, out_specs={out}, check_vma=False",
            ")",
        ]
        if len(lines[1]) > WIDTH:
            listed = ["program", "mesh=mesh", f"in_specs={specs}", f"out_specs={out}", "check_vma=False"]
            lines[1:2] = [f"    {each}," for each in listed]
        placed = ", ".join(self.arguments)
        if self.runs:
            placed = "*placed"
            lines += [
                "placed = [",
                *(
                    f"    jax.device_put({name}, NamedSharding(mesh, {spec})),"
                    for name, spec in zip(self.arguments, into, strict=True)
                ),
                "]",
            ]
        return [*lines, f"compiled = jax.jit(mapped).lower({placed}).compile()", "", *printed_code()]

    def check(self) -> list[str]:
        """The lines that compare with one device."""
        names, result = self.names, self.names[self.plan.problem.result.name]
        lines = [f"found = compiled(*placed){'.sum(0)' if self._pending else ''}"]
        lines += [
            f"{name} = {name}.sum(0).astype({name}.dtype)"
            for name, array in self.arguments.items()
            if array.decided_spec.unreduced
        ]
        for part in self.plan.problem.parts:
            operands = ", ".join(names[operand.name] for operand in part.operands)
            lines.append(f'{names[part.result.name]} = jnp.einsum("{subscripts(part.einsum)}", {operands})')
        dtype = self.plan.problem.result.dtype
        same = (
            f"np.array_equal(found, {result})"
            if dtype in EXACT
            else f"np.allclose(np.float32(found), np.float32({result}), rtol={CLOSE})"
        )
        return [
            *lines,
            f"assert {same}",
            'print("the result is the same as on one device")',
        ]
