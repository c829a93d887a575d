"""A draft's product in the scaling book's notation, with subscripts and without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardviz.drafts.pieces import Piece, array_pieces

if TYPE_CHECKING:
    from shardviz.drafts.rows import Einsums
    from shardviz.notation import BookArray, Product
    from shardviz.sharding import PartitionSpec

    Pieces = tuple[Piece, ...]


def product_text(product: Product) -> str:
    """``A[I, J] * B[J, K] -> C[I, K]``: names and dimensions alone, as the field `einsum` has them."""
    operands = [_whole(array) for array in product.operands]
    result = None if product.result is None else _whole(product.result)
    return "".join(piece.text for piece in _multiplied(product, operands, result))


def split_product(
    einsums: Einsums, specs: Sequence[PartitionSpec | None], axis_names: Sequence[str]
) -> Pieces | None:
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
        array_pieces(array.name, array.dims, spec, axis_names)
        for array, spec in zip(product.operands, given, strict=True)
    ]
    last, wanted = rows[-1]
    result = None
    if wanted is not None:
        name = last.name if product.result is None else product.result.name
        result = array_pieces(name, last.dims, wanted, axis_names)
    pieces = _multiplied(product, operands, result)
    read = parse_product("".join(piece.text for piece in pieces), axis_names)
    return pieces if read.chain == einsums.parts else None


def _whole(array: BookArray) -> Pieces:
    from shardviz.sharding import PartitionSpec

    return array_pieces(array.name, array.dims, PartitionSpec.replicated(len(array.dims)))


def _multiplied(product: Product, operands: Sequence[Pieces], result: Pieces | None) -> Pieces:
    pieces = operands[0]
    summed = product.contracted or (None,) * (len(operands) - 1)
    for dims, operand in zip(summed, operands[1:], strict=True):
        pieces += (Piece(f" *{_subscript(dims)} "), *operand)
    return pieces if result is None else (*pieces, Piece(" -> "), *result)


def _subscript(dims: tuple[str, ...] | None) -> str:
    if not dims:
        return ""
    return f"_{''.join(dims)}" if all(len(dim) == 1 for dim in dims) else f"_{{{','.join(dims)}}}"
