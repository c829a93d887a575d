"""Specs, and products in the scaling book's notation, as spans of text that name the mesh axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from shardviz.errors import NotationError
from shardviz.notation.book import BookArray, Product, parse_product, write_book
from shardviz.notation.spec_string import write_spec
from shardviz.sharding import PartitionSpec

if TYPE_CHECKING:
    from shardviz.forms.parsing import Einsums


class TextSpan(NamedTuple):
    """A span of text; `axis` is the mesh axis that it names, or "" where it names none."""

    text: str
    axis: str = ""


Spans = tuple[TextSpan, ...]


def spec_spans(spec: PartitionSpec | None) -> Spans:
    """The spec string of an array: ``X``, ``_``."""
    axes = () if spec is None else spec.axes
    return _cut(write_spec(spec), spec, [TextSpan(axis, axis) for axis in axes])


def array_spans(
    name: str, dims: Sequence[str], spec: PartitionSpec, axis_names: Sequence[str] | None = None
) -> Spans:
    """The array as the scaling book writes it: ``A[I_``, ``X``, ``, J]``."""
    words = [TextSpan(name)]
    for dim, axes in zip(dims, spec.dims, strict=True):
        words += [TextSpan(dim), *(TextSpan(axis, axis) for axis in axes)]
    return _cut(write_book(name, dims, spec, axis_names), spec, words)


def _cut(text: str, spec: PartitionSpec | None, words: Sequence[TextSpan]) -> Spans:
    """A text, cut at the axes among words that stand in it in this order; those of a pending sum are last."""
    unreduced = () if spec is None else spec.unreduced
    pending = [TextSpan("{U_"), *(TextSpan(axis, axis) for axis in unreduced)] if unreduced else []
    spans, done, end = [], 0, 0
    for word in (*words, *pending):
        start = text.index(word.text, end)
        end = start + len(word.text)
        if word.axis:
            spans += [TextSpan(text[done:start]), word]
            done = end
    return tuple(span for span in (*spans, TextSpan(text[done:])) if span.text)


def product_text(product: Product) -> str:
    """``A[I, J] * B[J, K] -> C[I, K]``: names and dimensions alone, as the field `einsum` has them."""
    operands = [_whole(array) for array in product.operands]
    result = None if product.result is None else _whole(product.result)
    return "".join(span.text for span in _multiplied(product, operands, result))


def split_product(
    einsums: Einsums, specs: Sequence[PartitionSpec | None], axis_sizes: Mapping[str, int]
) -> Spans | None:
    """``A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]``; None for einsums in letters and specs that it cannot say. It
    has no place for the specs of intermediates, and a result that is the compiler's choice is not written, so
    that the product must have it without that."""
    product = einsums.product
    if product is None:
        return None
    rows = list(zip(einsums.rows, specs, strict=True))
    given = [spec for row, spec in rows if row.role == "operand" and spec is not None]
    is_between = any(spec is not None for row, spec in rows[:-1] if row.role != "operand")
    if is_between or len(given) < len(product.operands):
        return None
    operands = [
        array_spans(array.name, array.dims, spec, tuple(axis_sizes))
        for array, spec in zip(product.operands, given, strict=True)
    ]
    last, wanted = rows[-1]
    result = None
    if wanted is not None:
        name = last.name if product.result is None else product.result.name
        result = array_spans(name, last.dims, wanted, tuple(axis_sizes))
    spans = _multiplied(product, operands, result)
    try:
        read = parse_product("".join(span.text for span in spans), axis_sizes)
    except NotationError:
        # Without its result the product has two readings.
        return None
    return spans if read.chain == einsums.parts else None


def _whole(array: BookArray) -> Spans:
    return array_spans(array.name, array.dims, PartitionSpec.replicated(len(array.dims)))


def _multiplied(product: Product, operands: Sequence[Spans], result: Spans | None) -> Spans:
    spans = operands[0]
    for dims, operand in zip(product.contracted or ((),) * (len(operands) - 1), operands[1:], strict=True):
        dims = dims or ()  # None where the product does not say them
        short = all(len(dim) == 1 for dim in dims)
        subscript = f"_{''.join(dims)}" if short else f"_{{{','.join(dims)}}}"
        spans += (TextSpan(f" *{subscript if dims else ''} "), *operand)
    return spans if result is None else (*spans, TextSpan(" -> "), *result)
