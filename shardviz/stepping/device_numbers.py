"""The numbers of every device: those that were given, or 0, 1, 2, …"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.notation import Numbers
    from shardviz.sharding import Layout

    Values = NDArray[Any]

MAX_COUNTED = 2**16
"""Elements of a larger array are not numbered when nobody gives them."""
MAX_HELD = 2**28
"""Bytes of the numbers that all devices may hold together, before or after."""


def shards_from(layout: Layout, numbers: Numbers | None, operation: Operation) -> Values | None:
    """Every device's numbers; None where nobody gave them and there would be too many to follow.

    Raises `QuestionError` for given numbers that are too many, or one that the dtype cannot hold.
    """
    if numbers is None:
        return counted_shards(layout, operation)
    from shardviz.collectives.values import array_from_numbers

    count = held(layout, operation)
    if _bytes_held(layout, operation) > MAX_HELD:
        raise QuestionError(
            f"{layout.mesh.size:,} devices would hold {count:,} numbers together, more than "
            f"{MAX_HELD // 2**20} MiB of them",
            "leave out --data to follow chunks without numbers",
        )
    return shards_of(array_from_numbers(numbers.texts, layout.array.dtype), layout)


def counted_shards(layout: Layout, operation: Operation) -> Values | None:
    """Shards of 0, 1, 2, …, each addend of a pending sum with its own; None where they would be too many."""
    elements = layout.array.elements * layout.mesh.group_size(layout.spec.unreduced)
    if elements > MAX_COUNTED or _bytes_held(layout, operation) > MAX_HELD:
        return None
    return shards_of(counted(elements, layout.array.dtype), layout)


def held(layout: Layout, operation: Operation) -> int:
    """Elements that all devices hold together, before or after."""
    larger = operation.larger(layout.shard_shape, layout.mesh.group_size(operation.axes))
    return layout.mesh.size * max(1, math.prod(layout.shard_shape), math.prod(larger))


def _bytes_held(layout: Layout, operation: Operation) -> int:
    from shardviz.sharding.dtype import BITS

    return held(layout, operation) * max(8, BITS[layout.array.dtype]) // 8


def counted(count: int, dtype: str) -> Values:
    """0, 1, 2, …, starting over where the dtype cannot tell the next number from others."""
    import ml_dtypes
    import numpy as np

    from shardviz.collectives.values import numpy_dtype

    element = numpy_dtype(dtype)
    if dtype == "pred":
        different = 2
    elif dtype[0] in "su":
        different = int(ml_dtypes.iinfo(element).max) + 1  # type: ignore[no-untyped-call]
    else:
        different = 2 ** (int(ml_dtypes.finfo(element).nmant) + 1)  # type: ignore[no-untyped-call]
    return (np.arange(count) % min(different, max(1, count))).astype(element)


def shards_of(values: Values, layout: Layout) -> Values:
    """The parts of an array by mesh position; `values` is flat, and has an array for each addend of a sum."""
    parts = (*layout.parts, layout.mesh.group_size(layout.spec.unreduced))
    sizes = layout.shard_shape
    interleaved = [size for pair in zip(parts, sizes, strict=False) for size in pair]
    rank = len(sizes)
    blocks = values.reshape(parts[-1], *interleaved)
    order = (*range(1, 2 * rank, 2), 0, *range(2, 2 * rank + 1, 2))
    shards: Values = blocks.transpose(order).reshape(math.prod(parts), *sizes)[layout.shards()]
    return shards
