r"""The scaling book's arrays and products: ``A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]{U_Y}``.

The notation is that of "How to Scale Your Model", chapter 3. Read as well: LaTeX (``I_{XY}``, ``\mathbf{A}``)
and HTML (``I<sub>X</sub>``), long axis names as ``B_{data,model}``, and parts of axes as ``B_{X:(1)2}``. A
subscript begins at the last underscore of a name: ``d_model_{}`` is not split. A product is ``*``, ``·``,
``@`` or ``\cdot``, each with or without the dimensions it sums over (``*_D``); the result stands after ``->``
or before ``=``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set as AbstractSet
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from shardviz.errors import QuestionError, quote
from shardviz.notation.einsum import Dims, Einsum
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.sharding import PartitionSpec, canonical_dtype
from shardviz.sharding.axis_parts import axis_part

_HINT = "write arrays as A[B_X, D_Y] and products as A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]"
_UNREDUCED_HINT = "write partial sums over Y as {U_Y}"
_ARRAY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_']*")
_DIM_NAME = re.compile(r"[A-Za-z](?:[A-Za-z0-9]|_(?=[A-Za-z0-9]))*")
_SUBSCRIPT = re.compile(r"\w+")
_SPACING = re.compile(r"(?:\\\ \s*)+")
"""``\\ `` between LaTeX braces."""


class BookArray(NamedTuple):
    """An array as the book writes it: its name ("" when there is none), its dimensions and its sharding."""

    name: str
    dims: tuple[str, ...]
    spec: PartitionSpec

    def __str__(self) -> str:
        return write_book(self.name, self.dims, self.spec)


def read_book(text: str, context: Context) -> Reading:
    """Read one array; a dtype in place of its name, as in ``float32[S_X, D_Y]``, is its dtype."""
    scanner = Scanner(text, _HINT, context.axis_sizes)
    array = book_array(scanner)
    scanner.expect_end()
    context.check_rank(scanner, len(array.dims))
    # Names without a digit are names.
    if any(char.isdigit() for char in array.name):
        with suppress(QuestionError):
            return Reading(array.spec, dims=array.dims, dtype=canonical_dtype(array.name))
    return Reading(array.spec, dims=array.dims, name=array.name or None)


def write_book_reading(reading: Reading, context: Context) -> str:
    return write_book(reading.name or "A", reading.dim_names, reading.spec, [*(context.axis_sizes or ())])


def write_book(
    name: str, dims: Sequence[str], spec: PartitionSpec, axis_names: Sequence[str] | None = None
) -> str:
    """``Out[B_X, F]{U_Y}``; subscripts stand in braces where the bare letters could be misread."""
    entries = [
        f"{dim}_{_subscript(axes, axis_names)}" if axes else f"{dim}_{{}}" if "_" in dim else dim
        for dim, axes in zip(dims, spec.dims, strict=True)
    ]
    unreduced = f"{{U_{_subscript(spec.unreduced, axis_names)}}}" if spec.unreduced else ""
    return f"{name}[{', '.join(entries)}]{unreduced}"


def _subscript(axes: tuple[str, ...], axis_names: Sequence[str] | None) -> str:
    bare = "".join(axes)
    if all(len(axis) == 1 for axis in axes) and (not axis_names or len(_cuts(bare, axis_names)) == 1):
        return bare
    return f"{{{','.join(axes)}}}"


def book_array(scanner: Scanner) -> BookArray:
    """The array that stands next; part of `parse_product`."""
    name = _array_name(scanner)
    scanner.expect("[")
    dims: list[str] = []
    axes: list[list[Word]] = []
    for _ in scanner.items("]", last_comma=False):
        scanner.skip()
        dim, split = _dim(scanner)
        dims.append(dim)
        axes.append(split)
    unreduced: list[Word] = []
    if scanner.take("\\{", "{"):
        scanner.next(_SPACING)
        while not scanner.take("\\}", "}"):
            if unreduced and not scanner.take(","):
                scanner.fail_here("',' or '}'", _UNREDUCED_HINT)
            scanner.expect("U", hint=_UNREDUCED_HINT)
            unreduced += _subscript_axes(scanner) or scanner.fail_here("'_'", _UNREDUCED_HINT)
            scanner.next(_SPACING)
        if not unreduced:
            scanner.fail("no axis between '{' and '}'", scanner.pos - 1, hint=_UNREDUCED_HINT)
    return BookArray(name, tuple(dims), scanner.spec(axes, unreduced))


def _array_name(scanner: Scanner) -> str:
    r"""``A``, ``W_in``, ``W<sub>in</sub>``, ``\mathbf{A}``, ``**A**``, or nothing."""
    for opening, closing in (("\\mathbf{", "}"), ("\\textbf{", "}"), ("**", "**")):
        if scanner.take(opening):
            name = scanner.match(_ARRAY_NAME) or scanner.fail_here("the name of an array")
            scanner.expect(closing)
            return name.text
    word = scanner.next(_ARRAY_NAME)
    if word is None:
        return ""
    if scanner.take("<sub>"):
        below = scanner.match(_SUBSCRIPT) or scanner.fail_here("a subscript")
        scanner.expect("</sub>")
        return f"{word.text}_{below.text}"
    return word.text


def _dim(scanner: Scanner) -> tuple[str, list[Word]]:
    word = scanner.match(_DIM_NAME) or scanner.fail_here("a dimension")
    if scanner.text.startswith(("_", "<sub>"), scanner.pos):
        return word.text, _subscript_axes(scanner)
    name, underscore, below = word.text.rpartition("_")
    if not underscore:
        return word.text, []
    start = word.stop - len(below)
    axes = _cut(scanner, Word(below, start, word.stop))
    return name, [*axes[:-1], scanner.part_of(axes[-1])]


def _subscript_axes(scanner: Scanner) -> list[Word]:
    """``_X``, ``_XY``, ``_{XY}``, ``_{data,model}``, ``_{X:(1)2}``, ``<sub>X</sub>`` or nothing. One word in
    braces is an axis where the mesh has it, else cut like a bare subscript; where no mesh is known capitals
    are cut, as LaTeX writes them, and other words are names."""
    if scanner.take("<sub>"):
        closing = "</sub>"
    elif scanner.take("_{"):
        closing = "}"
    elif scanner.take("_"):
        below = scanner.match(_SUBSCRIPT) or scanner.fail_here("a mesh axis")
        axes = _cut(scanner, below)
        return [*axes[:-1], scanner.part_of(axes[-1])]
    else:
        return []
    words = [scanner.axis() for _ in scanner.items(closing, last_comma=False)]
    if len(words) != 1 or axis_part(words[0].text) is not None:
        return words
    text, sizes = words[0].text, scanner.axis_sizes
    named = not (text.isupper() and text.isalpha()) if sizes is None else text in sizes
    return words if named else _cut(scanner, words[0])


def _cut(scanner: Scanner, below: Word) -> list[Word]:
    """The axes of a bare subscript; each letter is one where no axis has a longer name."""
    advice = "; a dimension with an underscore is written d_model_{}" if len(below.text) > 2 else ""
    if scanner.axis_sizes is None or all(len(name) == 1 for name in scanner.axis_sizes):
        letters = [Word(char, start, start + 1) for start, char in enumerate(below.text, below.start)]
        for letter in letters:
            scanner.check_known(letter, advice=advice)
            if not (letter.text.isascii() and letter.text.isalpha()):
                hint = "a subscript takes axes of one letter; write longer names as B_{data,model}"
                scanner.fail(f"{quote(letter.text)} is not an axis name", letter.start, hint=hint)
        return letters
    cuts = _cuts(below.text, tuple(scanner.axis_sizes))
    if len(cuts) > 1:
        options = " or ".join(f"{{{','.join(names)}}}" for names in cuts)
        scanner.fail(f"{quote(below.text, 30)} can be read in two ways", below, hint=f"write {options}")
    if not cuts:
        scanner.check_known(below, advice=advice)
    words, start = [], below.start
    for name in cuts[0]:
        words.append(Word(name, start, start + len(name)))
        start += len(name)
    return words


def _cuts(text: str, axis_names: Sequence[str]) -> list[tuple[str, ...]]:
    """At most two ways to cut `text` into axis names; none where it is longer than all names twice."""
    if len(text) > 2 * sum(map(len, axis_names)):
        return []
    ways: list[list[tuple[str, ...]]] = [[()]]
    for stop in range(1, len(text) + 1):
        cuts = [
            (*way, name)
            for name in axis_names
            if text.endswith(name, 0, stop)
            for way in ways[stop - len(name)]
        ]
        ways.append(cuts[:2])
    return ways[-1]


class ProductFactors(NamedTuple):
    """The factors of a product, by their dimensions, and the ways to read it.

    In ``X[b,d] * W1[d,f] * W2[f,d]`` the letter d stands for two things: from left to right the first product
    sums over it, and W2 has another d; one einsum has one d, and keeps it while a factor or the result needs
    it. Their values differ, and both are common. `sums` are for each multiplication the dimensions that it
    says it sums over (``*_D``), if it does. `result` are those of the result; where they are not written,
    those in `needed` are kept. Where `is_elementwise`, a product of arrays of the same dimensions keeps
    these."""

    dims: tuple[Dims, ...]
    sums: tuple[Dims | None, ...]
    result: Dims | None = None
    needed: AbstractSet[str] = frozenset()
    is_elementwise: bool = False

    def readings(self) -> tuple[tuple[Dims, ...], ...]:
        """The dimensions that each multiplication sums over: as one einsum, and, if it differs, from left to
        right."""
        einsum, matmuls = self._summed(is_einsum=True), self._summed(is_einsum=False)
        if self._is_possible(matmuls) and self._letters(matmuls) != self._letters(einsum):
            return einsum, matmuls
        return (einsum,)

    def left(self, summed: Sequence[Dims]) -> list[Dims]:
        """The dimensions of the first factor, and those that each multiplication leaves."""
        remaining = [self.dims[0]]
        for dims, gone in zip(self.dims[1:], summed, strict=True):
            remaining.append(tuple(dim for dim in dict.fromkeys((*remaining[-1], *dims)) if dim not in gone))
        return remaining

    def _summed(self, is_einsum: bool) -> tuple[Dims, ...]:
        summed: list[Dims] = []
        left, last = self.dims[0], len(self.dims) - 1
        for index, right in enumerate(self.dims[1:], 1):
            every = dict.fromkeys((*left, *right))
            kept = {dim for dims in self.dims[index + 1 :] for dim in dims} if is_einsum else set()
            if is_einsum or index == last:
                kept.update(self.needed if self.result is None else self.result)
            said = self.sums[index - 1]
            if index == last and self.result is not None:
                summed.append(tuple(dim for dim in every if dim not in kept or dim in (said or ())))
            elif said is not None:
                summed.append(said)
            elif self.is_elementwise and {*left} == {*right} and (index == last or not is_einsum):
                summed.append(())
            else:
                summed.append(tuple(dim for dim in left if dim in right and dim not in kept))
            left = tuple(dim for dim in every if dim not in summed[-1])
        return tuple(summed)

    def _letters(self, summed: Sequence[Dims]) -> tuple[AbstractSet[tuple[str, int]], ...]:
        """The dimensions of the factors and of the result, each with the number of sums over its letter
        before it: equal where two readings have equal values."""
        named = (*self.dims, *summed, self.result or ())
        sums = dict.fromkeys((dim for dims in named for dim in dims), 0)
        letters = [{(dim, 0) for dim in self.dims[0]}]
        for dims, gone in zip(self.dims[1:], summed, strict=True):
            letters.append({(dim, sums[dim]) for dim in dims})
            sums |= {dim: sums[dim] + 1 for dim in gone}
        result = self.left(summed)[-1] if self.result is None else self.result
        return (*letters, {(dim, sums[dim]) for dim in result})

    def _is_possible(self, summed: Sequence[Dims]) -> bool:
        """Return whether the factors of each multiplication share a dimension, the result has its dimensions,
        and no letter that was summed over is summed over again in one factor alone."""
        left, gone = self.left(summed), {dim for dims in summed[:-1] for dim in dims}
        if any(not {*before} & {*right} for before, right in zip(left, self.dims[1:], strict=False)):
            return False
        if self.result is None or len(left) == 1:
            return True
        alone = {*left[-2]} ^ {*self.dims[-1]}
        return {*self.result} <= {*left[-1]} and not gone & (alone - {*self.result})


def two_readings(
    readings: Sequence[Sequence[Dims]], sums: Sequence[Dims | None], factors: Sequence[str], result: str
) -> tuple[str, str]:
    """The problem of a product that has two `readings`, and the hint: how both are written."""
    at_once, in_order = (
        ", then ".join([", ".join(dims) for dims in reading if dims]) for reading in readings
    )
    problem = (
        f"this product has two readings: from left to right it sums over {in_order or 'nothing'}; "
        f"as one einsum it sums over {at_once or 'nothing'},"
    )
    if any(sum_ is not None for sum_ in sums):
        return problem, "write the contracted dimension after each *, as in A *_D W, or bracket the products"
    matmuls = factors[0]
    for factor in factors[1:-1]:
        matmuls = f"({matmuls} * {factor})"
    return problem, f"write {matmuls} * {factors[-1]} or {', '.join(factors)} -> {result}"


MAX_FACTORS = 64

TIMES = ("\\cdot", "\\times", "\\*", "*", "·", "×", "⋅", "@")
ARROWS = ("->", "→", "\\rightarrow", "\\to")


class Product(NamedTuple):
    """Arrays that are multiplied from left to right, and the result; None where the compiler may choose.
    `contracted` are the dimensions that each product says it sums over, if it does."""

    operands: tuple[BookArray, ...]
    result: BookArray | None = None
    contracted: tuple[tuple[str, ...] | None, ...] = ()

    @property
    def factors(self) -> ProductFactors:
        result = None if self.result is None else self.result.dims
        return ProductFactors(tuple(array.dims for array in self.operands), self.contracted, result)

    @property
    def chain(self) -> tuple[Einsum, ...]:
        """The contractions, in order, of the first of the `readings`."""
        wanted = None if self.result is None else self.result.dims
        left = self.factors.left(self.factors.readings()[0])
        if len(left) == 1:
            return (Einsum((left[0],), left[0] if wanted is None else wanted),)
        if wanted is not None:
            left[-1] = wanted
        factors = (array.dims for array in self.operands[1:])
        return tuple(
            Einsum((before, factor), made)
            for (before, made), factor in zip(pairwise(left), factors, strict=True)
        )


def parse_product(text: str, axis_sizes: Mapping[str, int] | None = None) -> Product:
    """Read one array or a product of arrays. A bare subscript is cut into names of `axis_sizes`; where these
    are not known each letter is an axis. Raises `NotationError` for text of another form, an unknown axis, an
    axis used twice in one array, a result with a dimension that its factors do not leave, and a product that
    has two readings."""
    scanner = Scanner(text, _HINT, axis_sizes)
    if scanner.at_end:
        scanner.fail("there is no array", 0)
    result, result_at = None, scanner.pos
    first = book_array(scanner)
    if scanner.take("="):
        result, first = first, book_array(scanner)
    operands, contracted = [first], []
    while scanner.take(*TIMES):
        words = summed_dims(scanner)
        operands.append(book_array(scanner))
        contracted.append(None if words is None else tuple(word.text for word in words))
        for word in words or []:
            left = any(word.text in operand.dims for operand in operands[:-1])
            if not (left and word.text in operands[-1].dims):
                problem = f"the product sums over {quote(word.text)}, which its factors do not share,"
                hint = "the subscript of a product names a dimension of both factors"
                scanner.fail(problem, word, hint=hint)
        scanner.at_most(MAX_FACTORS, operands, "factors", scanner.pos, "use a shorter product")
    if result is None and scanner.take(*ARROWS):
        result_at = scanner.skip()
        result = book_array(scanner)
    scanner.expect_end()
    product = Product(tuple(operands), result, tuple(contracted))
    if result is not None:
        _check_result(scanner, product, result, result_at)
    readings = product.factors.readings()
    dims = product.factors.left(readings[0])[-1]
    if len(dims) > MAX_RANK:
        scanner.fail(f"more than {MAX_RANK} dimensions are left,", 0, len(text), "use fewer dimensions")
    if len(readings) > 1:
        made = result or BookArray("Out", dims, PartitionSpec.replicated(len(dims)))
        problem, hint = two_readings(readings, product.contracted, [*map(str, operands)], str(made))
        scanner.fail(problem, 0, len(text), hint)
    return product


def summed_dims(scanner: Scanner) -> list[Word] | None:
    """The dimensions that ``*_D`` says are summed over; ``_LOCAL`` says nothing about them."""
    if scanner.take("_\\text{LOCAL}", "_LOCAL"):
        return None
    # Dimensions are cut like axes of a mesh that is not known.
    sizes, scanner.axis_sizes = scanner.axis_sizes, None
    words = _subscript_axes(scanner)
    scanner.axis_sizes = sizes
    return words or None


def _check_result(scanner: Scanner, product: Product, result: BookArray, start: int) -> None:
    left = {dim for operand in product.chain[-1].operands for dim in operand}
    left -= set(product.contracted[-1] or ()) if product.contracted else set()
    for dim in result.dims:
        if dim not in left or result.dims.count(dim) > 1:
            missing = "of the result is in no factor or summed over"
            problem = "occurs twice in the result" if dim in left else missing
            hint = "name dimensions that the product keeps, each once"
            scanner.fail(f"dimension {quote(dim, 30)} {problem},", scanner.text.find(dim, start), None, hint)
