"""Products in the scaling book's notation: ``A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]``.

A product is ``*``, ``·``, ``@`` or ``\\cdot``, each with or without the dimensions it sums over (``*_D``).
The result stands after ``->`` or before ``=``; without one the compiler chooses its sharding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardviz.errors import quote
from shardviz.notation.book import HINT, BookArray, book_array, subscript_axes
from shardviz.notation.einsum import Einsum
from shardviz.notation.scanner import Scanner, Word

MAX_FACTORS = 64

_TIMES = ("\\cdot", "\\times", "\\*", "*", "·", "×", "⋅", "@")
_ARROWS = ("->", "→", "\\rightarrow", "\\to")


@dataclass(frozen=True)
class Product:
    """Arrays that are multiplied from left to right, and the result; None where the compiler may choose.

    `contracted` are the dimensions that each product says it sums over, None where it does not say.
    """

    operands: tuple[BookArray, ...]
    result: BookArray | None = None
    contracted: tuple[tuple[str, ...] | None, ...] = ()

    @property
    def chain(self) -> tuple[Einsum, ...]:
        """The contractions, in order.

        Where a product does not say what it sums over, it sums over the dimensions of both factors that
        neither the result nor a later factor has.
        """
        dims = self.operands[0].dims
        wanted = None if self.result is None else self.result.dims
        if len(self.operands) == 1:
            return (Einsum((dims,), dims if wanted is None else wanted),)
        parts = []
        for i in range(1, len(self.operands)):
            left, right = dims, self.operands[i].dims
            dims = self._remaining(left, i)
            if wanted is not None and i == len(self.operands) - 1:
                dims = wanted
            parts.append(Einsum((left, right), dims))
        return tuple(parts)

    def _remaining(self, left: tuple[str, ...], i: int) -> tuple[str, ...]:
        """The dimensions after factor `i` was multiplied to an array of dimensions `left`."""
        right = self.operands[i].dims
        summed = self.contracted[i - 1]
        if summed is None:
            needed = {dim for other in self.operands[i + 1 :] for dim in other.dims}
            needed.update(self.result.dims if self.result else ())
            summed = tuple(dim for dim in left if dim in right and dim not in needed)
        return tuple(dim for dim in dict.fromkeys((*left, *right)) if dim not in summed)


def parse_product(text: str, axis_names: Sequence[str] | None = None) -> Product:
    """Read one array or a product of arrays. `axis_names` are the mesh's axes, when it is known.

    With `axis_names` a bare subscript is cut into known names, which must be possible in one way; without,
    each of its letters is an axis. Raises `NotationError` for text of another form, an unknown axis, an axis
    used twice in one array, and a result with a dimension that its factors do not leave.
    """
    scanner = Scanner(text)
    if scanner.at_end:
        scanner.fail("there is no array", 0, hint=HINT)
    result, result_at = None, scanner.pos
    first = book_array(scanner, axis_names)
    if scanner.take("="):
        result, first = first, book_array(scanner, axis_names)
    operands, contracted = [first], []
    while scanner.take(*_TIMES):
        words = _contracted(scanner)
        operands.append(book_array(scanner, axis_names))
        contracted.append(None if words is None else tuple(word.text for word in words))
        _check_contracted(scanner, words or [], operands)
        if len(operands) > MAX_FACTORS:
            scanner.fail(f"more than {MAX_FACTORS} factors", scanner.pos, hint="use a shorter product")
    if result is None and scanner.take(*_ARROWS):
        scanner.skip()
        result_at = scanner.pos
        result = book_array(scanner, axis_names)
    scanner.expect_end(HINT)
    product = Product(tuple(operands), result, tuple(contracted))
    if result is not None:
        _check_result(scanner, product, result, result_at)
    return product


def _contracted(scanner: Scanner) -> list[Word] | None:
    """The dimensions that ``*_D`` says are summed over; ``_LOCAL`` says nothing about them."""
    if scanner.take("_\\text{LOCAL}", "_LOCAL"):
        return None
    return subscript_axes(scanner, None) or None


def _check_contracted(scanner: Scanner, words: list[Word], operands: list[BookArray]) -> None:
    for word in words:
        left = any(word.text in operand.dims for operand in operands[:-1])
        if not (left and word.text in operands[-1].dims):
            scanner.fail(
                f"the product sums over {quote(word.text)}, which its factors do not share,",
                word.start,
                word.stop,
                "the subscript of a product names a dimension of both factors",
            )


def _check_result(scanner: Scanner, product: Product, result: BookArray, start: int) -> None:
    last = product.chain[-1]
    left = {dim for operand in last.operands for dim in operand}
    left -= set(product.contracted[-1] or ()) if product.contracted else set()
    for dim in result.dims:
        if dim not in left or result.dims.count(dim) > 1:
            problem = (
                "occurs twice in the result"
                if dim in left
                else "of the result is in no factor or summed over"
            )
            hint = "each dimension of the result is one that the factors leave, once"
            scanner.fail(f"dimension {quote(dim, 30)} {problem},", scanner.text.find(dim, start), None, hint)
