"""A target's answer as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.hardware import axis_runs

if TYPE_CHECKING:
    from shardviz.compiler import Compiled
    from shardviz.hardware import Placement
    from shardviz.hlo import Collective, CollectiveMatmul
    from shardviz.sharding import Mesh, PartitionSpec

Document = dict[str, Any]


def target_document(compiled: Compiled, mesh: Mesh, with_text: bool = False) -> Document:
    """One of the `targets` of an explanation; `with_text` adds the program that was read."""
    document = {
        "target": compiled.target,
        "status": compiled.status,
        "error": compiled.error or None,
        "hint": compiled.hint or None,
        **spec_document("result_spec", "result_unreduced", compiled.result_spec),
        "collectives": [collective_document(each) for each in compiled.collectives if each.op != "slice"],
        "slices": [collective_document(each) for each in compiled.collectives if each.op == "slice"],
        "collective_matmuls": [matmul_document(each) for each in compiled.collective_matmuls],
        "partitioned": None
        if compiled.partitioned is None
        else [collective_document(each) for each in compiled.partitioned],
        "placement": None if compiled.placement is None else placement_document(compiled.placement, mesh),
        "elapsed_s": round(compiled.elapsed_s, 6),
        "versions": dict(compiled.versions),
    }
    if compiled.typeof:
        document["typeof"] = dict(compiled.typeof)
    if with_text:
        document["text"] = compiled.text
    return document


def collective_document(each: Collective) -> Document:
    """A collective. `groups` is null where they are too many to list; there are `group_count`, null where the
    program does not tell, of `group_size` devices each. `overlapped` is what runs while it is under way, with
    the compiler's own estimates; `standing` how many of the program's matmuls come before it, null where that
    was not asked."""
    return {
        "op": each.op,
        "name": each.name,
        "axes": list(each.axes),
        "groups": None if each.groups is None else [list(group) for group in each.groups],
        "group_count": each.group_count or None,
        "group_size": each.group_size,
        "operand_shape": list(each.operand_shape),
        "result_shape": list(each.result_shape),
        "dtype": each.dtype,
        "arrays": each.arrays,
        "bytes": each.bytes,
        "wire_bytes": each.wire_bytes,
        "count": each.count,
        "in_branch": each.in_branch,
        "source": each.source,
        "is_async": each.is_async,
        "overlapped": [{"name": work.name, "op": work.op, "cycles": work.cycles} for work in each.overlapped],
        "algorithm": each.algorithm or None,
        "standing": None
        if each.standing is None
        else {"matmuls_before": each.standing.before, "matmuls": each.standing.matmuls},
        "between_slices": each.between_slices,
        "is_host_transfer": each.is_host_transfer,
    }


def placement_document(placement: Placement, mesh: Mesh) -> Document:
    """Where the mesh lies: what each axis runs along, and each device by its position in the mesh."""
    return {
        "torus": list(placement.torus),
        "wrap": list(placement.wrap),
        "axes": [
            {"axis": run.axis, "along": list(run.along), "hops": run.hops, "is_ring": run.is_ring}
            for run in axis_runs(placement, mesh)
        ],
        "devices": [
            {"id": id, "coords": list(place.coords), "core": place.core, "slice": place.slice}
            for id, place in zip(placement.ids, placement.places, strict=True)
        ],
    }


def spec_document(name: str, unreduced_name: str, spec: PartitionSpec | None) -> Document:
    """A spec under one name, and the axes of its pending sum under another."""
    if spec is None:
        return {name: None, unreduced_name: []}
    return {name: [list(axes) for axes in spec.dims], unreduced_name: list(spec.unreduced)}


def matmul_document(each: CollectiveMatmul) -> Document:
    return {
        "op": each.op,
        "axes": list(each.axes),
        "directions": each.directions,
        "group_size": each.group_size,
        "permutes": list(each.permutes),
        "matmuls": list(each.matmuls),
        "bytes": each.bytes,
        "wire_bytes": each.wire_bytes,
        "source": each.source,
    }
