"""The functions of a program's statements on NumPy arrays, written from what they mean.

Values may be those of all devices: the first axes of every array are devices then, and `indices` say which
elements of a dimension a device has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.problem import Statement

Values = NDArray[Any]
Dims = tuple[str, ...]
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
    "convert": lambda x: x,
    "sum_exp": lambda x, m: np.exp(x - m),
    "softmax": lambda x, m, z: np.exp(x - m) / z,
    "add_log": lambda m, z: m + np.log(z),
    "sum_exp_gradient": lambda g, x, m: g * np.exp(x - m),
    "softmax_gradient": lambda g, p, s: p * (g - s),
    "silu_gradient": lambda g, x: g * _slope(lambda at: at / (1 + np.exp(-at)), x),
    "gelu_gradient": lambda g, x: g * _slope(POINTWISE["gelu"], x),
    "relu_gradient": lambda g, r: np.where(r > 0, g, 0),
    "sigmoid_gradient": lambda g, r: g * r * (1 - r),
    "tanh_gradient": lambda g, r: g * (1 - r * r),
    "sqrt_gradient": lambda g, r: g / (2 * r),
    "rsqrt_gradient": lambda g, r: -g * r**3 / 2,
    "divide_gradient": lambda g, r, y: -g * r / y,
    "maximum_gradient": lambda g, x, y: np.where(x > y, g, np.where(x == y, g / 2, 0)),
    "minimum_gradient": lambda g, x, y: np.where(x < y, g, np.where(x == y, g / 2, 0)),
    "max_gradient": lambda g, x, r: np.where(x == r, g, 0),
    "normalize_gradient": lambda g, x, s: -g * x * (s + 1e-6) ** -1.5 / 2,
    "top_k_gradient": lambda g, r: np.where(r != 0, g, 0),
    "adam_mean": lambda m, g: 0.9 * m + 0.1 * g,
    "adam_square": lambda v, g: 0.999 * v + 0.001 * g * g,
    "adam_update": lambda w, m, v: w - 1e-3 * m / (np.sqrt(v) + 1e-8),
    "sgd_update": lambda w, g: w - 1e-3 * g,
    "where": np.where,
    "where_gradient": lambda g, m: np.where(m, g, 0),
    "where_not_gradient": lambda g, m: np.where(m, 0, g),
}


def _slope(function: Callable[[Values], Values], x: Values) -> Values:
    """The derivative of an analytic function, by an imaginary step (Squire and Trapp 1998)."""
    return np.asarray(function(x + 1e-20j)).imag / 1e-20


def value(
    part: Statement,
    operands: Sequence[Values],
    devices: int = 0,
    indices: Mapping[str, Values] | None = None,
    shared: tuple[int, ...] = (),
) -> Values:
    """The result of a statement, or what each device has of it.

    `devices` is the number of axes of devices; `indices` has, for each dimension that is split, the indices
    of the elements on each device: the axes of devices, then an axis for the elements. Rows of a softmax are
    `shared` by the devices along these axes, each of which has a part of the keys.
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

    def attention_weights(dims: Sequence[Dims], values: Sequence[Values]) -> tuple[Dims, Values]:
        """The dimensions of the scores, the keys' last, and what each has of its row's softmax."""
        order, scores = attention_scores(dims, values)
        every = (-1, *shared)
        most = np.maximum(scores.max(axis=every, keepdims=True), -1e300)  # of -inf alone: nothing
        raised, sinks = np.exp(scores - most), np.zeros(())
        if len(dims) % 2 == 0:
            # A sink is one more score of the whole row, whose value is zero.
            sinks = np.exp(reordered(values[-1], dims[-1], *order[:-1])[..., None] - most)
        return order, np.asarray(raised / np.maximum(raised.sum(axis=every, keepdims=True) + sinks, 1e-300))

    def attention_scores(dims: Sequence[Dims], values: Sequence[Values]) -> tuple[Dims, Values]:
        (query, keys, *_), (along, size, *_) = dims, part.whole
        sequence = query[keys.index(along)]
        order = (*(dim for dim in query if dim not in (sequence, size)), sequence, along)
        pairs = [slice(place, place + 2) for place in (0, 3)[: (len(dims) - 1) // 2]]
        scores = sum(einsum(dims[pair], values[pair], order) for pair in pairs) / root
        if part.limit:
            scores = part.limit * np.tanh(scores / part.limit)
        if part.function.startswith(("causal", "window")):
            before = held(sequence)[..., None] - held(along)[..., None, :]
            hidden = (before < 0) | (before >= (part.number or np.inf))
            scores = np.where(beside(hidden, len(order) - 2), -np.inf, scores)
        return order, np.asarray(scores)

    root = math.sqrt(sum(whole[dim] for dim in part.whole[1:]))

    def reordered(x: Values, of: Dims, *order: str) -> Values:
        """An array with these of its dimensions last, repeated along those that it lacks."""
        there = [dim for dim in order if dim in of]
        made = einsum([of], [x], there)
        for place, dim in enumerate(order):
            if dim not in of:
                made = np.expand_dims(made, devices + place)
        return made

    def scanned() -> Values:
        """Position by position; the reverse has each state's gradient, then that of its factor."""
        every = next(each for each in dims[::-1] if part.along in each and len(each) == max(map(len, dims)))
        order = (*(dim for dim in every if dim != part.along), part.along)
        arrays = [reordered(x, own, *order) for x, own in zip(operands, dims, strict=True)]
        factors, count = arrays[0 if part.function == "scan" else 1], held(part.along).shape[-1]

        def states(x: Values, way: Sequence[int], ahead: int) -> Values:
            made, state = np.zeros(np.broadcast_shapes(x.shape, factors.shape)), 0.0
            for t in way:
                factor = factors[..., t + ahead] if 0 <= t + ahead < count else 0.0
                made[..., t] = state = factor * state + x[..., t]
            return made

        if part.function == "scan":
            return einsum([order], [states(arrays[1], range(count), 0)], result)
        slope = states(arrays[0], range(count)[::-1], 1)
        if part.function == "scan_gradient":
            return einsum([order], [slope], result)
        before = np.roll(states(arrays[2], range(count), 0), 1, -1)
        before[..., 0] = 0
        return einsum([order], [slope * before], result)

    def written(of: Sequence[Sequence[str]], values: Sequence[Values], made: Sequence[str]) -> Values:
        """A state that fades, less what its key finds there, and with the value."""
        state, factor, rate, key, new = of
        if not values[0].ndim:
            return einsum([rate, key, new], values[2:], made)
        faded = einsum([factor, state], [values[1], values[0]], state)
        wrong = values[4] - einsum([state, key], [faded, values[3]], new)
        return np.asarray(
            einsum([state], [faded], made) + einsum([rate, key, new], [*values[2:4], wrong], made)
        )

    def convolved() -> Values:
        """Tap by tap: the last meets the position itself."""
        tap = part.whole[-1]
        every = dims[0]
        order = (*(dim for dim in every if dim != part.along), part.along)
        taps, count = held(tap).shape[-1], held(part.along).shape[-1]

        def moved(x: Values, by: int) -> Values:
            """What stood so many positions before; zeros beyond the ends."""
            made = np.zeros_like(x)
            for t in range(count):
                if 0 <= t - by < count:
                    made[..., t] = x[..., t - by]
            return made

        x = reordered(operands[0], every, *order)
        if part.function == "conv_weight_gradient":
            other, kept = reordered(operands[1], dims[1], *order), [dim for dim in order if dim in result]
            rows = [einsum([order], [x * moved(other, taps - 1 - k)], kept) for k in range(taps)]
            return einsum([[*kept, tap]], [np.stack(rows, -1)], result)
        weights = reordered(operands[1], dims[1], *order[:-1], tap)
        way = 1 if part.function == "conv" else -1
        made = sum(moved(x, way * (taps - 1 - k)) * weights[..., k, None] for k in range(taps))
        return einsum([order], [np.asarray(made)], result)

    def placed() -> Values:
        """A sum of what each operand has at a place of the result, by matrices of ones and zeros."""
        made = 0.0
        every = [dim for dim in result if dim in part.whole or dim == part.along or dim not in dims[0]]
        if part.function == "slice":
            every = [dim for dim in result if dim not in dims[0]]
        (new,) = every
        there, begin = held(new), 0
        for number, (x, own) in enumerate(zip(operands, dims, strict=True)):
            old = next((dim for dim in own if dim not in result), new)
            stop = begin + whole[old]
            if part.function == "slice":
                places = held(old) - int(part.number or 0)
            elif part.function == "concatenate":
                places, begin = held(old) + begin, stop
            else:
                rows = {dim: size for dim, size in whole.items() if dim in part.whole}
                start = whole[new] - sum(rows.values()) if rows else int(part.number or 0)
                places = held(old) + start if number else np.where(held(old) < start, held(old), -1)
            ones = np.asarray(places[..., None] == beside(there, 1), dtype=float)
            to = [f"{dim}'" if dim == new else dim for dim in result]
            names.append(f"{new}'") if f"{new}'" not in names else None
            made = made + einsum([own, (old, f"{new}'")], [x, ones], to)
        return np.asarray(made)

    match part.function:
        case "multiply":
            return einsum(dims, operands, result)
        case "scale":
            return einsum(dims, operands, result) * part.number
        case "max":
            kept = [dim for dim in dims[0] if dim in result]
            return einsum(
                [kept],
                [operands[0].max(axis=tuple(axis(dim, dims[0]) for dim in dims[0] if dim not in kept))],
                result,
            )
        case "pick" | "pick_gradient":
            rows = dims[0] if part.function == "pick" else result
            (along,) = (dim for dim in rows if dim not in dims[1])
            chosen = np.asarray(operands[1][..., None] == beside(held(along), len(dims[1])), dtype=float)
            return einsum([dims[0], (*dims[1], along)], [operands[0], chosen], result)
        case "reshape":
            counts = [held(dim).shape[-1] for dim in result]
            return operands[0].reshape(*operands[0].shape[:devices], *counts)
        case "take":
            table, places = operands
            rows = beside(held(dims[0][0]), len(dims[1]))
            chosen = np.asarray(places[..., None] == rows, dtype=table.dtype)
            return einsum([dims[0], (*dims[1], dims[0][0])], [table, chosen], result)
        case "attention" | "causal_attention" | "window_attention":
            order, weights = attention_weights(dims, operands)
            return einsum([order, dims[2]], [weights, operands[2]], result)
        case name if name.endswith(("query_gradient", "key_gradient", "value_gradient", "sink_gradient")):
            given, _, _, values, *_ = dims
            order, weights = attention_weights(dims[1:], operands[1:])
            if name.endswith("value_gradient"):
                return einsum([order, given], [weights, operands[0]], result)
            slope = einsum([given, values], [operands[0], operands[3]], order)
            falls = (slope * weights).sum(-1, keepdims=True)
            if name.endswith("sink_gradient"):
                # Where its value of zero is averaged too.
                own = 1 - weights.sum(axis=(-1, *shared), keepdims=True)
                return einsum([order], [-own * falls], result)
            slope = weights * (slope - falls.sum(axis=shared, keepdims=True)) / root
            if part.limit:
                with np.errstate(invalid="ignore"):
                    scores = attention_scores(dims[1:], operands[1:])[1]
                    slope = np.where(weights > 0, slope * (1 - (scores / part.limit) ** 2), 0)
            place = (4 if "second" in name else 1) + name.endswith("query_gradient")
            other = dims[place], operands[place]
            return einsum([order, other[0]], [slope, other[1]], result)
        case "rotary" | "rotary_gradient":
            # A half is the real, the other the imaginary part of what is turned.
            ends = (part.along, part.whole[0])
            order = (*(dim for dim in dims[0] if dim not in ends), *ends)
            real, imaginary = np.split(reordered(operands[0], dims[0], *order), 2, axis=-1)
            size, way = real.shape[-1], -1 if part.function.endswith("gradient") else 1
            angles = held(part.along)[..., None] * float(part.number or 0) ** -(np.arange(size) / size)
            turned = (real + 1j * imaginary) * np.exp(way * 1j * beside(angles, len(order) - 2))
            return einsum([order], [np.concatenate([turned.real, turned.imag], axis=-1)], result)
        case "linear_attention":
            factors, query, keys, values = dims
            order = (
                *(dim for dim in values if dim != part.along),
                *(dim for dim in keys if dim not in values),
                part.along,
            )
            came = einsum([keys, values], operands[2:], order)
            fade, states, state = reordered(operands[0], factors, *order), np.zeros_like(came), 0.0
            for t in range(came.shape[-1]):
                states[..., t] = state = fade[..., t] * state + came[..., t]
            return einsum([query, order], [operands[1], states], result)
        case "delta_rule":
            *every, key, value_dims = ([dim for dim in own if dim != part.along] for own in dims)
            state = [*value_dims, *(dim for dim in key if dim not in value_dims)]
            taken = [*map(np.moveaxis, operands, [axis(part.along, own) for own in dims], [devices] * 5)]
            after, seen = np.zeros(()), []
            for at in zip(*(np.moveaxis(x, devices, 0) for x in taken), strict=True):
                after = written([state, *every[:2], key, value_dims], [after, *at[:2], *at[3:]], state)
                seen.append(einsum([state, every[2]], [after, at[2]], value_dims))
            return einsum([[part.along, *value_dims]], [np.stack(seen, devices)], result)
        case "delta_state":
            return written(dims, operands, result)
        case "linear_state":
            fades = einsum(dims[1::-1], operands[1::-1], result)
            return np.asarray(fades + einsum(dims[2:], operands[2:], result))
        case "read_state":
            return einsum(dims, operands, result)
        case "cumsum":
            return einsum(dims, [np.cumsum(operands[0], axis=axis(part.along, dims[0]))], result)
        case "cumsum_gradient":
            along = axis(part.along, dims[0])
            return einsum(dims, [np.flip(np.cumsum(np.flip(operands[0], along), along), along)], result)
        case "scan" | "scan_gradient" | "scan_factor_gradient":
            return scanned()
        case "conv" | "conv_gradient" | "conv_weight_gradient":
            return convolved()
        case "fill" | "dropout":
            place = 1 if part.function == "fill" else 0
            kept, other = (1, part.number) if place else (1 / (1 - float(part.number or 0)), 0)
            mask = reordered(np.asarray(operands[1 - place], float), dims[1 - place], *dims[place])
            return einsum([dims[place]], [np.where(mask > 0, operands[place] * kept, other)], result)
        case "square_gradient":
            return einsum(dims, operands, result) * part.number
        case "take_gradient":
            gradient, places = operands
            rows = beside(held(result[0]), len(dims[1]))
            chosen = np.asarray(places[..., None] == rows, dtype=gradient.dtype)
            return einsum([dims[0], (*dims[1], result[0])], [gradient, chosen], result)
        case "slice" | "concatenate" | "update" | "update_gradient":
            return placed()
        case "top_k":
            x, along = operands[0], axis(part.whole[0], dims[0])
            rank = np.argsort(np.argsort(-x, axis=along, kind="stable"), axis=along, kind="stable")
            return einsum(dims, [np.where(rank < int(part.number or 1), x, 0)], result)
        case "dispatch" | "dispatch_gradient" | "combine" | "combine_gradient" | "combine_gates_gradient":
            every = [dim for own in (*dims, result) for dim in own]
            (made,) = (dim for dim in every if every.count(dim) == 1)
            taken = operands[-1] > 0
            place = np.where(taken, np.cumsum(taken, axis=axis(part.whole[0], dims[-1])) - 1, -1)
            filled = np.asarray(place[..., None] == beside(held(made), len(dims[-1])), dtype=float)
            if part.function in ("combine", "combine_gradient"):
                filled = filled * operands[-1][..., None]
            return einsum([*dims[:-1], (*dims[-1], made)], [*operands[:-1], filled], result)
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
