"""The FLOPs of a statement on a device, and the bytes that it reads and writes there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.planner.states.prices import Cost, Prices
from shardviz.sharding import ShardedArray, array_bytes
from shardviz.sharding.array import BITS

Shape = tuple[int, ...]


def statement_flops(part: Statement, operands: Sequence[Shape], result: Shape) -> int:
    """Operations of a statement on a device that holds pieces of these shapes of its operands and its
    result."""
    local: dict[str, int] = {}
    for array, shape in zip((*part.operands, part.result), (*operands, result), strict=True):
        for dim, size in zip(array.dims, shape, strict=True):
            local[dim] = min(size, local.get(dim, size))
    operand_dims = {dim for array in part.operands for dim in array.dims}
    points = math.prod(size for dim, size in local.items() if dim in operand_dims)
    if part.function == "multiply":
        return einsum_flops(part.operands, part.result, points)
    function = FUNCTIONS[part.function]
    if function.counted == "operand":
        return function.flops * math.prod(operands[0])
    if function.counted == "result":
        return function.flops * math.prod(result)
    return points * function.flops


def work_cost(prices: Prices, part: Statement, operands: Sequence[Shape], result: Shape) -> Cost:
    """The cost of a statement on a device that holds pieces of these shapes."""
    flops = statement_flops(part, operands, result)
    return prices.work(flops, statement_traffic(part, operands, result), matmul_dtype(part))


def is_matmul(part: Statement) -> bool:
    """Return whether the statement sums over a dimension that several operands have."""
    operands_with = Counter(dim for dims in part.einsum.operands for dim in dims)
    return part.function == "multiply" and any(operands_with[dim] > 1 for dim in part.einsum.contracted)


def matmul_dtype(part: Statement) -> str:
    """The dtype of a statement's matrix products: that of its largest elements; "" where it has none.

    Only these are bound by the peak that is published of a chip; for all else its vector units are fast
    enough that reading and writing HBM takes longer.
    """
    if not is_matmul(part) and not FUNCTIONS[part.function].multiplies_matrices:
        return ""
    return max((array.dtype for array in part.operands), key=BITS.__getitem__)


def einsum_flops(operands: Sequence[ShardedArray], result: ShardedArray, products: int) -> int:
    """Operations of an einsum that takes so many products: a multiplication for each operand after the first,
    and an addition where a dimension is summed; of a matmul two for each multiply-add."""
    summed = {dim for operand in operands for dim in operand.dims}.difference(result.dims)
    return products * (len(operands) - 1 + bool(summed))


def statement_traffic(part: Statement, operands: Sequence[Shape], result: Shape) -> int:
    """Bytes that a device reads of its pieces of the operands, and writes of the result."""
    looks_up = FUNCTIONS[part.function].looks_up
    written = array_bytes(result, part.result.dtype)
    read = [array_bytes(shape, array.dtype) for array, shape in zip(part.operands, operands, strict=True)]
    return written + sum(
        min(size, math.prod(result) * size // max(1, math.prod(shape))) if place in looks_up else size
        for place, (size, shape) in enumerate(zip(read, operands, strict=True))
    )
