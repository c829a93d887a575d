"""The functions of a program's statements on NumPy arrays, written from what they mean.

Values may be those of all devices: the first axes of every array are devices then, and `indices` say which
elements of a dimension a device has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.problem import Statement

Values = NDArray[Any]
POINTWISE = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "negative": lambda x: -x,
    "divide": lambda x, y: x / y,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "relu": lambda x: np.where(x > 0, x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "square": lambda x: x * x,
    "sum": lambda x: x,
    "mean": lambda x: x,
    "mean_square": lambda x: x * x,
    "normalize": lambda x, s: x / np.sqrt(s + 1e-6),
}


def value(
    part: Statement,
    operands: Sequence[Values],
    devices: int = 0,
    indices: Mapping[str, Values] | None = None,
) -> Values:
    """The result of a statement, or what each device has of it.

    `devices` is the number of axes of devices; `indices` has, for each dimension that is split, the indices
    of the elements on each device: the axes of devices, then an axis for the elements.
    """
    dims, result = part.einsum.operands, part.einsum.result
    whole = {
        dim: size
        for array in (*part.operands, part.result)
        for dim, size in zip(array.dims, array.shape, strict=True)
    }
    names = list(dict.fromkeys((*(dim for each in dims for dim in each), *result)))

    def labels(each: Sequence[str]) -> list[int]:
        return [*range(devices), *(devices + names.index(dim) for dim in each)]

    def einsum(taken: Sequence[Sequence[str]], values: Sequence[Values], made: Sequence[str]) -> Values:
        pairs = [each for pair in zip(values, map(labels, taken), strict=True) for each in pair]
        return np.asarray(np.einsum(*pairs, labels(made)))

    def axis(dim: str, of: Sequence[str]) -> int:
        return devices + list(of).index(dim)

    def held(dim: str) -> Values:
        """The indices of a dimension's elements on each device: the axes of devices, then theirs."""
        every = np.arange(whole[dim]).reshape((1,) * devices + (-1,))
        return every if indices is None else indices.get(dim, every)

    def beside(x: Values, dims: int) -> Values:
        """Indices with axes of size 1 behind those of devices, to stand last of so many more dimensions."""
        return x.reshape(*x.shape[:devices], *(1,) * dims, *x.shape[devices:])

    def soft(x: Values, along: int) -> Values:
        raised = np.exp(x - x.max(axis=along, keepdims=True))
        return np.asarray(raised / raised.sum(axis=along, keepdims=True))

    match part.function:
        case "multiply":
            return einsum(dims, operands, result)
        case "scale":
            return einsum(dims, operands, result) * part.number
        case "max":
            kept = [dim for dim in dims[0] if dim in result]
            return einsum(
                [kept], [operands[0].max(axis=tuple(axis(dim, dims[0]) for dim in part.whole))], result
            )
        case "softmax":
            return einsum(dims, [soft(operands[0], axis(part.whole[0], dims[0]))], result)
        case "reshape":
            counts = [held(dim).shape[-1] for dim in result]
            return operands[0].reshape(*operands[0].shape[:devices], *counts)
        case "take":
            table, places = operands
            rows = beside(held(dims[0][0]), len(dims[1]))
            chosen = np.asarray(places[..., None] == rows, dtype=table.dtype)
            return einsum([dims[0], (*dims[1], dims[0][0])], [table, chosen], result)
        case "attention" | "causal_attention":
            along, size = part.whole
            sequence = dims[0][dims[1].index(along)]
            order = [*(dim for dim in dims[0] if dim not in (sequence, size)), sequence, along]
            scores = einsum(dims[:2], operands[:2], order) / math.sqrt(whole[size])
            if part.function == "causal_attention":
                later = beside(held(along)[..., None, :] > held(sequence)[..., None], len(order) - 2)
                scores = np.where(later, -np.inf, scores)
            return einsum([order, dims[2]], [soft(scores, -1), operands[2]], result)
        case "top_k":
            x, along = operands[0], axis(part.whole[0], dims[0])
            rank = np.argsort(np.argsort(-x, axis=along, kind="stable"), axis=along, kind="stable")
            return einsum(dims, [np.where(rank < int(part.number or 1), x, 0)], result)
        case "slots":
            (made,) = (dim for dim in result if dim not in dims[0])
            taken = operands[0] > 0
            place = np.where(taken, np.cumsum(taken, axis=axis(part.whole[0], dims[0])) - 1, -1)
            numbers = beside(held(made), len(dims[0]))
            return einsum([(*dims[0], made)], [np.asarray(place[..., None] == numbers, dtype=float)], result)
    every = labels(names)
    full = []
    for x, own in zip(operands, map(labels, dims), strict=True):
        placed = np.einsum(x, own, [label for label in every if label in own])
        full.append(np.expand_dims(placed, [n for n, label in enumerate(every) if label not in own]))
    made = np.asarray(POINTWISE[part.function](*full))
    summed = math.prod(whole[dim] for dim in names if dim not in result)
    return np.einsum(made, every, labels(result)) / (summed if part.function.startswith("mean") else 1)
