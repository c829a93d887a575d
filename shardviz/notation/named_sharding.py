"""The named form of an HLO sharding: ``mesh['x'=2,'y'=2], [{'y'}, {}], unreduced={'x'}, manual={}``.

Its mesh has names of its own, so its axes are compared by the places of devices. ``'b':(2)2`` is the part of
size 2 of axis b that follows a part of size 2; ``device_ids`` says which device stands at each place, where
that is not 0, 1, 2, …; ``?`` says that the compiler may split a dimension further.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.errors import plural, quote
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.notation.tile_assignment import HINT, fail_not_whole, integers, iota_order, manual_notes
from shardviz.notation.tiles import (
    Digit,
    digits_of_blocks,
    digits_of_sizes,
    through_transpose,
    value,
    whole_axes,
)
from shardviz.sharding import Mesh, PartitionSpec


@dataclass(frozen=True)
class _NamedMesh:
    """The mesh in the text: the digit of each axis, and the devices at its places, an iota or a list."""

    axes: dict[str, Digit]
    iota: tuple[list[int], list[int]] | None = None
    listed: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        return math.prod(digit.size for digit in self.axes.values())


def read_named(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """What stands in the braces from ``mesh[`` on; raises as `read_gspmd` does."""
    start = scanner.pos
    named = _mesh(scanner)
    if named.axes and named.size != mesh.size:
        hint = "give the mesh of the program that this is from"
        scanner.fail(
            f"{plural(named.size, 'device')}, but the mesh {mesh} has {mesh.size}", start, scanner.pos, hint
        )
    scanner.expect(",", HINT)
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
            scanner.fail_here("'[', 'replicated', 'unreduced' or 'manual'", HINT)
    while scanner.take(","):
        if scanner.peek("metadata"):
            break
        kind, digits = _axis_set(scanner, named)
        sets[kind] += digits
    unreduced, manual = (
        sorted(sets[kind], key=lambda digit: -digit.stride) for kind in ("unreduced", "manual")
    )
    axes = _axes(named, [*dims, unreduced, manual], mesh)
    used = [axis for dim in axes or () for axis in dim]
    if axes is None or len(set(used)) < len(used):
        fail_not_whole(scanner, mesh, start, scanner.pos)
    *split, pending, inside = axes
    notes = [f"dimension {dim} is open: the compiler may split it further" for dim in open_dims]
    return Reading(
        PartitionSpec(tuple(split), pending),
        open_dims=tuple(open_dims),
        manual=inside,
        notes=(*notes, *manual_notes(context.named(inside))),
    )


def _mesh(scanner: Scanner) -> _NamedMesh:
    closing = (
        "]" if scanner.take("mesh[") else ">" if scanner.take("@mesh<") else scanner.fail_here("a mesh", HINT)
    )
    sizes: dict[str, int] = {}
    while not scanner.take(closing):
        name = _name(scanner)
        scanner.expect("=", HINT)
        size = scanner.integer("the size of the axis", HINT)
        if name.text in sizes or size < 1 or len(sizes) == MAX_RANK:
            problem = f"axis {quote(name.text, 30)} is named twice or has no devices"
            scanner.fail(problem, name.start, name.stop, "give every axis a name and a size of its own")
        sizes[name.text] = size
        if not scanner.take(",") and not scanner.peek(closing):
            scanner.fail_here(f"',' or '{closing}'", HINT)
    axes = dict(zip(sizes, digits_of_sizes(tuple(sizes.values())), strict=True))
    total = math.prod(sizes.values())
    before = scanner.pos
    if not (scanner.take(",") and scanner.take("device_ids")):
        scanner.pos = before
        return _NamedMesh(axes)
    scanner.expect("=", HINT)
    scanner.expect("(", HINT)
    iota = iota_order(scanner) if scanner.peek("[") else None
    listed = () if iota else tuple(integers(scanner, ""))
    scanner.expect(")", HINT)
    if (math.prod(iota[0]) if iota else len(listed)) != total or (
        listed and sorted(listed) != list(range(total))
    ):
        scanner.fail(
            f"device_ids are not the {plural(total, 'device')} of the mesh", before, scanner.pos, HINT
        )
    return _NamedMesh(axes, iota, listed or None)


def _name(scanner: Scanner) -> Word:
    quoted = scanner.peek("'") or scanner.peek('"')
    return scanner.string("an axis", HINT) if quoted else scanner.name("an axis", HINT)


def _dims(scanner: Scanner, named: _NamedMesh, open_dims: list[int]) -> list[list[Digit]]:
    dims: list[list[Digit]] = []
    while not scanner.take("]"):
        scanner.expect("{", HINT)
        dims.append(_digits(scanner, named))
        if scanner.text[: scanner.pos].endswith("?"):
            open_dims.append(len(dims) - 1)
        scanner.expect("}", HINT)
        if not scanner.take(",") and not scanner.peek("]"):
            scanner.fail_here("',' or ']'", HINT)
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
            scanner.fail_here("',' or '}'", HINT)
        if len(digits) > MAX_RANK:
            scanner.fail(f"more than {MAX_RANK} axes", name.start, name.stop, "use fewer axes")
    return digits


def _sub_axis(scanner: Scanner, axis: Digit) -> Digit:
    start = scanner.pos
    scanner.expect("(", HINT)
    before = scanner.integer("a number", HINT)
    scanner.expect(")", HINT)
    size = scanner.integer("a number", HINT)
    if before < 1 or size < 1 or axis.size % (before * size):
        scanner.fail(f"an axis of size {axis.size} has no such part", start, scanner.pos, HINT)
    return Digit(size, axis.stride * (axis.size // (before * size)))


def _axis_set(scanner: Scanner, named: _NamedMesh) -> tuple[str, list[Digit]]:
    """``unreduced={…}``, ``manual={…}`` or ``replicated={…}``: the word before the sign, and the digits."""
    start = scanner.pos
    kind = scanner.take("replicated", "unreduced", "manual") or scanner.fail_here("'unreduced='", HINT)
    scanner.expect("=", HINT)
    if scanner.take("max", "min"):
        hint = "give an array that is whole or a pending sum"
        scanner.fail("the pending reduction is not a sum", start, scanner.pos, hint)
    scanner.expect("{", HINT)
    digits = _digits(scanner, named)
    scanner.expect("}", HINT)
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
    axes = [whole_axes(group, mesh, ordered=i < sets) for i, group in enumerate(groups)]
    known = tuple(dim for dim in axes if dim is not None)
    return known if len(known) == len(axes) else None
