"""The tiles of an HLO sharding, ``[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate``, as a spec over a mesh.

The numbers of blocks come first, then the devices in row-major order of the blocks: listed, or as
``[2,4]T(1,0)``, which is ``arange(8).reshape(2, 4).transpose(1, 0)``. The last tile dimensions may be no
dimensions of the array but groups of devices that share a block, hold partial sums of it, or hold arrays of
their own (``manual``, inside `jax.shard_map`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import NoReturn

from shardviz.errors import plural
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner
from shardviz.notation.tiles import (
    Digit,
    digits_of_blocks,
    digits_of_sizes,
    shortest_iota,
    through_transpose,
    whole_axes,
)
from shardviz.sharding import Mesh, PartitionSpec

HINT = "write an HLO sharding as {devices=[2,4]<=[8]} or {replicated}"
_SUBGROUPS = ("replicated", "unreduced", "manual", "maximal")


def read_tiled(scanner: Scanner, mesh: Mesh, context: Context) -> Reading:
    """Read the text after ``devices=`` as a spec over the mesh; raises as `read_gspmd` does."""
    start = scanner.pos
    scanner.expect("[", HINT)
    parts = integers(scanner, "]")
    iota = iota_order(scanner) if scanner.take("<=") else None
    listed = integers(scanner, "") if iota is None else []
    stop = scanner.pos
    kinds = _subgroup_kinds(scanner)
    dims = len(parts) - len(kinds)
    total = math.prod(parts)
    count = math.prod(iota[0]) if iota else len(listed)
    if dims < 0 or len(parts) > MAX_RANK:
        amount = "few" if dims < 0 else "many"
        scanner.fail(f"too {amount} tile dimensions ({len(parts)})", start, stop, HINT)
    if count != total:
        product_of = f"{'·'.join(map(str, parts))} = {total}" if len(parts) > 1 else str(total)
        scanner.fail(f"{product_of} tiles do not fit {plural(count, 'device')}", start, stop, HINT)
    if total != mesh.size:
        hint = "give the mesh of the program that this is from"
        scanner.fail(f"{plural(total, 'device')}, but the mesh {mesh} has {mesh.size}", start, stop, hint)
    if "maximal" in kinds or ("manual" in kinds and not iota):
        hint = "give a sharding outside shard_map"
        scanner.fail("the program moves a part of its data itself", start, scanner.pos, hint)
    context.check_rank(scanner, dims)
    manual = _iota_manual(parts, kinds, iota, mesh) if iota else ()
    found = _iota_axes(parts, kinds, iota, mesh) if iota else _listed_axes(parts, kinds, listed, mesh)
    if found is None or manual is None:
        fail_not_whole(scanner, mesh, start, stop)
    return Reading(found, manual=manual, notes=manual_notes(context.named(manual)))


def manual_notes(axes: Sequence[str]) -> tuple[str, ...]:
    """The note about axes along which the program moves data itself."""
    if not axes:
        return ()
    return (f"manual over {', '.join(axes)}: inside shard_map, each device along it has its own array",)


def fail_not_whole(scanner: Scanner, mesh: Mesh, start: int, stop: int) -> NoReturn:
    """Fail for devices that no PartitionSpec over `mesh` places like that."""
    hint = "a PartitionSpec splits over whole axes; give the mesh of the program that this is from"
    scanner.fail(f"these devices do not follow whole axes of the mesh {mesh}", start, stop, hint)


def integers(scanner: Scanner, closing: str) -> list[int]:
    """``2,4`` up to `closing`, which is passed, or as far as it goes."""
    numbers = [scanner.integer("a number", HINT)]
    while scanner.take(","):
        numbers.append(scanner.integer("a number", HINT))
    if closing:
        scanner.expect(closing, HINT)
    return numbers


def iota_order(scanner: Scanner) -> tuple[list[int], list[int]]:
    """``[2,4]T(1,0)``: the dimensions of the shortest equal iota, and their permutation."""
    start = scanner.pos
    scanner.expect("[", HINT)
    reshape = integers(scanner, "]")
    perm = integers(scanner, ")") if scanner.take("T(") else list(range(len(reshape)))
    if len(reshape) > MAX_RANK or sorted(perm) != list(range(len(reshape))) or 0 in reshape:
        scanner.fail("this iota is not a permutation of the devices", start, scanner.pos, HINT)
    return shortest_iota(reshape, perm)


def _subgroup_kinds(scanner: Scanner) -> list[str]:
    if scanner.take("last_tile_dim_replicate"):
        return ["replicated"]
    kinds: list[str] = []
    if scanner.take("last_tile_dims={"):
        while not scanner.take("}"):
            kinds.append(scanner.take(*_SUBGROUPS) or scanner.fail_here(" or ".join(_SUBGROUPS), HINT))
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
        axes = whole_axes(digits, mesh)
        if axes is None:
            return None
        dims.append(axes)
    return _with_unreduced(dims, unreduced, mesh)


def _iota_manual(
    parts: list[int], kinds: list[str], iota: tuple[list[int], list[int]], mesh: Mesh
) -> tuple[str, ...] | None:
    """The axes of the last tile dimensions that are manual; None where they are not whole."""
    digits: list[Digit] = []
    names = [""] * (len(parts) - len(kinds)) + kinds
    for kind, digit in zip(names, digits_of_sizes(parts), strict=True):
        if kind == "manual":
            found = through_transpose(digit, *iota)
            if found is None:
                return None
            digits += found
    return whole_axes(digits, mesh, ordered=False)


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
    dims = [whole_axes(dim, mesh) for dim in digits[:-1]]
    known = [dim for dim in dims if dim is not None]
    return _with_unreduced(known, list(digits[-1]), mesh) if len(known) == len(dims) else None


def _with_unreduced(dims: list[tuple[str, ...]], digits: list[Digit], mesh: Mesh) -> PartitionSpec | None:
    unreduced = whole_axes(digits, mesh, ordered=False)
    return None if unreduced is None else PartitionSpec(tuple(dims), unreduced)
