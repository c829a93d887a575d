"""HLO shardings, as XLA prints them: ``{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}``.

A tiled sharding gives the number of blocks of each dimension, then of each group of devices that shares a
block, and the devices in row-major order of the blocks: listed, or as a transposed iota. The named form,
``{mesh['x'=2,'y'=2], [{'y'}, {}]}``, refers to axes of a mesh of its own. The grammar is that of XLA's
``hlo/parser/hlo_parser.cc``. XLA numbers devices in row-major order of the mesh and not by their ids. Axes of
size 1 leave no trace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import are_apart, axis_part, finest_parts, in_parts
from shardviz.sharding.digits import (
    Digit,
    axes_of_groups,
    digits_of_blocks,
    numbers,
    row_major,
    shortest_iota,
    through,
    transposed,
    value,
)

MAX_LISTED = 2**20
_HINT = "write an HLO sharding as {devices=[2,4]<=[8]} or {replicated}"
_MESH_CLOSINGS = {"mesh[": "]", "@mesh<": ">"}
_SUBGROUPS = ("replicated", "unreduced", "manual", "maximal")

Digits = list[Digit]
Iota = tuple[list[int], list[int]]
"""Sizes, and a permutation of them: the devices in the order ``arange(n).reshape(sizes).transpose(perm)``."""


@dataclass(frozen=True)
class _Grid:
    """A grid of devices, a tile assignment or a mesh of the text's own: its places count through `sizes`, and
    at each stands a device, by an iota or a list."""

    sizes: tuple[int, ...]
    iota: Iota | None = None
    listed: tuple[int, ...] = ()

    def order(self, mesh: Mesh) -> Sequence[int]:
        """The devices at its places; none where they are too many, or not each device of the mesh once."""
        if mesh.size > MAX_LISTED:
            return ()
        order = self.listed if self.iota is None else numbers(transposed(*self.iota))
        return order if sorted(order) == [*range(mesh.size)] else ()


def read_gspmd(text: str, context: Context) -> Reading:
    """Read an HLO sharding against the mesh of `context`. Devices that do not follow axes or parts of axes
    are another order of the mesh's. Tuples, undecided shardings and tiles that cut no axes cannot be read."""
    return _HloScanner(text, context).sharding()


def written_spec(sharding: str, mesh: Mesh | None, rank: int | None) -> PartitionSpec | None:
    """The spec of an HLO sharding along the axes of a mesh; None where it follows none of them."""
    if mesh is None:
        return None
    try:
        spec = read_gspmd(sharding, Context(mesh=mesh, rank=rank)).spec
    except (NotationError, QuestionError):
        return None
    return None if spec.devices or spec.only_device is not None else spec


def write_gspmd(reading: Reading, context: Context) -> str:
    mesh = context.known_mesh("an HLO sharding")
    spec = reading.spec
    spec.check_devices(mesh)
    if spec.only_device is not None:
        return f"{{maximal device={context.positions_of(spec.devices)[0]}}}"
    parts = list(spec.parts(mesh))
    mesh.group_size(spec.unreduced)
    axes = finest_parts(mesh.shape, (*spec.axes, *spec.unreduced, *reading.manual))
    large = [axis for axis in axes if mesh.axis_size(axis) > 1]
    split, manual, unreduced = (in_parts(some, axes) for some in (spec.axes, reading.manual, spec.unreduced))
    groups = {
        "manual": [axis for axis in large if axis in manual],
        "unreduced": [axis for axis in large if axis in unreduced],
        "replicated": [axis for axis in large if axis not in (*split, *manual, *unreduced)],
    }
    for kind in ("replicated", "unreduced", "manual"):
        if len(groups[kind]) == len(large):
            return f"{{{kind}}}"
    kinds = [kind for kind in groups if groups[kind]]
    parts += [mesh.group_size(groups[kind]) for kind in kinds]
    order = [axes.index(axis) for axis in (*split, *(axis for own in groups.values() for axis in own))]
    suffix = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    if kinds == ["replicated"]:
        suffix = " last_tile_dim_replicate"
    sizes = [*map(mesh.axis_size, axes)]
    reshape, perm = shortest_iota(sizes, order)
    transpose = f"T({','.join(map(str, perm))})" if len(perm) > 1 else ""
    devices = f"<=[{','.join(map(str, reshape))}]{transpose}"
    if spec.devices:
        positions = context.positions_of(spec.devices)
        devices = ",".join(str(positions[number]) for number in numbers(transposed(sizes, order)))
    return f"{{devices=[{','.join(map(str, parts))}]{devices}{suffix}}}"


class _HloScanner(Scanner):
    def __init__(self, text: str, context: Context) -> None:
        self._context, self._mesh = context, context.known_mesh("an HLO sharding")
        super().__init__(text, _HINT, self._mesh.shape)

    def sharding(self) -> Reading:
        self.expect("{")
        if self.peek("{"):
            self.fail("a tuple of shardings begins", self.pos, hint="give the sharding of one array")
        start = self.pos
        if closing := _MESH_CLOSINGS.get(self.take(*_MESH_CLOSINGS)):
            reading = self._named(start, closing)
        elif self.take("devices="):
            reading = self._tiled()
        elif self.take("maximal", "single_device"):
            start = self.pos
            self.expect("device", "=")
            index = self.integer("the number of the device")
            spec = PartitionSpec.replicated(self._context.known_rank(self))
            self.on_devices(spec, [index], start)
            reading = Reading(replace(spec, devices=(self._mesh.device_id(index),)))
        elif kind := self.take("replicated", "unreduced", "manual"):
            large = tuple(axis for axis, size in self._mesh.shape.items() if size > 1)
            dims = ((),) * self._context.known_rank(self)
            spec = PartitionSpec(dims, large if kind == "unreduced" else ())
            reading = _in_shard_map(spec, large if kind == "manual" else ())
        elif self.take("unknown"):
            hint = "give the sharding of an array split over the whole mesh"
            self.fail("the compiler has not decided this sharding", start, self.pos, hint)
        else:
            self.fail_here("'devices=', 'replicated' or another HLO sharding")
        if self.take("shard_as", "shard_like"):
            self.integer("a group")
        self.take(",")
        if self.peek("metadata="):
            self.pos = max(self.text.rfind("}"), self.pos)
        self.expect("}")
        self.expect_end()
        return reading

    def _tiled(self) -> Reading:
        """The text after ``devices=``: a grid with an axis for each dimension and each group of devices."""
        start = self.pos
        self.expect("[")
        parts = self._integers("]")
        iota, listed = self._devices("<=")
        stop = self.pos
        kinds: list[str] = []
        if self.take("last_tile_dim_replicate"):
            kinds.append("replicated")
        elif self.take("last_tile_dims={"):
            while not self.take("}"):
                kinds.append(self.take(*_SUBGROUPS) or self.fail_here(" or ".join(_SUBGROUPS)))
                self.take(",")
        rank, total = len(parts) - len(kinds), math.prod(parts)
        count = math.prod(iota[0]) if iota else len(listed)
        if rank < 0 or len(parts) > MAX_RANK:
            amount = "few" if rank < 0 else "many"
            self.fail(f"too {amount} tile dimensions ({len(parts)})", start, stop)
        if count != total:
            product_of = f"{'·'.join(map(str, parts))} = {total}" if len(parts) > 1 else str(total)
            self.fail(f"{product_of} tiles do not fit {plural(count, 'device')}", start, stop)
        self._check_size(total, start, stop)
        if "maximal" in kinds or ("manual" in kinds and not iota):
            hint = "give a sharding outside shard_map"
            self.fail("the program moves a part of its data itself", start, self.pos, hint)
        self._context.check_rank(self, rank)
        digits = row_major(parts)
        sets = {
            kind: [digit for digit, known in zip(digits[rank:], kinds, strict=True) if known == kind]
            for kind in _SUBGROUPS
        }
        grid = _Grid(tuple(parts), iota, listed)
        return self._on_grid(grid, [[digit] for digit in digits[:rank]], sets, (start, stop))

    def _named(self, start: int, closing: str) -> Reading:
        """The text from behind ``mesh[`` on: a grid whose axes have names."""
        names, grid = self._grid(closing)
        axes = dict(zip(names, row_major(grid.sizes), strict=True))
        if names:
            self._check_size(math.prod(grid.sizes), start, self.pos)

        def digit(_: Scanner) -> Digit:
            name = self._name()
            self.check_known(name, names)
            axis, start = axes[name.text], self.pos + 1
            word = self.part_of(name)
            if word is name:
                return axis
            part = axis_part(word.text)
            if part is None or axis.size % (part.before * part.size):
                self.fail(f"an axis of size {axis.size} has no such part", start, self.pos)
            return Digit(part.size, axis.stride * (axis.size // (part.before * part.size)))

        self.expect(",")
        open_dims: list[int] = []
        dims: list[Digits] = []
        sets: dict[str, Digits] = {kind: [] for kind in _SUBGROUPS}
        if self.take("["):
            for _ in self.items("]"):
                digits, is_open = self.braces(digit)
                open_dims += [len(dims)] * is_open
                dims.append(digits)
                self.at_most(MAX_RANK, dims, "dimensions", self.pos)
            self._context.check_rank(self, len(dims))
        else:
            dims = [[] for _ in range(self._context.known_rank(self))]
            if all_axes := self.take("unreduced", "manual"):
                sets[all_axes] += axes.values()
            elif not self.take("replicated"):
                self.fail_here("'[', 'replicated', 'unreduced' or 'manual'")
        while self.take(",") and not self.peek("metadata"):
            before = self.pos
            kind = self.take("replicated", "unreduced", "manual") or self.fail_here("'unreduced='")
            self.expect("=")
            if self.take("max", "min"):
                hint = "give an array that is whole or a pending sum"
                self.fail("the pending reduction is not a sum", before, self.pos, hint)
            sets[kind] += self.braces(digit)[0]
        reading = self._on_grid(grid, dims, sets, (start, self.pos))
        notes = [f"dimension {dim} is open: the compiler may split it further" for dim in open_dims]
        return reading._replace(open_dims=tuple(open_dims), notes=(*notes, *reading.notes))

    def _check_size(self, devices: int, start: int, stop: int) -> None:
        if devices != self._mesh.size:
            problem = f"{plural(devices, 'device')}, but the mesh {self._mesh} has {self._mesh.size}"
            self.fail(problem, start, stop, "give the mesh of the program that this is from")

    def _grid(self, closing: str) -> tuple[tuple[str, ...], _Grid]:
        """``'x'=2,'y'=2]`` and perhaps ``, device_ids=(…)``: the axes' names, and the grid of the devices."""
        sizes: dict[str, int] = {}
        for _ in self.items(closing):
            name = self._name()
            self.expect("=")
            size = self.integer("the size of the axis")
            if name.text in sizes or size < 1 or len(sizes) == MAX_RANK:
                problem = f"axis {quote(name.text, 30)} is named twice or has no devices"
                self.fail(problem, name, hint="give every axis a name and a size of its own")
            sizes[name.text] = size
        total, before = math.prod(sizes.values()), self.pos
        if not (self.take(",") and self.take("device_ids")):
            self.pos = before
            return tuple(sizes), _Grid(tuple(sizes.values()))
        self.expect("=", "(")
        iota, listed = self._devices()
        self.expect(")")
        if (math.prod(iota[0]) != total) if iota else sorted(listed) != [*range(total)]:
            self.fail(f"device_ids are not the {plural(total, 'device')} of the mesh", before, self.pos)
        return tuple(sizes), _Grid(tuple(sizes.values()), iota, listed)

    def _name(self) -> Word:
        quoted = self.peek("'") or self.peek('"')
        return self.string("an axis") if quoted else self.name("an axis")

    def _devices(self, before_iota: str = "") -> tuple[Iota | None, tuple[int, ...]]:
        """An iota such as ``[2,4]T(1,0)``, in its shortest form, or else a list of devices."""
        if not (self.take(before_iota) if before_iota else self.peek("[")):
            return None, tuple(self._integers())
        start = self.pos
        self.expect("[")
        reshape = self._integers("]")
        perm = self._integers(")") if self.take("T(") else [*range(len(reshape))]
        if len(reshape) > MAX_RANK or sorted(perm) != [*range(len(reshape))] or 0 in reshape:
            self.fail("this iota is not a permutation of the devices", start, self.pos)
        return shortest_iota(reshape, perm), ()

    def _integers(self, closing: str = "") -> list[int]:
        """``2,4`` up to `closing`, which is passed, or as far as it goes."""
        numbers = [self.integer()]
        while self.take(","):
            numbers.append(self.integer())
        self.expect(*closing)
        return numbers

    def _on_grid(
        self, grid: _Grid, dims: Sequence[Digits], sets: dict[str, Digits], span: tuple[int, int]
    ) -> Reading:
        """The sharding of dimensions over the digits of a grid's places, with sets of digits by their kind.
        Where the devices follow no axes, those of the mesh in the grid's order may. Fails at `span`."""
        groups = [*dims, sets["unreduced"], sets["manual"]]
        axes = _axes(grid, groups, self._mesh)
        devices: tuple[int, ...] = ()
        if axes is None and not sets["manual"] and (order := grid.order(self._mesh)):
            axes = _axes(_Grid(grid.sizes), groups, self._mesh)
            devices = self._context.devices_at(order)
        used = [axis for dim in axes or () for axis in dim]
        if axes is None or not all(are_apart(*pair) for pair in combinations(used, 2)):
            hint = "give the mesh of the program that this is from"
            self.fail(f"these devices do not follow axes of the mesh {self._mesh}", *span, hint)
        *split, pending, manual = axes
        return _in_shard_map(PartitionSpec(tuple(split), pending, devices=devices), manual)


def _in_shard_map(spec: PartitionSpec, manual: tuple[str, ...]) -> Reading:
    note = f"manual over {', '.join(manual)}: inside shard_map, each device along it has its own array"
    return Reading(spec, manual=manual, notes=(note,) * bool(manual))


def _axes(grid: _Grid, groups: Sequence[Digits], mesh: Mesh) -> tuple[tuple[str, ...], ...] | None:
    """The axes of `mesh` for each group of digits of a place in the grid, of which the last two are sets."""
    moved: Sequence[Sequence[Digit]] | None = groups
    if grid.listed:
        moved = _of_listed(grid, groups, mesh)
    elif grid.iota is not None:
        order = transposed(*grid.iota)
        behind = [through(group, order) for group in groups]
        moved = None if None in behind else [group for group in behind if group is not None]
    return None if moved is None else axes_of_groups(moved, mesh.shape, sets=2)


def _of_listed(grid: _Grid, groups: Sequence[Digits], mesh: Mesh) -> Sequence[Sequence[Digit]] | None:
    """The digits of a device's place in the mesh for each group of digits of its place in the grid. The
    partial sums of a block may be numbered in any order: they count by the least of their devices."""
    counts = [math.prod(digit.size for digit in group) for group in groups]
    if sorted(grid.listed) != [*range(mesh.size)] or math.prod(counts) > mesh.size:
        return None
    holders: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for index, device in enumerate(grid.listed):
        *block, pending, manual = (value(group, index) for group in groups)
        holders.setdefault((*block, manual), {}).setdefault(pending, []).append(device)
    blocks: list[tuple[int, ...]] = [()] * mesh.size
    for (*block, manual), sums in holders.items():
        for pending, devices in enumerate(sorted(sums.values(), key=min)):
            for device in devices:
                blocks[device] = (*block, pending, manual)
    return digits_of_blocks(counts, blocks)
