"""The arrays of a draft, one a row: operands and result of every part of the chain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.drafts.draft import Row
from shardviz.drafts.reader_errors import reader_errors

if TYPE_CHECKING:
    from shardviz.notation import Einsum, Product
    from shardviz.planner.problem import Names
    from shardviz.sharding import PartitionSpec


@dataclass(frozen=True)
class Einsums:
    """A draft's `einsum`, read: the parts of the chain, the names of their arrays, and the rows.

    `product` is what was written where that was a product in brackets, else None.
    """

    parts: tuple[Einsum, ...]
    names: tuple[Names, ...]
    rows: tuple[Row, ...]
    product: Product | None = None

    @property
    def places(self) -> list[tuple[tuple[int, ...], int]]:
        """For every part the places in `rows` of its operands and of its result."""
        found = []
        place = 0
        for part in self.parts:
            count = len(part.operands)
            found.append((tuple(range(place, place + count)), place + count))
            place += count + 1
        return found

    @property
    def dims(self) -> tuple[str, ...]:
        """Every dimension once, in order of first appearance."""
        return tuple(dict.fromkeys(dim for part in self.parts for dim in part.dims))

    @property
    def written_specs(self) -> tuple[PartitionSpec | None, ...] | None:
        """The specs that a product's subscripts say, one a row; None where nothing has a subscript."""
        from shardviz.planner.problem import parts_of_product

        product = self.product
        arrays = [] if product is None else [*product.operands, *filter(None, [product.result])]
        if product is None or not any(array.spec.axes or array.spec.unreduced for array in arrays):
            return None
        _, _, parts = parts_of_product(product)
        return tuple(spec for part in parts for spec in (*part.operands, part.result))


@reader_errors()
def read_einsums(text: str, ellipsis_rank: int = 0, axis_names: Sequence[str] | None = None) -> Einsums:
    """Read an einsum, a chain, or a product in brackets; `axis_names` are the mesh's axes, when it is known.

    Raises `NotationError`.
    """
    from shardviz.notation import parse_chain, parse_product
    from shardviz.planner.problem import parts_of_product, usual_names

    product = None
    if "[" in text:
        product = parse_product(text, axis_names)
        parts, names, _ = parts_of_product(product)
    else:
        parts = parse_chain(text, ellipsis_rank)
        names = usual_names(parts)
    return Einsums(parts, tuple(names), tuple(_rows(parts, names)), product)


def _rows(parts: Sequence[Einsum], names: Sequence[Names]) -> list[Row]:
    rows = []
    for part, (einsum, (operands, result)) in enumerate(zip(parts, names, strict=True)):
        for place, (name, dims) in enumerate(zip(operands, einsum.operands, strict=True)):
            rows.append(Row(part, place, name, dims, "intermediate" if part and not place else "operand"))
        rows.append(Row(part, len(operands), result, einsum.result, "result"))
    return rows
