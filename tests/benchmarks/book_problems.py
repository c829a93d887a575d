"""The worked problems of "How to Scale Your Model" that ask how long a program takes, or how much faster.

Each program is one of their solutions, in bf16, for the eight cores of a TPU v2 that the chapter works on.
``python tests/benchmarks/book_problems.py`` compiles them into ``programs/``; with ``--check`` it compares.
The problems are in https://jax-ml.github.io/scaling-book/jax-stuff.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from measured_programs import MeasuredProgram, P, write_or_check

EXPERTS, TOKENS, WIDTH, HIDDEN, CHOSEN = 8, 8192, 1024, 4096, 2
"""Problem 2: each token goes to `CHOSEN` experts."""
ROWS = 1024
"""Rows that a device sends to each device in a round: one round is enough where loads are even."""


# Problem 1: the average of each shard.


def average_by_hand(shard: Any) -> Any:
    return shard.mean(keepdims=True)


def average_by_jit(array: Any) -> Any:
    rows, columns = array.shape
    return array.reshape(4, rows // 4, 2, columns // 2).mean(axis=(1, 3))


# Problem 2: experts. `choice` has CHOSEN experts for each token.


def experts_by_jit(tokens: Any, weights: Any, choice: Any) -> Any:
    """A buffer [E, S, D] has room for the case that all tokens want one expert."""
    wanted = jax.nn.one_hot(choice, EXPERTS, dtype=tokens.dtype).sum(1)
    buffer = jnp.einsum("se,sd->esd", wanted, tokens)
    return jnp.einsum("esd,edf->sf", buffer, weights) / CHOSEN


def experts_gathered(tokens: Any, weights: Any, choice: Any) -> Any:
    """Every device sees all tokens, and adds what its own experts make of them."""
    tokens = jax.lax.all_gather(tokens, "X", axis=0, tiled=True)
    tokens = jax.lax.all_gather(tokens, "Y", axis=1, tiled=True)
    choice = jax.lax.all_gather(choice, "X", axis=0, tiled=True)
    first = jax.lax.axis_index("X") * weights.shape[0]
    total = sum(
        jnp.where((choice == first + own).any(1)[:, None], tokens @ weight, 0)
        for own, weight in enumerate(weights)
    )
    return jax.lax.psum_scatter(total, "X", tiled=True) / CHOSEN


def experts_sent(tokens: Any, weights: Any, choice: Any) -> Any:
    """Rows travel to the devices of their experts and back, `ROWS` for each pair of devices at a time."""
    devices, experts = jax.lax.axis_size("X"), weights.shape[0]
    slots = devices * ROWS
    expert = choice.reshape(-1).astype(jnp.int32)
    token = jnp.repeat(jnp.arange(tokens.shape[0]), CHOSEN)
    owner = expert // experts
    mine = owner[:, None] == jnp.arange(devices)
    turn = (jnp.cumsum(mine, axis=0) * mine).sum(1) - 1
    rounds = jax.lax.pmax(turn.max() // ROWS + 1, "X")

    def one_round(carry: Any) -> Any:
        number, out = carry
        slot = jnp.where(turn // ROWS == number, owner * ROWS + turn % ROWS, slots)
        rows = jnp.zeros((slots + 1, tokens.shape[1]), tokens.dtype).at[slot].set(tokens[token])[:-1]
        label = jnp.full(slots + 1, -1).at[slot].set(expert % experts)[:-1]
        rows, label = (jax.lax.all_to_all(each, "X", 0, 0, tiled=True) for each in (rows, label))
        rows = jax.lax.all_gather(rows, "Y", axis=1, tiled=True)
        made = sum(jnp.where((label == own)[:, None], rows @ each, 0) for own, each in enumerate(weights))
        made = jax.lax.all_to_all(made, "X", 0, 0, tiled=True)
        back = jnp.concatenate([made, jnp.zeros((1, made.shape[1]), made.dtype)])[slot]
        return number + 1, out.at[token].add(back)

    start = 0, jnp.zeros((tokens.shape[0], weights.shape[2]), tokens.dtype)
    return jax.lax.while_loop(lambda carry: carry[0] < rounds, one_round, start)[1] / CHOSEN


# Problems 3 and 4: collective matmuls along Y, one way round a ring and both ways.


def chunk(array: Any, number: Any, axis: int, width: int) -> Any:
    return jax.lax.dynamic_slice_in_dim(array, number % jax.lax.axis_size("Y") * width, width, axis)


def pieces(piece: Any, both_ways: bool) -> Iterator[tuple[Any, Any]]:
    """Every device's piece, and whose it is: from one neighbour, or from both."""
    size, here = jax.lax.axis_size("Y"), jax.lax.axis_index("Y")
    left = [(each, (each - 1) % size) for each in range(size)]
    right = [(each, (each + 1) % size) for each in range(size)]
    from_right = from_left = piece
    yield piece, here
    for hop in range(1, size // 2 + 1 if both_ways else size):
        from_right = jax.lax.ppermute(from_right, "Y", left)
        yield from_right, here + hop
        if both_ways and hop < size - hop:
            from_left = jax.lax.ppermute(from_left, "Y", right)
            yield from_left, here - hop


def matmul_scatter(both_ways: bool, left: Any, right: Any) -> Any:
    """A[B, D_Y] W[D_Y, F] -> Out[B, F_Y]: sums grow on their way to their device."""
    size, here = jax.lax.axis_size("Y"), jax.lax.axis_index("Y")
    width = right.shape[1] // size

    def travel(hops: int, step: int) -> Any:
        ring = [(each, (each + step) % size) for each in range(size)]
        total = left @ chunk(right, here + step * hops, 1, width)
        for hop in range(hops - 1, -1, -1):
            total = jax.lax.ppermute(total, "Y", ring)
            if hop:
                total += left @ chunk(right, here + step * hop, 1, width)
        return total

    mine = left @ chunk(right, here, 1, width)
    if not both_ways:
        return mine + travel(size - 1, 1)
    return mine + travel(size // 2, -1) + travel(size - 1 - size // 2, 1)


def matmul_reduce(both_ways: bool, left: Any, right: Any) -> Any:
    """A[B, D_Y] W[D_Y, F] -> Out[B, F]: scattered sums, gathered."""
    mine = matmul_scatter(both_ways, left, right)
    out = jnp.zeros((left.shape[0], right.shape[1]), left.dtype)
    for piece, device in pieces(mine, both_ways):
        at = device % jax.lax.axis_size("Y") * mine.shape[1]
        out = jax.lax.dynamic_update_slice_in_dim(out, piece, at, 1)
    return out


def gather_matmul(both_ways: bool, left: Any, right: Any) -> Any:
    """A[B, D_Y] W[D, F_Y] -> Out[B, F_Y]: multiply the pieces that are here while the next ones travel."""
    found = (piece @ chunk(right, device, 0, left.shape[1]) for piece, device in pieces(left, both_ways))
    return sum(found)


def block(both_ways: bool, left: Any, w_in: Any, w_out: Any) -> Any:
    return matmul_scatter(both_ways, gather_matmul(both_ways, left, w_in), w_out)


def two_matmuls(left: Any, w_in: Any, w_out: Any) -> Any:
    return left @ w_in @ w_out


def matmul(left: Any, right: Any) -> Any:
    return left @ right


_ON = {"X": 4, "Y": 2}
_RING = {"X": 2, "Y": 4}
_SHARDS = ((8192, 8192), P("X", "Y")), P("X", "Y")
_EXPERTS = (
    ((TOKENS, WIDTH), P("X", "Y")),
    ((EXPERTS, WIDTH, HIDDEN), P("X", None, "Y")),
    ((TOKENS, CHOSEN), P("X", None)),
)
_A, _W = ((1024, 2048), P("X", "Y")), ((2048, 8192), P("Y", None))
_H, _W2 = ((1024, 8192), P("X", "Y")), ((8192, 2048), P("Y", None))
_W_IN = ((2048, 8192), P(None, "Y"))
_ASYNC = {"xla_enable_async_collective_permute": True}


class BookProblem(MeasuredProgram):
    """A program without the simulation of the compiler's scheduler, which nothing quotes."""

    def texts(self) -> tuple[str, str]:
        return super().texts()[0], ""


def _by_jit(function: Callable[..., Any], arrays: Any, out: Any, mesh: Any = _RING) -> BookProblem:
    return BookProblem("v2:2x2", mesh, function, arrays, out)


def _by_hand(function: Callable[..., Any], arrays: Any, out: Any, mesh: Any = _RING) -> BookProblem:
    return BookProblem("v2:2x2", mesh, function, arrays, out, mapped=True, options=_ASYNC)


PROBLEMS = {
    "average_by_hand": _by_hand(average_by_hand, _SHARDS[:1], _SHARDS[1], _ON),
    "average_by_jit": _by_jit(average_by_jit, _SHARDS[:1], _SHARDS[1], _ON),
    "experts_by_jit": _by_jit(experts_by_jit, _EXPERTS, P("X", "Y"), _ON),
    "experts_gathered": _by_hand(experts_gathered, _EXPERTS, P("X", "Y"), _ON),
    "experts_sent": _by_hand(experts_sent, _EXPERTS, P("X", "Y"), _ON),
    "reduce_by_jit": _by_jit(matmul, (_A, _W), P("X", None)),
    "scatter_by_jit": _by_jit(matmul, (_H, _W2), P("X", "Y")),
    "block_by_jit": _by_jit(two_matmuls, (_A, _W_IN, _W2), P("X", "Y")),
    "reduce_one_way": _by_hand(partial(matmul_reduce, False), (_A, _W), P("X", None)),
    "reduce_both_ways": _by_hand(partial(matmul_reduce, True), (_A, _W), P("X", None)),
    "scatter_one_way": _by_hand(partial(matmul_scatter, False), (_H, _W2), P("X", "Y")),
    "scatter_both_ways": _by_hand(partial(matmul_scatter, True), (_H, _W2), P("X", "Y")),
    "block_one_way": _by_hand(partial(block, False), (_A, _W_IN, _W2), P("X", "Y")),
    "block_both_ways": _by_hand(partial(block, True), (_A, _W_IN, _W2), P("X", "Y")),
}


if __name__ == "__main__":
    sys.exit(write_or_check(PROBLEMS))
