"""JSON documents: plain dicts of the same objects that the pictures show.

A spec is a list with one list of axis names per dimension; the axes of a pending sum are beside it as
`unreduced`. Bytes and shapes are per device unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz import schemas
from shardviz.errors import ShardvizError
from shardviz.notation import Reading
from shardviz.planner.plan import Plan, Step
from shardviz.planner.search import Candidate
from shardviz.render.plans.plan_arrays import decided_parts
from shardviz.render.programs.target_document import Document, spec_document, target_document
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.compiler import Compiled
    from shardviz.compiler.groups import TargetGroup


def explain_document(
    plan: Plan,
    compiled: Iterable[Compiled] = (),
    differences: Iterable[Difference] = (),
    with_text: bool = False,
) -> Document:
    """`problem`, `plan`, `targets` and `differences` of one explanation.

    `with_text`: with each target the program that it answered with.
    """
    return schemas.document(
        "explain",
        {
            "problem": _problem(plan),
            "plan": _plan(plan),
            "targets": [target_document(each, plan.problem.mesh, with_text) for each in compiled],
            "differences": [
                {"target": each.target, "code": each.code, "message": each.message} for each in differences
            ],
        },
    )


def ranking_document(candidates: Sequence[Candidate]) -> Document:
    """Every candidate of a search, in order."""
    first = candidates[0].plan.problem if candidates else None
    return schemas.document(
        "ranking",
        {
            "einsum": "; ".join(str(part.einsum) for part in first.parts) if first else "",
            "mesh": mesh_document(first.mesh) if first else None,
            "candidates": [
                {
                    "arrays": _arrays(candidate.plan),
                    "plan": _plan(candidate.plan),
                    "wire_bytes": candidate.plan.wire_bytes,
                    "memory_bytes_per_device": candidate.memory_per_device,
                    "multiply_adds_per_device": candidate.work_per_device,
                    "best": candidate.best,
                }
                for candidate in candidates
            ],
        },
    )


def layout_document(layout: Layout) -> Document:
    """`array` and, for every device, its coordinates, its slices and the number of its shard."""
    return schemas.document(
        "layout",
        {
            "mesh": mesh_document(layout.mesh),
            "array": _array(layout.array, "array", layout.mesh),
            "devices": [
                {
                    "id": device.id,
                    "coords": list(device.coords),
                    "slices": [list(bounds) for bounds in device.slices],
                    "shard": device.shard,
                }
                for device in layout
            ],
        },
    )


def translate_document(
    text: str,
    notation: str,
    readings: Sequence[Reading],
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
) -> Document:
    """What was read, in which notation, and each array's text in others by notation; why not where there is
    none."""
    return schemas.document(
        "translate",
        {
            "text": text,
            "notation": notation,
            "mesh": None if mesh is None else mesh_document(mesh),
            "arrays": [
                {
                    "name": reading.name,
                    "translations": {key: said for key, said in one.items() if isinstance(said, str)},
                    "untranslatable": {
                        key: error.message for key, error in one.items() if isinstance(error, ShardvizError)
                    },
                }
                for reading, one in zip(readings, written, strict=True)
            ],
        },
    )


def info_document(versions: Sequence[tuple[str, str]], warning: str) -> Document:
    """Versions by name, and what is wrong with them, null where nothing is."""
    return schemas.document("info", {"versions": dict(versions), "warning": warning or None})


def targets_document(groups: Sequence[TargetGroup]) -> Document:
    """Groups of targets: whether each can answer here, what installs it (null where nothing does), and names
    that it takes."""
    return schemas.document(
        "targets",
        {
            "groups": [
                {
                    "group": group.name,
                    "title": group.title,
                    "available": not group.missing,
                    "missing": group.missing or None,
                    "install": group.command or None,
                    "versions": dict(group.versions),
                    "targets": [{"target": each.name, "description": each.what} for each in group.choices],
                    "takes": group.takes or None,
                }
                for group in groups
            ],
        },
    )


def _problem(plan: Plan) -> Document:
    problem = plan.problem
    return {
        "einsum": "; ".join(str(part.einsum) for part in problem.parts),
        "mesh": mesh_document(problem.mesh),
        "axis_types": problem.axis_types,
        "arrays": _arrays(plan),
    }


def mesh_document(mesh: Mesh) -> Document:
    order = None if mesh.device_order is None else list(mesh.device_order)
    return {"axis_names": list(mesh.axis_names), "axis_sizes": list(mesh.axis_sizes), "device_order": order}


def _arrays(plan: Plan) -> list[Document]:
    """Arguments, intermediates of a chain, and the result, each once; `asked_spec` is null where the
    compiler may choose, and `spec` then the plan's choice."""
    mesh = plan.problem.mesh
    parts = decided_parts(plan)
    asked: dict[str, PartitionSpec] = {}
    for part in plan.problem.parts:
        asked |= {array.name: array.spec for array in (*part.operands, part.result) if array.spec is not None}
    found = []
    for number, (operands, result) in enumerate(parts):
        found += [_array(operand, "operand", mesh) for operand in operands[1 if number else 0 :]]
        found.append(_array(result, "result" if number == len(parts) - 1 else "intermediate", mesh))
    for document in found:
        spec = asked.get(document["name"])
        document["asked_spec"] = None if spec is None else [list(axes) for axes in spec.dims]
    return found


def _array(array: ShardedArray, role: str, mesh: Mesh) -> Document:
    return {
        "name": array.name,
        "role": role,
        "dims": list(array.dims),
        "shape": list(array.shape),
        "dtype": array.dtype,
        **spec_document("spec", "unreduced", array.decided_spec),
        "shard_shape": list(array.shard_shape(mesh)),
        "bytes_per_device": array.bytes_per_device(mesh),
        "replicas": array.replicas(mesh),
    }


def _plan(plan: Plan) -> Document:
    return {
        "cases": list(plan.cases),
        "steps": [_step(step) for step in plan.steps],
        **spec_document("result_spec", "result_unreduced", plan.result_spec),
        "wire_bytes": plan.wire_bytes,
    }


def _step(step: Step) -> Document:
    return {
        "op": step.op,
        "array": step.array,
        "axes": list(step.axes),
        "dim": step.dim,
        **spec_document("from_spec", "from_unreduced", step.from_spec),
        **spec_document("to_spec", "to_unreduced", step.to_spec),
        "shape": list(step.shape),
        "dtype": step.dtype,
        "bytes": step.bytes,
        "wire_bytes": step.wire_bytes,
        "reason": step.reason,
    }
