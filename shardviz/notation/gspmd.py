"""HLO shardings, as XLA prints them: ``{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}``.

A tiled sharding gives the number of blocks of each dimension, then of each group of devices that shares
a block, and the devices in row-major order of the blocks: listed, or as a transposed iota (arange,
reshape, transpose). The named form, ``{mesh['x'=2,'y'=2], [{'y'}, {}]}``, refers to axes of a mesh of its
own, whose names need not be the user's. The grammar is that of XLA's ``hlo/parser/hlo_parser.cc``.

XLA numbers a program's devices in row-major order of the mesh, whatever their ids, so all of it is
compared by place in the mesh. Axes of size 1 leave no trace and are never read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardviz.notation.named_sharding import read_named
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner
from shardviz.notation.tile_assignment import HINT, manual_notes, read_tiled
from shardviz.notation.tiles import shortest_iota
from shardviz.sharding import Mesh, PartitionSpec


def read_gspmd(text: str, context: Context) -> Reading:
    """Read an HLO sharding against the mesh of `context`.

    Raises `NotationError` for text of another form, shardings that a PartitionSpec cannot express (tuples,
    maximal, unknown, devices that do not follow whole axes), and another number of devices
    than the mesh has; `QuestionError` when no mesh is known.
    """
    mesh = context.known_mesh("an HLO sharding")
    scanner = Scanner(text)
    scanner.expect("{", HINT)
    if scanner.peek("{"):
        scanner.fail("a tuple of shardings begins", scanner.pos, hint="give the sharding of one array")
    if scanner.peek("mesh[") or scanner.peek("@mesh<"):
        reading = read_named(scanner, mesh, context)
    elif scanner.take("replicated"):
        reading = Reading(PartitionSpec.replicated(context.known_rank(scanner)))
    elif scanner.take("unreduced"):
        reading = Reading(PartitionSpec(((),) * context.known_rank(scanner), _large_axes(mesh)))
    elif scanner.take("manual"):
        manual = _large_axes(mesh)
        spec = PartitionSpec.replicated(context.known_rank(scanner))
        reading = Reading(spec, manual=manual, notes=manual_notes(context.named(manual)))
    elif scanner.take("devices="):
        reading = read_tiled(scanner, mesh, context)
    else:
        _refuse(scanner)
    if scanner.take("shard_as", "shard_like"):
        scanner.integer("a group", HINT)
    scanner.take(",")
    if scanner.peek("metadata="):
        scanner.pos = max(scanner.text.rfind("}"), scanner.pos)
    scanner.expect("}", HINT)
    scanner.expect_end(HINT)
    return reading


def write_gspmd(reading: Reading, context: Context) -> str:
    """What XLA prints for this sharding in a program over the mesh of `context`.

    Raises `QuestionError` when no mesh is known or the spec has an axis that it lacks.
    """
    mesh = context.known_mesh("an HLO sharding")
    spec = reading.spec
    parts = list(spec.parts(mesh))
    mesh.group_size(spec.unreduced)
    large = _large_axes(mesh)
    unreduced = [axis for axis in large if axis in spec.unreduced]
    manual = [axis for axis in large if axis in reading.manual]
    rest = [axis for axis in large if axis not in (*spec.axes, *unreduced, *manual)]
    if len(rest) == len(large):
        return "{replicated}"
    if len(unreduced) == len(large):
        return "{unreduced}"
    if len(manual) == len(large):
        return "{manual}"
    groups = {"manual": manual, "unreduced": unreduced, "replicated": rest}
    kinds = [kind for kind, axes in groups.items() if axes]
    parts += [mesh.group_size(groups[kind]) for kind in kinds]
    order = [mesh.axis_names.index(axis) for axis in (*spec.axes, *manual, *unreduced, *rest)]
    suffix = f" last_tile_dims={{{', '.join(kinds)}}}" if kinds else ""
    if kinds == ["replicated"]:
        suffix = " last_tile_dim_replicate"
    return f"{{devices=[{','.join(map(str, parts))}]<={_iota(mesh.axis_sizes, order)}{suffix}}}"


def _refuse(scanner: Scanner) -> None:
    reasons = {
        "maximal": "one device holds the whole array, which no PartitionSpec says",
        "single_device": "one device holds the whole array, which no PartitionSpec says",
        "unknown": "the compiler has not decided this sharding",
    }
    start = scanner.pos
    for word, reason in reasons.items():
        if scanner.take(word):
            hint = "give the sharding of an array split over the whole mesh"
            scanner.fail(reason, start, scanner.pos, hint)
    scanner.fail_here("'devices=', 'replicated' or another HLO sharding", HINT)


def _large_axes(mesh: Mesh) -> tuple[str, ...]:
    return tuple(axis for axis, size in mesh.shape.items() if size > 1)


def _iota(reshape: Sequence[int], order: Sequence[int]) -> str:
    """``[8]`` or ``[2,4]T(1,0)``."""
    sizes, perm = shortest_iota(reshape, order)
    transpose = f"T({','.join(map(str, perm))})" if len(perm) > 1 else ""
    return f"[{','.join(map(str, sizes))}]{transpose}"
