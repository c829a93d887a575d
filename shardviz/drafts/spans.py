"""A spec as text in spans, those that name mesh axes apart, so that a view can colour them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardviz.drafts.form import ProblemForm
from shardviz.drafts.parsing import parsed

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.sharding import PartitionSpec


_UNREDUCED = "{U_"


@dataclass(frozen=True)
class TextSpan:
    """A span of text; `axis` is the mesh axis that it names, or "" where it names none."""

    text: str
    axis: str = ""


def spec_spans(spec: PartitionSpec | None) -> tuple[TextSpan, ...]:
    """The spec string of an array: ``X``, ``_``."""
    from shardviz.notation import write_spec

    text = write_spec(spec)
    cutter = _Cutter(text)
    for axis in () if spec is None else spec.axes:
        cutter.name(axis)
    return cutter.finish(() if spec is None else spec.unreduced)


def array_spans(
    name: str, dims: Sequence[str], spec: PartitionSpec, axis_names: Sequence[str] | None = None
) -> tuple[TextSpan, ...]:
    """The array as the scaling book writes it: ``A[I_``, ``X``, ``, J]``."""
    from shardviz.notation import write_book

    cutter = _Cutter(write_book(name, dims, spec, axis_names))
    cutter.skip(name)
    for dim, axes in zip(dims, spec.dims, strict=True):
        cutter.skip(dim)
        for axis in axes:
            cutter.name(axis)
    return cutter.finish(spec.unreduced)


class _Cutter:
    """Cuts a text at names that stand in it in this order, with signs alone between them."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._pieces: list[TextSpan] = []
        self._done = 0
        self._place = 0

    def skip(self, word: str) -> None:
        self._place = self._text.index(word, self._place) + len(word)

    def name(self, axis: str) -> None:
        start = self._text.index(axis, self._place)
        self._pieces += [TextSpan(self._text[self._done : start]), TextSpan(axis, axis)]
        self._done = self._place = start + len(axis)

    def finish(self, unreduced: Sequence[str]) -> tuple[TextSpan, ...]:
        """All spans, with the axes of the partial sums at the end."""
        if unreduced:
            self.skip(_UNREDUCED)
        for axis in unreduced:
            self.name(axis)
        return tuple(span for span in (*self._pieces, TextSpan(self._text[self._done :])) if span.text)


if TYPE_CHECKING:
    from shardviz.drafts.parsing import Einsums
    from shardviz.notation import BookArray, Product
    from shardviz.sharding import PartitionSpec

    Spans = tuple[TextSpan, ...]


def product_text(product: Product) -> str:
    """``A[I, J] * B[J, K] -> C[I, K]``: names and dimensions alone, as the field `einsum` has them."""
    operands = [_whole(array) for array in product.operands]
    result = None if product.result is None else _whole(product.result)
    return "".join(span.text for span in _multiplied(product, operands, result))


def split_product(
    einsums: Einsums, specs: Sequence[PartitionSpec | None], axis_names: Sequence[str]
) -> Spans | None:
    """``A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]``; None for einsums in letters and specs that it cannot say.

    It has no place for the specs of intermediates, and a result that is the compiler's choice is not written,
    so that the product must have it without that.
    """
    from shardviz.notation import parse_product

    product = einsums.product
    if product is None:
        return None
    rows = list(zip(einsums.rows, specs, strict=True))
    given = [spec for row, spec in rows if row.role == "operand" and spec is not None]
    if len(given) < len(product.operands):
        return None
    if any(spec is not None for row, spec in rows[:-1] if row.role != "operand"):
        return None
    operands = [
        array_spans(array.name, array.dims, spec, axis_names)
        for array, spec in zip(product.operands, given, strict=True)
    ]
    last, wanted = rows[-1]
    result = None
    if wanted is not None:
        name = last.name if product.result is None else product.result.name
        result = array_spans(name, last.dims, wanted, axis_names)
    spans = _multiplied(product, operands, result)
    read = parse_product("".join(span.text for span in spans), axis_names)
    return spans if read.chain == einsums.parts else None


def _whole(array: BookArray) -> Spans:
    from shardviz.sharding import PartitionSpec

    return array_spans(array.name, array.dims, PartitionSpec.replicated(len(array.dims)))


def _multiplied(product: Product, operands: Sequence[Spans], result: Spans | None) -> Spans:
    spans = operands[0]
    summed = product.contracted or (None,) * (len(operands) - 1)
    for dims, operand in zip(summed, operands[1:], strict=True):
        spans += (TextSpan(f" *{_subscript(dims)} "), *operand)
    return spans if result is None else (*spans, TextSpan(" -> "), *result)


def _subscript(dims: tuple[str, ...] | None) -> str:
    if not dims:
        return ""
    return f"_{''.join(dims)}" if all(len(dim) == 1 for dim in dims) else f"_{{{','.join(dims)}}}"


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
class SummaryPart:
    """What one field says, in spans."""

    kind: Kind
    spans: tuple[TextSpan, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def summary(scene: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """``bd,df->bf``, ``XY,Y_->X_``, ``X=2 Y=4``, ``bf16`` and the targets, of the draft that is shown.

    A product that was written in brackets has its subscripts, and no specs beside it. Device order, sizes and
    axis types are there where they are not the usual ones.
    """
    draft = scene.shown
    usual = ProblemForm()
    parts = [*_problem(draft), SummaryPart("mesh", _mesh_spans(scene))]
    if draft.device_order.strip():
        parts.append(SummaryPart("device order", (TextSpan(f"order {draft.device_order.strip()}"),)))
    if draft.sizes.strip():
        parts.append(SummaryPart("sizes", (TextSpan(draft.sizes.replace(",", " ")),)))
    parts.append(SummaryPart("dtype", (TextSpan(draft.dtype),)))
    if draft.axis_types != usual.axis_types:
        parts.append(SummaryPart("axis types", (TextSpan(draft.axis_types),)))
    parts.append(SummaryPart("targets", (TextSpan(draft.targets),)))
    return tuple(parts)


def collective_summary(scene: ResolvedProblem) -> tuple[SummaryPart, ...]:
    """``all_gather``, ``i=4``, ``3,9,5,2``, ``ring`` of a collective of its own, none of the problem.

    What was left to its default is not there, but for the algorithm. Empty where there is no such collective.
    """
    draft, question = scene.shown, scene.collective
    if draft.collective is None or question is None:
        return ()
    own = draft.collective
    parts = [SummaryPart("collective", (TextSpan(own.op),)), SummaryPart("mesh", _mesh_spans(scene))]
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
    parts += [
        SummaryPart(kind, (TextSpan(f"{lead}{text.strip()}"),)) for kind, lead, text in fields if text.strip()
    ]
    return tuple(parts)


def _problem(draft: ProblemForm) -> list[SummaryPart]:
    """The einsum, and the specs where it has no subscripts."""
    mesh = parsed(draft).mesh
    einsums = parsed(draft).einsums
    assert mesh is not None
    assert einsums is not None
    specs = [spec for spec in parsed(draft).specs if not isinstance(spec, str)]
    product = split_product(einsums, specs, mesh.axis_names)
    if product is not None:
        return [SummaryPart("einsum", product)]
    spans: list[TextSpan] = []
    for number, (operands, result) in enumerate(einsums.places):
        spans += [TextSpan("; ")] * bool(number)
        for place in operands:
            spans += [TextSpan(",")] * bool(place - operands[0])
            spans += spec_spans(specs[place])
        if specs[result] is not None:
            spans += [TextSpan("->"), *spec_spans(specs[result])]
    return [SummaryPart("einsum", (TextSpan(draft.einsum),)), SummaryPart("specs", tuple(spans))]


def _mesh_spans(scene: ResolvedProblem) -> tuple[TextSpan, ...]:
    spans: list[TextSpan] = []
    for name, size in scene.problem.mesh.shape.items():
        spans += [TextSpan(" ")] * bool(spans)
        spans.append(TextSpan(f"{name}={size}", name))
    return tuple(spans)
