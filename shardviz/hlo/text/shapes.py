"""Shapes as HLO prints them, ``bf16[512,512]{1,0:T(8,128)(2,1)S(1)}``, and those of a collective.

HLO prints the shape of a result, and that of an operand only on request. A collective's operands follow from
the result, the size of the groups and the rules of each opcode, so that no other line has to be read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import NotationError
from shardviz.hlo.text.instruction import Instruction, operand_names
from shardviz.sharding import array_bytes
from shardviz.sharding.array import BITS

_TOKEN = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\]|\{[^{}]*\}|/\*|[()]")
_SIZE = re.compile(r"(?:<=)?(\d{1,15})")
MAX_ELEMENTS = 2**62
START = "-start"
_DIMENSION = re.compile(r"\d{1,3}")
_SLICE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class ArrayShape:
    """Element type and sizes of one array; layouts are left out. A bounded size is its bound."""

    dtype: str
    sizes: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return array_bytes(self.sizes, self.dtype)

    def resized(self, dim: int, size: int) -> ArrayShape:
        return ArrayShape(self.dtype, (*self.sizes[:dim], size, *self.sizes[dim + 1 :]))


Shape = ArrayShape | list["Shape"]
"""An array, or a tuple's elements."""


def parse_shape(text: str) -> Shape:
    """One shape; where the text is a list of operands with their shapes, use `parse_shapes`.

    Raises `NotationError` when it holds none, or an array of an unknown type or an impossible size.
    """
    found = parse_shapes(text)
    if len(found) != 1:
        raise NotationError("this is not one shape", text, 0, len(text), "write f32[4,8] or (f32[4], f32[8])")
    return found[0]


def parse_shapes(text: str) -> list[Shape]:
    """Every shape in a text, in order; what stands between them is passed over."""
    outermost: list[Shape] = []
    open_tuples = [outermost]
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece == "(":
            inner: list[Shape] = []
            open_tuples[-1].append(inner)
            open_tuples.append(inner)
        elif piece == ")":
            if len(open_tuples) > 1:
                open_tuples.pop()
        elif token[1]:
            open_tuples[-1].append(_array(text, token))
    return outermost


def arrays(shape: Shape) -> Iterator[ArrayShape]:
    """The arrays of a shape, depth first, tokens left out."""
    waiting = [shape]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(reversed(item))
        elif item.dtype != "token":
            yield item


def _array(text: str, token: re.Match[str]) -> ArrayShape:
    dtype, body = token[1], token[2].strip()
    sizes = []
    for part in body.split(",") if body else []:
        size = _SIZE.fullmatch(part.strip())
        if size is None:
            raise NotationError(f"{part.strip()[:30]!r} is not a size", text, token.start(2), token.end(2))
        sizes.append(int(size[1]))
    if dtype not in BITS:
        raise NotationError(f"unknown element type {dtype}", text, token.start(1), token.end(1))
    if len(sizes) > 64 or math.prod(sizes) > MAX_ELEMENTS:
        raise NotationError("no array is that large", text, token.start(), token.end())
    return ArrayShape(dtype, tuple(sizes))


@dataclass(frozen=True)
class CollectiveShapes:
    """Per-device arrays of a collective; `dim` is gathered, scattered or made whole, `split_dim` split."""

    operands: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    dim: int | None = None
    split_dim: int | None = None

    @classmethod
    def resized(cls, operands: tuple[ArrayShape, ...], results: tuple[ArrayShape, ...]) -> CollectiveShapes:
        """These operands and results, and the dimension that changes its size, if it is one."""
        sizes = zip(operands[0].sizes, results[0].sizes, strict=False)
        changed = [dim for dim, (before, after) in enumerate(sizes) if before != after]
        return cls(operands, results, changed[0] if len(changed) == 1 else None)

    @property
    def operand_bytes(self) -> int:
        return sum(array.nbytes for array in self.operands)

    @property
    def larger_bytes(self) -> int:
        return max(self.operand_bytes, sum(array.nbytes for array in self.results))


def base_op(opcode: str) -> str:
    """The collective that an opcode is, or begins: ``all-gather`` for ``all-gather-start``."""
    return opcode.removesuffix(START)


def collective_shapes(instruction: Instruction, group_size: int) -> CollectiveShapes:
    """The arrays of a collective over groups of `group_size`.

    Raises `NotationError` when the instruction's shape cannot be one of its opcode's.
    """
    shape = parse_shape(instruction.shape)
    op = base_op(instruction.opcode)
    given: tuple[ArrayShape, ...] = ()
    results: tuple[ArrayShape, ...]
    if op in ("send", "recv"):
        results = tuple(arrays(shape))[:1]
    elif instruction.opcode.endswith(START) and isinstance(shape, list) and _has_operands(instruction, shape):
        given, results = tuple(arrays(shape[0])), tuple(arrays(shape[1]))
    else:
        results = tuple(arrays(shape))
    if "[" in instruction.operands:
        given = tuple(array for each in parse_shapes(instruction.operands) for array in arrays(each)) or given
    if op == "ragged-all-to-all":
        given = given[:1]
    if not results:
        raise NotationError(
            f"{instruction.opcode} of no arrays", instruction.shape, 0, len(instruction.shape)
        )
    if "slice_sizes" in instruction.attributes:
        slices = tuple(_slices(instruction.attributes["slice_sizes"], results))
        return CollectiveShapes(slices, slices)
    dim = _dimension(instruction, results)
    operands = given or tuple(_operand(op, array, dim, group_size) for array in results)
    if op == "all-to-all":
        # The array form splits and joins the same dimension; a tuple's elements are already the parts.
        return CollectiveShapes(operands, results, dim, dim)
    return CollectiveShapes(operands, results, dim if op in ("all-gather", "reduce-scatter") else None)


def _has_operands(instruction: Instruction, shape: list[Shape]) -> bool:
    """Whether the tuple of a start is (operands, results, contexts ...).

    An all-reduce's own start has its results alone, an array for each operand; one that is wrapped in an
    async-start is printed by the same name.
    """
    if base_op(instruction.opcode) == "all-reduce":
        return len([*arrays(shape)]) > len(operand_names(instruction.operands))
    return len(shape) > 1


def _slices(sizes: str, buffers: Sequence[ArrayShape]) -> Iterator[ArrayShape]:
    """What a permute in place sends of its `buffers`: ``{1,64},{2,64}`` are two slices, all of one buffer or
    each of its own."""
    found = [match[1] for match in _SLICE.finditer(sizes)]
    if len(found) != len(buffers) and len({buffer.dtype for buffer in buffers}) > 1:
        raise NotationError("slices of arrays of several types cannot be told apart", sizes, 0, len(sizes))
    for number, slice_ in enumerate(found):
        dtype = buffers[number % len(buffers)].dtype
        (shape,) = arrays(parse_shape(f"{dtype}[{slice_}]"))
        yield shape


def _dimension(instruction: Instruction, results: Sequence[ArrayShape]) -> int | None:
    match = _DIMENSION.match(instruction.attributes.get("dimensions", ""))
    if match is None or any(int(match[0]) >= len(array.sizes) for array in results):
        return None
    return int(match[0])


def _operand(op: str, result: ArrayShape, dim: int | None, group_size: int) -> ArrayShape:
    if dim is None or group_size < 1:
        return result
    if op == "all-gather":
        return result.resized(dim, -(-result.sizes[dim] // group_size))
    if op == "reduce-scatter":
        return result.resized(dim, result.sizes[dim] * group_size)
    return result
