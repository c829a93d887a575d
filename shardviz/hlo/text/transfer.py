"""What one device puts into a collective instruction and what it gets out of it.

HLO prints the shape of a result, and that of an operand only on request. The operands follow from the
result, the size of the groups and the rules of each opcode, so that no other line has to be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardviz.errors import NotationError
from shardviz.hlo.text.instruction import Instruction, operand_names
from shardviz.hlo.text.shape import ArrayShape, Shape, arrays, parse_shape, parse_shapes

START = "-start"
_DIMENSION = re.compile(r"\d{1,3}")
_SLICE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Transfer:
    """Per-device arrays of a collective; `dim` is gathered, scattered or made whole, `split_dim` split."""

    operands: tuple[ArrayShape, ...]
    results: tuple[ArrayShape, ...]
    dim: int | None = None
    split_dim: int | None = None

    @property
    def operand_bytes(self) -> int:
        return sum(array.nbytes for array in self.operands)

    @property
    def larger_bytes(self) -> int:
        return max(self.operand_bytes, sum(array.nbytes for array in self.results))


def base_op(opcode: str) -> str:
    """The collective that an opcode is, or begins: ``all-gather`` for ``all-gather-start``."""
    return opcode.removesuffix(START)


def transfer_of(instruction: Instruction, group_size: int) -> Transfer:
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
        return Transfer(slices, slices)
    dim = _dimension(instruction, results)
    operands = given or tuple(_operand(op, array, dim, group_size) for array in results)
    if op == "all-to-all":
        # The array form splits and joins the same dimension; a tuple's elements are already the parts.
        return Transfer(operands, results, dim, dim)
    return Transfer(operands, results, dim if op in ("all-gather", "reduce-scatter") else None)


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
