"""The problem on one line: its parts in order, each with the mesh axes that its letters name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardviz.drafts.book_text import split_product
from shardviz.drafts.draft import Draft
from shardviz.drafts.parsing import einsums_of, mesh_of, specs_of
from shardviz.drafts.pieces import Piece, spec_pieces

if TYPE_CHECKING:
    from shardviz.drafts.scene import Scene

Kind = Literal[
    "einsum",
    "specs",
    "mesh",
    "device order",
    "dtype",
    "sizes",
    "axis types",
    "targets",
    "collective",
    "axis",
    "data",
    "shape",
    "spec",
    "algorithm",
    "parameter",
]


@dataclass(frozen=True)
class Part:
    """What one field says, in pieces."""

    kind: Kind
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def summary(scene: Scene) -> tuple[Part, ...]:
    """``bd,df->bf``, ``XY,Y_->X_``, ``X=2 Y=4``, ``bf16`` and the targets, of the draft that is shown.

    A product that was written in brackets has its subscripts, and no specs beside it. Device order, sizes and
    axis types are there where they are not the usual ones.
    """
    draft = scene.shown
    usual = Draft()
    parts = [*_problem(draft), Part("mesh", _mesh(scene))]
    if draft.device_order.strip():
        parts.append(Part("device order", (Piece(f"order {draft.device_order.strip()}"),)))
    if draft.sizes.strip():
        parts.append(Part("sizes", (Piece(draft.sizes.replace(",", " ")),)))
    parts.append(Part("dtype", (Piece(draft.dtype),)))
    if draft.axis_types != usual.axis_types:
        parts.append(Part("axis types", (Piece(draft.axis_types),)))
    parts.append(Part("targets", (Piece(draft.targets),)))
    return tuple(parts)


def collective_summary(scene: Scene) -> tuple[Part, ...]:
    """``all_gather``, ``i=4``, ``3,9,5,2``, ``ring`` of a collective of its own, none of the problem.

    What was left to its default is not there, but for the algorithm. Empty where there is no such collective.
    """
    draft, question = scene.shown, scene.collective
    if draft.collective is None or question is None:
        return ()
    own = draft.collective
    parts = [Part("collective", (Piece(own.op),)), Part("mesh", _mesh(scene))]
    fields: tuple[tuple[Kind, str, str], ...] = (
        ("device order", "order ", draft.device_order),
        ("axis", "along ", own.axis),
        ("data", "", own.data),
        ("shape", "shape ", own.shape),
        ("spec", "split ", own.spec),
        ("dtype", "", own.dtype),
        ("algorithm", "", question.schedule.algorithm),
        *(("parameter", f"{name} ", value) for name, value in own.parameters),
    )
    parts += [Part(kind, (Piece(f"{lead}{text.strip()}"),)) for kind, lead, text in fields if text.strip()]
    return tuple(parts)


def _problem(draft: Draft) -> list[Part]:
    """The einsum, and the specs where it has no subscripts."""
    mesh = mesh_of(draft)
    einsums = einsums_of(draft, mesh)
    assert mesh is not None
    assert einsums is not None
    specs = [spec for spec in specs_of(draft, mesh, einsums) if not isinstance(spec, str)]
    product = split_product(einsums, specs, mesh.axis_names)
    if product is not None:
        return [Part("einsum", product)]
    pieces: list[Piece] = []
    for number, (operands, result) in enumerate(einsums.places):
        pieces += [Piece("; ")] * bool(number)
        for place in operands:
            pieces += [Piece(",")] * bool(place - operands[0])
            pieces += spec_pieces(specs[place])
        if specs[result] is not None:
            pieces += [Piece("->"), *spec_pieces(specs[result])]
    return [Part("einsum", (Piece(draft.einsum),)), Part("specs", tuple(pieces))]


def _mesh(scene: Scene) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for name, size in scene.problem.mesh.shape.items():
        pieces += [Piece(" ")] * bool(pieces)
        pieces.append(Piece(f"{name}={size}", name))
    return tuple(pieces)
