"""HLO shardings, as XLA prints them: ``{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}``.

A tiled sharding gives the number of blocks of each dimension, then of each group of devices that shares
a block, and the devices in row-major order of the blocks: listed, or as a transposed iota, ``[2,4]T(1,0)``,
which is ``arange(8).reshape(2, 4).transpose(1, 0)``. The last tile dimensions may be groups of devices that
share a block, hold partial sums of it, or hold arrays of their own (``manual``, inside `jax.shard_map`). The
named form, ``{mesh['x'=2,'y'=2], [{'y'}, {}]}``, refers to axes of a mesh of its
own, whose names need not be the user's. The grammar is that of XLA's ``hlo/parser/hlo_parser.cc``.

XLA numbers a program's devices in row-major order of the mesh and not by their ids, so all of it is
compared by position in the mesh. Axes of size 1 leave no trace and are never read back.
"""

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
"""Devices of the longest order that is listed."""
_HINT = "write an HLO sharding as {devices=[2,4]<=[8]} or {replicated}"
_MESH_HINT = "give the mesh of the program that this is from"
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
    are another order of the mesh's. Tuples, undecided shardings and tiles that cut no axes of the mesh cannot
    be read."""
    mesh = context.known_mesh("an HLO sharding")
    scanner = Scanner(text, _HINT, mesh.shape)
    scanner.expect("{")
    if scanner.peek("{"):
        scanner.fail("a tuple of shardings begins", scanner.pos, hint="give the sharding of one array")
    start = scanner.pos
    if closing := _MESH_CLOSINGS.get(scanner.take(*_MESH_CLOSINGS)):
        reading = _read_named(scanner, mesh, context, start, closing)
    elif scanner.take("devices="):
        reading = _read_tiled(scanner, mesh, context)
    elif scanner.take("maximal", "single_device"):
        start = scanner.pos
        scanner.expect("device", "=")
        index = scanner.integer("the number of the device")
        spec = PartitionSpec.replicated(context.known_rank(scanner))
        scanner.on_devices(spec, [index], start)
        reading = Reading(replace(spec, devices=(mesh.device_id(index),)))
    elif kind := scanner.take("replicated", "unreduced", "manual"):
        large = tuple(axis for axis, size in mesh.shape.items() if size > 1)
        dims = ((),) * context.known_rank(scanner)
        spec = PartitionSpec(dims, large if kind == "unreduced" else ())
        reading = _in_shard_map(spec, large if kind == "manual" else ())
    elif scanner.take("unknown"):
        hint = "give the sharding of an array split over the whole mesh"
        scanner.fail("the compiler has not decided this sharding", start, scanner.pos, hint)
    else:
        scanner.fail_here("'devices=', 'replicated' or another HLO sharding")
    if scanner.take("shard_as", "shard_like"):
        scanner.integer("a group")
    scanner.take(",")
    if scanner.peek("metadata="):
        scanner.pos = max(scanner.text.rfind("}"), scanner.pos)
    scanner.expect("}")
    scanner.expect_end()
    return reading


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
    """Write this sharding as XLA prints it in a program over the mesh of `context`."""
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


def _read_tiled(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """Read the text after ``devices=``: a grid with an axis for each dimension and each group of devices."""
    start = scanner.pos
    scanner.expect("[")
    parts = _integers(scanner, "]")
    iota = _iota_order(scanner) if scanner.take("<=") else None
    listed = _integers(scanner, "") if iota is None else []
    stop = scanner.pos
    kinds: list[str] = []
    if scanner.take("last_tile_dim_replicate"):
        kinds.append("replicated")
    elif scanner.take("last_tile_dims={"):
        while not scanner.take("}"):
            kinds.append(scanner.take(*_SUBGROUPS) or scanner.fail_here(" or ".join(_SUBGROUPS)))
            scanner.take(",")
    rank = len(parts) - len(kinds)
    total = math.prod(parts)
    count = math.prod(iota[0]) if iota else len(listed)
    if rank < 0 or len(parts) > MAX_RANK:
        amount = "few" if rank < 0 else "many"
        scanner.fail(f"too {amount} tile dimensions ({len(parts)})", start, stop)
    if count != total:
        product_of = f"{'·'.join(map(str, parts))} = {total}" if len(parts) > 1 else str(total)
        scanner.fail(f"{product_of} tiles do not fit {plural(count, 'device')}", start, stop)
    if total != mesh.size:
        problem = f"{plural(total, 'device')}, but the mesh {mesh} has {mesh.size}"
        scanner.fail(problem, start, stop, _MESH_HINT)
    if "maximal" in kinds or ("manual" in kinds and not iota):
        hint = "give a sharding outside shard_map"
        scanner.fail("the program moves a part of its data itself", start, scanner.pos, hint)
    context.check_rank(scanner, rank)
    digits = row_major(parts)
    sets = {
        kind: [digit for digit, known in zip(digits[rank:], kinds, strict=True) if known == kind]
        for kind in _SUBGROUPS
    }
    grid = _Grid(tuple(parts), iota, tuple(listed))
    return _reading(scanner, context, mesh, grid, [[digit] for digit in digits[:rank]], sets, (start, stop))


_MESH_CLOSINGS = {"mesh[": "]", "@mesh<": ">"}


def _read_named(scanner: Scanner, mesh: Mesh, context: Context, start: int, closing: str) -> Reading:
    """Read the text from behind ``mesh[`` on: a grid whose axes have names."""
    names, grid = _mesh(scanner, closing)
    axes = dict(zip(names, row_major(grid.sizes), strict=True))
    total = math.prod(grid.sizes)
    if names and total != mesh.size:
        problem = f"{plural(total, 'device')}, but the mesh {mesh} has {mesh.size}"
        scanner.fail(problem, start, scanner.pos, _MESH_HINT)

    def named(scanner: Scanner) -> Digit:
        name = _name(scanner)
        scanner.check_known(name, names)
        axis, start = axes[name.text], scanner.pos + 1
        word = scanner.part_of(name)
        if word is name:
            return axis
        part = axis_part(word.text)
        if part is None or axis.size % (part.before * part.size):
            scanner.fail(f"an axis of size {axis.size} has no such part", start, scanner.pos)
        return Digit(part.size, axis.stride * (axis.size // (part.before * part.size)))

    scanner.expect(",")
    open_dims: list[int] = []
    dims: list[Digits] = []
    sets: dict[str, Digits] = {kind: [] for kind in _SUBGROUPS}
    if scanner.take("["):
        for _ in scanner.items("]"):
            digits, is_open = scanner.braces(named)
            open_dims += [len(dims)] * is_open
            dims.append(digits)
            scanner.at_most(MAX_RANK, dims, "dimensions", scanner.pos)
        context.check_rank(scanner, len(dims))
    else:
        dims = [[] for _ in range(context.known_rank(scanner))]
        if all_axes := scanner.take("unreduced", "manual"):
            sets[all_axes] += axes.values()
        elif not scanner.take("replicated"):
            scanner.fail_here("'[', 'replicated', 'unreduced' or 'manual'")
    while scanner.take(",") and not scanner.peek("metadata"):
        before = scanner.pos
        kind = scanner.take("replicated", "unreduced", "manual") or scanner.fail_here("'unreduced='")
        scanner.expect("=")
        if scanner.take("max", "min"):
            hint = "give an array that is whole or a pending sum"
            scanner.fail("the pending reduction is not a sum", before, scanner.pos, hint)
        sets[kind] += scanner.braces(named)[0]
    reading = _reading(scanner, context, mesh, grid, dims, sets, (start, scanner.pos))
    notes = [f"dimension {dim} is open: the compiler may split it further" for dim in open_dims]
    return reading._replace(open_dims=tuple(open_dims), notes=(*notes, *reading.notes))


def _mesh(scanner: Scanner, closing: str) -> tuple[tuple[str, ...], _Grid]:
    """``'x'=2,'y'=2]`` and perhaps ``, device_ids=(…)``: the axes' names, and the grid of the devices."""
    sizes: dict[str, int] = {}
    for _ in scanner.items(closing):
        name = _name(scanner)
        scanner.expect("=")
        size = scanner.integer("the size of the axis")
        if name.text in sizes or size < 1 or len(sizes) == MAX_RANK:
            problem = f"axis {quote(name.text, 30)} is named twice or has no devices"
            scanner.fail(problem, name, hint="give every axis a name and a size of its own")
        sizes[name.text] = size
    total, before = math.prod(sizes.values()), scanner.pos
    if not (scanner.take(",") and scanner.take("device_ids")):
        scanner.pos = before
        return tuple(sizes), _Grid(tuple(sizes.values()))
    scanner.expect("=", "(")
    iota = _iota_order(scanner) if scanner.peek("[") else None
    listed = () if iota else tuple(_integers(scanner, ""))
    scanner.expect(")")
    if (math.prod(iota[0]) != total) if iota else sorted(listed) != [*range(total)]:
        scanner.fail(f"device_ids are not the {plural(total, 'device')} of the mesh", before, scanner.pos)
    return tuple(sizes), _Grid(tuple(sizes.values()), iota, listed)


def _name(scanner: Scanner) -> Word:
    quoted = scanner.peek("'") or scanner.peek('"')
    return scanner.string("an axis") if quoted else scanner.name("an axis")


def _reading(
    scanner: Scanner,
    context: Context,
    mesh: Mesh,
    grid: _Grid,
    dims: Sequence[Digits],
    sets: dict[str, Digits],
    span: tuple[int, int],
) -> Reading:
    """The sharding of dimensions over the digits of a grid's places, with sets of digits by their kind. Where
    the devices follow no axes, those of the mesh in the grid's order may. Fails at `span`."""
    groups = [*dims, sets["unreduced"], sets["manual"]]
    axes = _axes(grid, groups, mesh)
    devices: tuple[int, ...] = ()
    if axes is None and not sets["manual"] and (order := grid.order(mesh)):
        axes = _axes(_Grid(grid.sizes), groups, mesh)
        devices = context.devices_at(order)
    used = [axis for dim in axes or () for axis in dim]
    if axes is None or not all(are_apart(*pair) for pair in combinations(used, 2)):
        hint = "give the mesh of the program that this is from"
        scanner.fail(f"these devices do not follow axes of the mesh {mesh}", *span, hint)
    *split, pending, manual = axes
    return _in_shard_map(PartitionSpec(tuple(split), pending, devices=devices), manual)


def _in_shard_map(spec: PartitionSpec, manual: tuple[str, ...]) -> Reading:
    """A sharding, with a note about the axes along which the program moves data itself."""
    note = f"manual over {', '.join(manual)}: inside shard_map, each device along it has its own array"
    return Reading(spec, manual=manual, notes=(note,) * bool(manual))


def _axes(grid: _Grid, groups: Sequence[Digits], mesh: Mesh) -> tuple[tuple[str, ...], ...] | None:
    """The axes of `mesh` for each group of digits of a place in the grid, of which the last two are sets;
    None where the devices follow no axes."""
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


def _integers(scanner: Scanner, closing: str) -> list[int]:
    """``2,4`` up to `closing`, which is passed, or as far as it goes."""
    numbers = [scanner.integer()]
    while scanner.take(","):
        numbers.append(scanner.integer())
    if closing:
        scanner.expect(closing)
    return numbers


def _iota_order(scanner: Scanner) -> Iota:
    """``[2,4]T(1,0)``: the dimensions of the shortest equal iota, and their permutation."""
    start = scanner.pos
    scanner.expect("[")
    reshape = _integers(scanner, "]")
    perm = _integers(scanner, ")") if scanner.take("T(") else list(range(len(reshape)))
    if len(reshape) > MAX_RANK or sorted(perm) != list(range(len(reshape))) or 0 in reshape:
        scanner.fail("this iota is not a permutation of the devices", start, scanner.pos)
    return shortest_iota(reshape, perm)
