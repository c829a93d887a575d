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
from itertools import combinations, product
from typing import NoReturn

from shardviz.errors import plural, quote
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.notation.tiles import (
    Digit,
    axes_of_digits,
    digits_of_blocks,
    digits_of_sizes,
    shortest_iota,
    through_transpose,
    value,
)
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import are_apart, finest_parts, parts_within

MAX_LISTED = 2**20
"""Devices of the longest order that is listed."""
_HINT = "write an HLO sharding as {devices=[2,4]<=[8]} or {replicated}"


def read_gspmd(text: str, context: Context) -> Reading:
    """Read an HLO sharding against the mesh of `context`.

    Devices that do not follow axes or parts of axes are another order of the mesh's. Raises `NotationError`
    for text of another form, shardings that a PartitionSpec cannot express (tuples, unknown, tiles that cut
    no axes of the mesh), and another number of devices than the mesh has; `QuestionError` when no mesh is
    known.
    """
    mesh = context.known_mesh("an HLO sharding")
    scanner = Scanner(text, _HINT)
    scanner.expect("{")
    if scanner.peek("{"):
        scanner.fail("a tuple of shardings begins", scanner.pos, hint="give the sharding of one array")
    if scanner.peek("mesh[") or scanner.peek("@mesh<"):
        reading = _read_named(scanner, mesh, context)
    elif scanner.take("replicated"):
        reading = Reading(PartitionSpec.replicated(context.known_rank(scanner)))
    elif scanner.take("unreduced"):
        reading = Reading(PartitionSpec(((),) * context.known_rank(scanner), _large_axes(mesh)))
    elif scanner.take("manual"):
        manual = _large_axes(mesh)
        spec = PartitionSpec.replicated(context.known_rank(scanner))
        reading = Reading(spec, manual=manual, notes=_manual_notes(manual))
    elif scanner.take("maximal", "single_device"):
        reading = _read_maximal(scanner, mesh, context)
    elif scanner.take("devices="):
        reading = _read_tiled(scanner, mesh, context)
    else:
        _refuse(scanner)
    if scanner.take("shard_as", "shard_like"):
        scanner.integer("a group")
    scanner.take(",")
    if scanner.peek("metadata="):
        scanner.pos = max(scanner.text.rfind("}"), scanner.pos)
    scanner.expect("}")
    scanner.expect_end()
    return reading


def write_gspmd(reading: Reading, context: Context) -> str:
    """Write this sharding as XLA prints it in a program over the mesh of `context`.

    Raises `QuestionError` when no mesh is known or the spec has an axis that it lacks.
    """
    mesh = context.known_mesh("an HLO sharding")
    spec = reading.spec
    spec.check_devices(mesh)
    if spec.only_device is not None:
        return f"{{maximal device={context.positions_of(spec.devices)[0]}}}"
    parts = list(spec.parts(mesh))
    mesh.group_size(spec.unreduced)
    cut = finest_parts(mesh.shape, (*spec.axes, *spec.unreduced, *reading.manual))
    axes = [axis for own in cut.values() for axis in own]
    large = [axis for axis in axes if mesh.axis_size(axis) > 1]
    split = _finest(spec.axes, axes)
    unreduced = [axis for axis in large if axis in _finest(spec.unreduced, axes)]
    manual = [axis for axis in large if axis in _finest(reading.manual, axes)]
    rest = [axis for axis in large if axis not in (*split, *unreduced, *manual)]
    if len(rest) == len(large):
        return "{replicated}"
    if len(unreduced) == len(large):
        return "{unreduced}"
    if len(manual) == len(large):
        return "{manual}"
    groups = {"manual": manual, "unreduced": unreduced, "replicated": rest}
    kinds = [kind for kind, axes in groups.items() if axes]
    parts += [mesh.group_size(groups[kind]) for kind in kinds]
    order = [axes.index(axis) for axis in (*split, *manual, *unreduced, *rest)]
    suffix = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    if kinds == ["replicated"]:
        suffix = " last_tile_dim_replicate"
    sizes = [*map(mesh.axis_size, axes)]
    devices = f"<={_iota(sizes, order)}"
    if spec.devices:
        positions = context.positions_of(spec.devices)
        devices = ",".join(str(positions[place]) for place in _listed(sizes, order))
    return f"{{devices=[{','.join(map(str, parts))}]{devices}{suffix}}}"


def _listed(sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """The places of ``arange(n).reshape(sizes).transpose(order)``, in row-major order."""
    strides = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    return [
        sum(index * strides[axis] for axis, index in zip(order, place, strict=True))
        for place in product(*(range(sizes[axis]) for axis in order))
    ]


def _finest(axes: Sequence[str], finest: Sequence[str]) -> list[str]:
    """The finest parts of axes that make some axes."""
    return [part for axis in axes for part in parts_within(axis, finest)]


def _order(listed: Sequence[int], iota: tuple[list[int], list[int]] | None, mesh: Mesh) -> Sequence[int]:
    """The places in the mesh of the devices as they are listed, or as an iota lists them; none where they are
    too many, or not each device once."""
    if mesh.size > MAX_LISTED:
        return ()
    order = listed if iota is None else _listed(*iota)
    return order if sorted(order) == [*range(mesh.size)] else ()


def _refuse(scanner: Scanner) -> None:
    reasons = {
        "unknown": "the compiler has not decided this sharding",
    }
    start = scanner.pos
    for word, reason in reasons.items():
        if scanner.take(word):
            hint = "give the sharding of an array split over the whole mesh"
            scanner.fail(reason, start, scanner.pos, hint)
    scanner.fail_here("'devices=', 'replicated' or another HLO sharding")


def _read_maximal(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """Read the text after ``maximal``: `` device=3``."""
    start = scanner.pos
    scanner.expect("device")
    scanner.expect("=")
    place = scanner.integer("the number of the device")
    spec = scanner.on_devices(
        PartitionSpec.replicated(context.known_rank(scanner)), [place], start, mesh.shape
    )
    return Reading(replace(spec, devices=(mesh.device_id(place),)))


def _large_axes(mesh: Mesh) -> tuple[str, ...]:
    return tuple(axis for axis, size in mesh.shape.items() if size > 1)


def _iota(reshape: Sequence[int], order: Sequence[int]) -> str:
    """``[8]`` or ``[2,4]T(1,0)``."""
    sizes, perm = shortest_iota(reshape, order)
    transpose = f"T({','.join(map(str, perm))})" if len(perm) > 1 else ""
    return f"[{','.join(map(str, sizes))}]{transpose}"


@dataclass(frozen=True)
class _NamedMesh:
    """The mesh in the text: the digit of each axis, and the devices at its places, an iota or a list."""

    axes: dict[str, Digit]
    iota: tuple[list[int], list[int]] | None = None
    listed: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        return math.prod(digit.size for digit in self.axes.values())


def _read_named(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """Read the text in the braces from ``mesh[`` on; raises as `read_gspmd` does."""
    start = scanner.pos
    named = _mesh(scanner)
    if named.axes and named.size != mesh.size:
        hint = "give the mesh of the program that this is from"
        scanner.fail(
            f"{plural(named.size, 'device')}, but the mesh {mesh} has {mesh.size}", start, scanner.pos, hint
        )
    scanner.expect(",")
    open_dims: list[int] = []
    dims: list[list[Digit]]
    sets: dict[str, list[Digit]] = {"replicated": [], "unreduced": [], "manual": []}
    if scanner.take("["):
        dims = _dims(scanner, named, open_dims)
        context.check_rank(scanner, len(dims))
    else:
        dims = [[] for _ in range(context.known_rank(scanner))]
        if all_axes := scanner.take("unreduced", "manual"):
            sets[all_axes] += named.axes.values()
        elif not scanner.take("replicated"):
            scanner.fail_here("'[', 'replicated', 'unreduced' or 'manual'")
    while scanner.take(","):
        if scanner.peek("metadata"):
            break
        kind, digits = _axis_set(scanner, named)
        sets[kind] += digits
    unreduced, manual = (
        sorted(sets[kind], key=lambda digit: -digit.stride) for kind in ("unreduced", "manual")
    )
    axes = _axes(named, [*dims, unreduced, manual], mesh)
    devices: tuple[int, ...] = ()
    if axes is None and not manual and (order := _order(named.listed or (), named.iota, mesh)):
        axes = _axes(_NamedMesh(named.axes), [*dims, unreduced, manual], mesh)
        devices = context.devices_at(order)
    used = [axis for dim in axes or () for axis in dim]
    if axes is None or not all(are_apart(*pair) for pair in combinations(used, 2)):
        _fail_no_axes(scanner, mesh, start, scanner.pos)
    *split, pending, inside = axes
    notes = [f"dimension {dim} is open: the compiler may split it further" for dim in open_dims]
    return Reading(
        PartitionSpec(tuple(split), pending, devices=devices),
        open_dims=tuple(open_dims),
        manual=inside,
        notes=(*notes, *_manual_notes(inside)),
    )


def _mesh(scanner: Scanner) -> _NamedMesh:
    closing = "]" if scanner.take("mesh[") else ">" if scanner.take("@mesh<") else scanner.fail_here("a mesh")
    sizes: dict[str, int] = {}
    for _ in scanner.items(closing):
        name = _name(scanner)
        scanner.expect("=")
        size = scanner.integer("the size of the axis")
        if name.text in sizes or size < 1 or len(sizes) == MAX_RANK:
            problem = f"axis {quote(name.text, 30)} is named twice or has no devices"
            scanner.fail(problem, name.start, name.stop, "give every axis a name and a size of its own")
        sizes[name.text] = size
    axes = dict(zip(sizes, digits_of_sizes(tuple(sizes.values())), strict=True))
    total = math.prod(sizes.values())
    before = scanner.pos
    if not (scanner.take(",") and scanner.take("device_ids")):
        scanner.pos = before
        return _NamedMesh(axes)
    scanner.expect("=")
    scanner.expect("(")
    iota = _iota_order(scanner) if scanner.peek("[") else None
    listed = () if iota else tuple(_integers(scanner, ""))
    scanner.expect(")")
    if (math.prod(iota[0]) if iota else len(listed)) != total or (
        listed and sorted(listed) != list(range(total))
    ):
        scanner.fail(f"device_ids are not the {plural(total, 'device')} of the mesh", before, scanner.pos)
    return _NamedMesh(axes, iota, listed or None)


def _name(scanner: Scanner) -> Word:
    quoted = scanner.peek("'") or scanner.peek('"')
    return scanner.string("an axis") if quoted else scanner.name("an axis")


def _dims(scanner: Scanner, named: _NamedMesh, open_dims: list[int]) -> list[list[Digit]]:
    dims: list[list[Digit]] = []
    while not scanner.take("]"):
        scanner.expect("{")
        dims.append(_digits(scanner, named))
        if scanner.text[: scanner.pos].endswith("?"):
            open_dims.append(len(dims) - 1)
        scanner.expect("}")
        if not scanner.take(",") and not scanner.peek("]"):
            scanner.fail_here("',' or ']'")
        if len(dims) > MAX_RANK:
            scanner.fail(f"more than {MAX_RANK} dimensions", scanner.pos, hint="use fewer dimensions")
    return dims


def _digits(scanner: Scanner, named: _NamedMesh) -> list[Digit]:
    """Axes up to the closing brace or past a ``?``, which must be the last."""
    digits: list[Digit] = []
    while not scanner.peek("}"):
        if scanner.take("?"):
            return digits
        name = _name(scanner)
        axis = named.axes.get(name.text)
        if axis is None:
            scanner.fail_unknown(name, tuple(named.axes))
        digits.append(_sub_axis(scanner, axis) if scanner.take(":") else axis)
        if not scanner.take(",") and not scanner.peek("}"):
            scanner.fail_here("',' or '}'")
        if len(digits) > MAX_RANK:
            scanner.fail(f"more than {MAX_RANK} axes", name.start, name.stop, "use fewer axes")
    return digits


def _sub_axis(scanner: Scanner, axis: Digit) -> Digit:
    start = scanner.pos
    scanner.expect("(")
    before = scanner.integer("a number")
    scanner.expect(")")
    size = scanner.integer("a number")
    if before < 1 or size < 1 or axis.size % (before * size):
        scanner.fail(f"an axis of size {axis.size} has no such part", start, scanner.pos)
    return Digit(size, axis.stride * (axis.size // (before * size)))


def _axis_set(scanner: Scanner, named: _NamedMesh) -> tuple[str, list[Digit]]:
    """``unreduced={…}``, ``manual={…}`` or ``replicated={…}``: the word before the sign, and the digits."""
    start = scanner.pos
    kind = scanner.take("replicated", "unreduced", "manual") or scanner.fail_here("'unreduced='")
    scanner.expect("=")
    if scanner.take("max", "min"):
        hint = "give an array that is whole or a pending sum"
        scanner.fail("the pending reduction is not a sum", start, scanner.pos, hint)
    scanner.expect("{")
    digits = _digits(scanner, named)
    scanner.expect("}")
    return kind, digits


def _axes(
    named: _NamedMesh, groups: Sequence[Sequence[Digit]], mesh: Mesh
) -> tuple[tuple[str, ...], ...] | None:
    """For each dimension its axes of `mesh`; of the last two groups, which are sets, those too."""
    sets = len(groups) - 2
    if named.listed is not None:
        parts = [math.prod(digit.size for digit in group) for group in groups]
        blocks: list[tuple[int, ...]] = [()] * len(named.listed)
        for place, device in enumerate(named.listed):
            blocks[device] = tuple(value(group, place) for group in groups)
        if math.prod(parts) > len(blocks):
            return None
        found = digits_of_blocks(parts, blocks)
        if found is None:
            return None
        groups = list(found)
    elif named.iota is not None:
        moved = [[through_transpose(digit, *named.iota) for digit in group] for group in groups]
        if any(digits is None for group in moved for digits in group):
            return None
        groups = [[digit for digits in group if digits for digit in digits] for group in moved]
    axes = [axes_of_digits(group, mesh, ordered=i < sets) for i, group in enumerate(groups)]
    known = tuple(dim for dim in axes if dim is not None)
    return known if len(known) == len(axes) else None


_SUBGROUPS = ("replicated", "unreduced", "manual", "maximal")


def _read_tiled(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """Read the text after ``devices=`` as a spec over the mesh; raises as `read_gspmd` does."""
    start = scanner.pos
    scanner.expect("[")
    parts = _integers(scanner, "]")
    iota = _iota_order(scanner) if scanner.take("<=") else None
    listed = _integers(scanner, "") if iota is None else []
    stop = scanner.pos
    kinds = _subgroup_kinds(scanner)
    dims = len(parts) - len(kinds)
    total = math.prod(parts)
    count = math.prod(iota[0]) if iota else len(listed)
    if dims < 0 or len(parts) > MAX_RANK:
        amount = "few" if dims < 0 else "many"
        scanner.fail(f"too {amount} tile dimensions ({len(parts)})", start, stop)
    if count != total:
        product_of = f"{'·'.join(map(str, parts))} = {total}" if len(parts) > 1 else str(total)
        scanner.fail(f"{product_of} tiles do not fit {plural(count, 'device')}", start, stop)
    if total != mesh.size:
        hint = "give the mesh of the program that this is from"
        scanner.fail(f"{plural(total, 'device')}, but the mesh {mesh} has {mesh.size}", start, stop, hint)
    if "maximal" in kinds or ("manual" in kinds and not iota):
        hint = "give a sharding outside shard_map"
        scanner.fail("the program moves a part of its data itself", start, scanner.pos, hint)
    context.check_rank(scanner, dims)
    manual = _iota_manual(parts, kinds, iota, mesh) if iota else ()
    found = _iota_axes(parts, kinds, iota, mesh) if iota else _listed_axes(parts, kinds, listed, mesh)
    if found is None and not manual and (order := _order(listed, iota, mesh)):
        found = _iota_axes(parts, kinds, ([mesh.size], [0]), mesh)
        found = None if found is None else replace(found, devices=context.devices_at(order))
    if found is None or manual is None:
        _fail_no_axes(scanner, mesh, start, stop)
    return Reading(found, manual=manual, notes=_manual_notes(manual))


def _manual_notes(axes: Sequence[str]) -> tuple[str, ...]:
    """The note about axes along which the program moves data itself."""
    if not axes:
        return ()
    return (f"manual over {', '.join(axes)}: inside shard_map, each device along it has its own array",)


def _fail_no_axes(scanner: Scanner, mesh: Mesh, start: int, stop: int) -> NoReturn:
    """Fail for devices that no PartitionSpec over `mesh` places like that."""
    hint = "a sharding is over axes and parts of axes; give the mesh of the program that this is from"
    scanner.fail(f"these devices do not follow axes of the mesh {mesh}", start, stop, hint)


def _integers(scanner: Scanner, closing: str) -> list[int]:
    """``2,4`` up to `closing`, which is passed, or as far as it goes."""
    numbers = [scanner.integer("a number")]
    while scanner.take(","):
        numbers.append(scanner.integer("a number"))
    if closing:
        scanner.expect(closing)
    return numbers


def _iota_order(scanner: Scanner) -> tuple[list[int], list[int]]:
    """``[2,4]T(1,0)``: the dimensions of the shortest equal iota, and their permutation."""
    start = scanner.pos
    scanner.expect("[")
    reshape = _integers(scanner, "]")
    perm = _integers(scanner, ")") if scanner.take("T(") else list(range(len(reshape)))
    if len(reshape) > MAX_RANK or sorted(perm) != list(range(len(reshape))) or 0 in reshape:
        scanner.fail("this iota is not a permutation of the devices", start, scanner.pos)
    return shortest_iota(reshape, perm)


def _subgroup_kinds(scanner: Scanner) -> list[str]:
    if scanner.take("last_tile_dim_replicate"):
        return ["replicated"]
    kinds: list[str] = []
    if scanner.take("last_tile_dims={"):
        while not scanner.take("}"):
            kinds.append(scanner.take(*_SUBGROUPS) or scanner.fail_here(" or ".join(_SUBGROUPS)))
            scanner.take(",")
    return kinds


def _iota_axes(
    parts: list[int], kinds: list[str], iota: tuple[list[int], list[int]], mesh: Mesh
) -> PartitionSpec | None:
    dims: list[tuple[str, ...]] = []
    unreduced: list[Digit] = []
    names = [""] * (len(parts) - len(kinds)) + kinds
    for kind, digit in zip(names, digits_of_sizes(parts), strict=True):
        if kind in ("replicated", "manual"):
            continue
        digits = through_transpose(digit, *iota)
        if digits is None:
            return None
        if kind == "unreduced":
            unreduced += digits
            continue
        axes = axes_of_digits(digits, mesh)
        if axes is None:
            return None
        dims.append(axes)
    return _with_unreduced(dims, unreduced, mesh)


def _iota_manual(
    parts: list[int], kinds: list[str], iota: tuple[list[int], list[int]], mesh: Mesh
) -> tuple[str, ...] | None:
    """The axes of the last tile dimensions that are manual; None where there are none."""
    digits: list[Digit] = []
    names = [""] * (len(parts) - len(kinds)) + kinds
    for kind, digit in zip(names, digits_of_sizes(parts), strict=True):
        if kind == "manual":
            found = through_transpose(digit, *iota)
            if found is None:
                return None
            digits += found
    return axes_of_digits(digits, mesh, ordered=False)


def _listed_axes(parts: list[int], kinds: list[str], listed: list[int], mesh: Mesh) -> PartitionSpec | None:
    if sorted(listed) != list(range(mesh.size)):
        return None
    rank = len(parts) - len(kinds)
    partial = [i for i, kind in enumerate(kinds, rank) if kind == "unreduced"]
    places = product(*map(range, parts))
    groups: dict[tuple[int, ...], dict[tuple[int, ...], list[int]]] = {}
    for place, device in zip(places, listed, strict=True):
        block, part = place[:rank], tuple(place[i] for i in partial)
        groups.setdefault(block, {}).setdefault(part, []).append(device)
    blocks: list[tuple[int, ...]] = [()] * len(listed)
    for block, sums in groups.items():
        for i, devices in enumerate(sorted(sums.values(), key=min)):
            for device in devices:
                blocks[device] = (*block, i)
    counts = (*parts[:rank], math.prod(parts[i] for i in partial))
    digits = digits_of_blocks(counts, blocks)
    if digits is None:
        return None
    dims = [axes_of_digits(dim, mesh) for dim in digits[:-1]]
    known = [dim for dim in dims if dim is not None]
    return _with_unreduced(known, list(digits[-1]), mesh) if len(known) == len(dims) else None


def _with_unreduced(dims: list[tuple[str, ...]], digits: list[Digit], mesh: Mesh) -> PartitionSpec | None:
    unreduced = axes_of_digits(digits, mesh, ordered=False)
    return None if unreduced is None else PartitionSpec(tuple(dims), unreduced)
