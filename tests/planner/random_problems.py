"""Random problems, and random machines on which every trade between bytes and work is worth it somewhere."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.links import Dimension, LinkSpec
from shardviz.hardware.machine import AxisRings, Machine, PlacedMesh, assumed_machine, place_mesh
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Problem, Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

AXES = ("X", "Y", "Z", "W", "V")
USUAL = (
    "bd,df->bf",
    "btd,df->btf",
    "bshd,bthd->bhst",
    "bf,fd->bd",
    "bd,bf->df",
    "ab,cd->abcd",
    "ecd,edf->ecf",
)
"""Einsums of real layers; the last are a gradient's, an outer product's and those of experts."""


@dataclass(frozen=True)
class Kind:
    """A kind of random problems.

    `axes` are the mesh axes, `parts` the einsums of a chain, or with `shared` statements of a program that
    uses arrays several times. With `cut` specs name parts of axes. With `real` sizes are thousands and the
    machine is the assumed v5e; else they are small, and so are the speeds.
    """

    name: str
    axes: int
    parts: int = 1
    cut: bool = False
    real: bool = False
    axis_sizes: tuple[int, ...] = (2, 2, 3, 4)
    shared: bool = False


@dataclass(frozen=True)
class Draw:
    """Draws problems; the same numbers give the same problems."""

    random: random.Random
    kind: Kind

    def problem(self) -> tuple[Problem, PlacedMesh]:
        """A problem, and its mesh on a machine."""
        while True:
            mesh = self.mesh()
            found = self._program(mesh) if self.kind.shared else self._problem(mesh)
            if found is not None:
                return found, self.machine(mesh)

    def mesh(self) -> Mesh:
        sizes = [self.random.choice(self.kind.axis_sizes) for _ in range(self.kind.axes)]
        return Mesh(AXES[: len(sizes)], tuple(sizes))

    def machine(self, mesh: Mesh) -> PlacedMesh:
        """Devices and links of any speed: small arrays on slow machines are as large ones on fast ones."""
        if self.kind.real:
            return place_mesh(assumed_machine(), mesh)
        peak, hbm = 10 ** self.random.uniform(7, 10), 10 ** self.random.uniform(6, 9)
        dimensions = []
        # Several switches or networks are passed in the order in which an axis stands in a spec.
        kinds = self.random.sample(
            ("ring", "ring", "ring", "line", "line", "switch", "network"), len(mesh.axis_names)
        )
        for kind, (axis, size) in zip(kinds, mesh.shape.items(), strict=True):
            link = LinkSpec(10 ** self.random.uniform(-7, -5), 10 ** self.random.uniform(5, 8))
            name = axis.lower()
            dimensions.append(Dimension(name, size, mesh.stride(axis), kind, link, name))
        figures = DeviceFigures((("bf16", peak),), 10**9, None, hbm)
        family = AxisRings("random", tuple(dimensions), LinkSpec(), mesh.size)
        return place_mesh(Machine("random", figures, family), mesh)

    def _problem(self, mesh: Mesh) -> Problem | None:
        einsums: list[Einsum] = []
        for _ in range(self.kind.parts):
            einsums.append(self.einsum(einsums[-1].result if einsums else None))
        names = self._axis_names(mesh)
        needed: dict[str, int] = {}
        specs: list[tuple[list[PartitionSpec | None], PartitionSpec | None]] = []
        for number, einsum in enumerate(einsums):
            operands: list[PartitionSpec | None] = [self.spec(dims, names, 0.15) for dims in einsum.operands]
            if number and self.random.random() < 0.75:
                operands[0] = None
            last = number + 1 == len(einsums)
            result = (
                self.spec(einsum.result, names, 0.1)
                if self.random.random() < (0.6 if last else 0.1)
                else None
            )
            specs.append((operands, result))
            for dims, spec in zip((*einsum.operands, einsum.result), (*operands, result), strict=True):
                for dim, parts in zip(dims, spec.parts(mesh) if spec else (), strict=bool(spec)):
                    needed[dim] = math.lcm(needed.get(dim, 1), parts)
        dims = dict.fromkeys(dim for einsum in einsums for dim in einsum.dims)
        sizes = {dim: self.size(needed.get(dim, 1), mesh) for dim in dims}
        if math.prod(sizes[dim] for dim in dims) > (2**50 if self.kind.real else 2**20):
            return None
        parts = []
        made = "A"
        for number, (einsum, (operand_specs, result_spec)) in enumerate(zip(einsums, specs, strict=True)):
            arrays = [
                ShardedArray(
                    made if place == 0 else f"W{number}",
                    dims,
                    tuple(sizes[dim] for dim in dims),
                    "bf16",
                    spec,
                )
                for place, (dims, spec) in enumerate(zip(einsum.operands, operand_specs, strict=True))
            ]
            made = "Out" if number + 1 == len(einsums) else f"H{number + 1}"
            shape = tuple(sizes[dim] for dim in einsum.result)
            result = ShardedArray(made, einsum.result, shape, "bf16", result_spec)
            parts.append(Statement(einsum, tuple(arrays), result))
        return Problem(mesh, tuple(parts))

    def _program(self, mesh: Mesh) -> Problem:
        """Products, sums and a function, which use some arrays several times."""
        pick, statements = self.random, self.kind.parts
        names = self._axis_names(mesh)
        sizes = {dim: self.size(math.lcm(*mesh.axis_sizes, 4), mesh) for dim in "bdf"}

        def array(name: str, dims: tuple[str, ...], spec: PartitionSpec | None) -> ShardedArray:
            return ShardedArray(name, dims, tuple(sizes[dim] for dim in dims), "bf16", spec)

        def divides(spec: PartitionSpec, dims: tuple[str, ...]) -> bool:
            return all(sizes[dim] % cut == 0 for dim, cut in zip(dims, spec.parts(mesh), strict=True))

        def argument(name: str, dims: tuple[str, ...]) -> ShardedArray:
            while True:
                spec = self.spec(dims, names, 0.1)
                if divides(spec, dims):
                    return array(name, dims, spec)

        known = [argument("X", ("b", "d"))]
        unused = {"X"}
        parts: list[Statement] = []
        for number in range(1, statements + 1):
            first = pick.choice([one for one in known if one.name in unused] or known)
            alike = [one for one in known if one.dims == first.dims and one.name != first.name]
            if number == statements and alike:
                operands, function = (first, pick.choice(alike)), "add"
            else:
                function = pick.choice(("multiply", "multiply", "multiply", "add", "silu"))
                if function == "silu":
                    operands = (first,)
                elif function == "add":
                    operands = (first, pick.choice([*alike, argument(f"W{number}", first.dims)]))
                else:
                    dims = tuple(pick.sample("bdf", 2))
                    others = [one for one in known if set(one.dims) & set(first.dims)]
                    operands = (first, pick.choice([*others, argument(f"W{number}", dims)]))
                    if operands[1].name == first.name:
                        operands = (first, argument(f"W{number}", dims))
            dims = operands[0].dims
            if function == "multiply":
                shared = [dim for dim in operands[0].dims if dim in operands[1].dims]
                every = dict.fromkeys((*operands[0].dims, *operands[1].dims))
                dims = tuple(dim for dim in every if len(every) < 3 or dim not in shared[:1])
            name = f"R{number}"
            einsum = Einsum(tuple(one.dims for one in operands), dims)
            known = [one for one in known if one.name not in {each.name for each in operands}]
            known += [
                one if one.name == "X" or one.name.startswith("W") else one.with_spec(None)
                for one in operands
            ]
            result = array(name, dims, None)
            last = number == statements
            if last and pick.random() < 0.6:
                wanted = self.spec(dims, names, 0.0)
                result = result.with_spec(wanted if divides(wanted, dims) else None)
            parts.append(Statement(einsum, operands, result, function))
            unused -= {one.name for one in operands}
            unused.add(name)
            known.append(result)
        return Problem(mesh, tuple(parts))

    def _axis_names(self, mesh: Mesh) -> list[str]:
        """What specs may name: whole axes, or some of their parts."""
        names: list[str] = []
        for axis, size in mesh.shape.items():
            if self.kind.cut and size == 4 and self.random.random() < 0.6:
                names += [f"{axis}:(1)2", f"{axis}:(2)2"]
            else:
                names.append(axis)
        return names

    def einsum(self, first: tuple[str, ...] | None) -> Einsum:
        if first is None and self.random.random() < 0.4:
            operands, result = self.random.choice(USUAL).split("->")
            return Einsum(tuple(map(tuple, operands.split(","))), tuple(result))
        letters = "abcd" if self.kind.parts == 1 else "abcde"
        most = 3 if self.kind.axes < 4 else 2
        chosen = [first] if first is not None else [self._dims(letters, most)]
        if self.random.random() < 0.9:
            chosen.append(self._dims(letters, most))
        if self.random.random() < 0.05 and first is None:
            chosen[0] = (*chosen[0], chosen[0][0])
        known = sorted({dim for dims in chosen for dim in dims})
        kept = [dim for dim in known if self.random.random() < 0.65][:3]
        return Einsum(tuple(chosen), tuple(self.random.sample(kept, len(kept))))

    def _dims(self, letters: str, most: int) -> tuple[str, ...]:
        return tuple(self.random.sample(letters, self.random.randrange(1, most + 1)))

    def spec(self, dims: Sequence[str], names: list[str], pending: float) -> PartitionSpec:
        places: list[list[str]] = [[] for _ in dims]
        unreduced = []
        for axis in self.random.sample(names, len(names)):
            place = self.random.randrange(-1, len(dims))
            if place >= 0:
                places[place].append(axis)
            elif self.random.random() < pending:
                unreduced.append(axis)
        return PartitionSpec(tuple(map(tuple, places)), tuple(unreduced))

    def size(self, needed: int, mesh: Mesh) -> int:
        """Elements of a dimension that is cut into so many: often more cuts are possible, sometimes none."""
        size = needed
        if self.random.random() < 0.8:
            size = math.lcm(needed, math.lcm(*mesh.axis_sizes, 4))
        while self.kind.real and size < 64:
            size *= 2
        return size * self.random.choice((1, 1, 2, 4) if not self.kind.real else (1, 4, 16, 64))
