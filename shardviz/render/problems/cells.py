"""A draft as rows of cells: what a cursor can stand on, and what it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from shardviz.drafts.form import PROBLEM_FIELDS, ArrayRow, Field, FieldError, ProblemForm
from shardviz.drafts.parsing import parsed
from shardviz.drafts.retain_fields import sizes_text
from shardviz.errors import plural
from shardviz.notation import write_spec
from shardviz.render.units import human_bytes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

if TYPE_CHECKING:
    from shardviz.drafts.parsing import Spec
    from shardviz.drafts.resolve import ResolvedProblem

Kind = Literal["text", "axis", "array", "dim", "sums", "choice"]
COMPILERS_CHOICE = "compiler's choice"
BESIDE_THE_PROBLEM = ("targets", "collective")
"""Fields that say nothing about the arrays."""


@dataclass(frozen=True)
class Cell:
    """One place for the cursor.

    `field` is named as in `FieldError.field`. A "text" is a whole field, an "axis" the mesh's axis
    `number`; an "array" is the name of an array, a "dim" its dimension `number`, "sums" the axes over which
    it is a pending sum, "choice" what the compiler may decide. It reads `text`, then the mesh axes `axes`,
    then `after`; `is_default` where nobody has typed it.
    """

    kind: Kind
    field: str
    number: int
    text: str
    axes: tuple[str, ...] = ()
    after: str = ""
    is_default: bool = False

    @property
    def row(self) -> int:
        """The number of the array, counted over all operands and results."""
        return int(self.field.removeprefix("specs."))


@dataclass(frozen=True)
class FieldRow:
    """A field with its cells, in the group of fields that belong together.

    `label` says what it is; an array has none, its name is a cell. At the end of the row stands the first of
    `remarks` that fits there, or below it the last.
    """

    field: str
    group: int
    label: str
    cells: tuple[Cell, ...]
    remarks: tuple[str, ...] = ()
    faults: tuple[FieldError, ...] = ()

    @property
    def is_array(self) -> bool:
        return self.field.startswith("specs.")


def field_rows(scene: ResolvedProblem) -> list[FieldRow]:
    """Every field of the draft of a scene, in the order in which they are shown."""
    draft = scene.draft
    fields = PROBLEM_FIELDS | {"sizes": replace(PROBLEM_FIELDS["sizes"], empty=default_sizes(scene))}
    texts = [_text_row(each, getattr(draft, name)) for name, each in fields.items() if name != "mesh"]
    rows = [_mesh_row(draft, parsed(draft).mesh), *texts, *_array_rows(scene)]
    rows.sort(key=lambda row: row.group)
    return [
        replace(row, faults=tuple(fault for fault in scene.faults if fault.field == row.field))
        for row in rows
    ]


def mesh_in(scene: ResolvedProblem) -> Mesh:
    """The mesh of the draft, or the last valid one."""
    return parsed(scene.draft).mesh or scene.problem.mesh


def default_sizes(scene: ResolvedProblem) -> str:
    """The sizes that the problem has, as one would type them."""
    sizes: dict[str, int] = {}
    for part in scene.problem.parts:
        for array in (*part.operands, part.result):
            sizes |= dict(zip(array.dims, array.shape, strict=True))
    return sizes_text(sizes)


def _mesh_row(draft: ProblemForm, mesh: Mesh | None) -> FieldRow:
    if mesh is None:
        return _text_row(PROBLEM_FIELDS["mesh"], draft.mesh)
    axes = enumerate(mesh.shape.items())
    cells = tuple(Cell("axis", "mesh", i, "", (name,), f"={size}") for i, (name, size) in axes)
    # Without a line of its own: then no field moves when the mesh grows.
    return FieldRow("mesh", 0, "mesh", cells, (plural(mesh.size, "device"), f"= {mesh.size:,}", ""))


def _text_row(field: Field, text: str) -> FieldRow:
    cell = Cell("text", field.name, 0, text or field.empty, is_default=not text)
    return FieldRow(field.name, field.group, field.label, (cell,))


def _array_rows(scene: ResolvedProblem) -> list[FieldRow]:
    draft, problem = scene.draft, scene.problem
    specs = parsed(draft).specs
    remarks: list[tuple[str, ...]] = [()] * len(specs)
    if not any(fault.field not in BESIDE_THE_PROBLEM for fault in scene.faults):
        arrays = [array for part in problem.parts for array in (*part.operands, part.result)]
        remarks = [_bytes(array, problem.mesh) for array in arrays]
    return [
        FieldRow(f"specs.{number}", 2, "", _array_cells(number, row, spec), remark)
        for number, (row, spec, remark) in enumerate(zip(scene.rows, specs, remarks, strict=True))
    ]


def _bytes(array: ShardedArray, mesh: Mesh) -> tuple[str, ...]:
    return () if array.spec is None else (human_bytes(array.bytes_per_device(mesh)),)


def _array_cells(number: int, row: ArrayRow, spec: Spec) -> tuple[Cell, ...]:
    field = f"specs.{number}"
    name = Cell("array", field, 0, f"→ {row.name}" if row.role == "result" else row.name)
    if spec is None:
        return name, Cell("choice", field, 0, COMPILERS_CHOICE, is_default=True)
    if isinstance(spec, str) or spec.rank != len(row.dims):
        return name, Cell("text", field, 0, spec if isinstance(spec, str) else write_spec(spec))
    return name, *_spec_cells(field, row.dims, spec)


def _spec_cells(field: str, dims: Sequence[str], spec: PartitionSpec) -> list[Cell]:
    """The dimensions as the scaling book writes them, ``b_XY d f_{data,model}``, then ``{U_Z}``."""
    cells = [
        Cell("dim", field, i, dim + ("_" if axes else ""), axes)
        for i, (dim, axes) in enumerate(zip(dims, spec.dims, strict=True))
    ]
    if spec.unreduced:
        cells.append(Cell("sums", field, 0, "{U_", spec.unreduced, "}"))
    if not dims:
        cells.append(Cell("text", field, 0, "scalar", is_default=True))
    return cells
