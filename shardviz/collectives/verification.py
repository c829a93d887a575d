"""Verification: the simulator's values against JAX's, equal or as near as rounding lets them be.

Reals may be added in any order, and in a wider type that is rounded once (XLA for CPU adds bf16 in f32, f8
and f4 in f16): every sum of n addends is within ((1 + u)^(n - 1) - 1) * sum |x| of the exact one, where u is
half the distance from 1 to the next number (Higham 2002, "Accuracy and Stability of Numerical Algorithms",
section 4.2). A mean is divided, or multiplied by 1 / n, which rounds once or twice more. Two NaNs are equal;
after a reduction 0 and -0 are, too."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardviz.collectives.operation import Operation
from shardviz.collectives.values import Bools, Ints, Reals, Values, float_limits
from shardviz.sharding import Mesh
from shardviz.units import shaped

_MANY = 2**62
_NAN_NOTE = "XLA for CPU passes over NaN here, where StableHLO's maximum and minimum give NaN"


@dataclass(frozen=True)
class VerificationResult:
    """A comparison of our result with JAX's.

    `verdict` is "equal", "rounding" (every difference is within what another order of additions can make) or
    "different". Of the `values` compared `differing` differ, by `ulps` representable numbers at most.
    `device` (a mesh position), `index` (in its result), `ours` and `theirs` are those of the first difference
    beyond rounding, else of the largest. `note` says why values cannot agree, where that is known."""

    verdict: str
    values: int
    differing: int = 0
    ulps: int = 0
    device: int | None = None
    index: tuple[int, ...] = ()
    ours: str = ""
    theirs: str = ""
    note: str = ""


def verify(
    operation: Operation, mesh: Mesh, before: Values, ours: Values, theirs: Values
) -> VerificationResult:
    """Compare two results of an operation on the shards `before`; all have the mesh's devices as first
    dimension."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        one, other = (shaped(str(values.dtype), values.shape[1:]) for values in (ours, theirs))
        return VerificationResult("different", ours.size, note=f"ours is {one}, theirs {other}")
    unequal = ~_same(ours, theirs, signed_zeros=not operation.pattern(operation.dims(mesh)).reduces)
    if not unequal.any():
        return VerificationResult("equal", ours.size)
    ulps = _ulps(ours, theirs)
    beyond = unequal & ~_within(operation, mesh, before, ours, theirs)
    verdict, flat_index, note = "rounding", int(np.argmax(np.where(unequal, ulps, -1))), ""
    if beyond.any():
        verdict, flat_index = "different", int(np.argmax(beyond))
        note = _NAN_NOTE if operation.name in ("pmax", "pmin") and _is_nan(before).any() else ""
    device, *index = (int(number) for number in np.unravel_index(flat_index, ours.shape))
    mine, other = (str(values.reshape(-1)[flat_index]) for values in (ours, theirs))
    most = int(np.where(unequal, ulps, 0).max())
    differing = int(unequal.sum())
    return VerificationResult(verdict, ours.size, differing, most, device, tuple(index), mine, other, note)


def _is_nan(values: Values) -> Bools:
    is_nan: Bools = np.not_equal(values, values)
    return is_nan


def _parts(values: Values) -> Values:
    """The values in one dimension before their parts: one for real numbers, two for complex."""
    flat = values.reshape(-1)
    if flat.dtype.kind == "c":
        return flat.view(flat.real.dtype).reshape(-1, 2)
    return flat[:, None]


def _same(ours: Values, theirs: Values, signed_zeros: bool) -> Bools:
    """The places, in one dimension, at which both are the same."""
    mine, other = _parts(ours), _parts(theirs)
    same = (mine == other) | (_is_nan(mine) & _is_nan(other))
    if signed_zeros and _is_float(mine):
        same &= (np.signbit(mine) == np.signbit(other)) | _is_nan(mine)
    matches: Bools = same.all(axis=1)
    return matches


def _is_float(parts: Values) -> bool:
    return "float" in parts.dtype.name


def _ulps(ours: Values, theirs: Values) -> Ints:
    """The steps from one number of the type to the next lie between two finite values (2^62 at most)."""
    mine, other = _parts(ours), _parts(theirs)
    if not _is_float(mine):
        return np.zeros(len(mine), dtype=np.int64)
    finite = np.isfinite(mine) & np.isfinite(other)
    first, second = _rank(mine), _rank(other)
    # Of opposite signs they may be further apart than a signed number of 64 bits counts.
    across = np.abs(first).astype(np.uint64) + np.abs(second).astype(np.uint64)
    apart = np.where((first < 0) != (second < 0), across, np.abs(first - second).astype(np.uint64))
    steps = np.where(finite, np.minimum(apart, _MANY), 0).astype(np.int64)
    counted: Ints = steps.max(axis=1)
    return counted


def _rank(parts: Values) -> Ints:
    """The place of every float among the numbers of its type; 0 and -0 share theirs."""
    magnitude = np.abs(parts).view(f"u{parts.dtype.itemsize}").astype(np.int64)
    rank: Ints = np.where(np.signbit(parts), -magnitude, magnitude)
    return rank


def _within(operation: Operation, mesh: Mesh, before: Values, ours: Values, theirs: Values) -> Bools:
    """The places, in one dimension, at which rounding alone may have made the difference."""
    mine, other = _parts(ours), _parts(theirs)
    adds = operation.name in ("psum", "pmean", "psum_scatter")
    if not adds or not _is_float(mine):
        return np.zeros(len(mine), dtype=bool)
    limits = float_limits(mine.dtype)
    unit, top, tiny = (float(limit) for limit in (limits.eps / 2, limits.max, limits.smallest_normal))
    count = mesh.group_size(operation.axes)
    sums: Reals = np.zeros(mine.shape)
    steps = sums
    if _is_float(_parts(before)):
        parts = _parts(before).astype(np.float64)
        parts = np.where(np.isfinite(parts), parts, 0)
        sums = _over_groups(operation, mesh, before, np.abs(parts), "add")
        # Where all addends are multiples of one power of two, and too few of it to be rounded, every order
        # of the additions gives the same.
        steps = _over_groups(operation, mesh, before, _finest(parts), "minimum")
    with np.errstate(all="ignore"):
        exact = (sums / steps <= 2 / limits.eps) & (sums <= top) & (operation.name != "pmean")
        # One rounding more, from the wider type; XLA for CPU may take subnormal numbers for 0.
        bound = 2 * np.expm1(count * np.log1p(unit)) * sums + (count + 1) * tiny
        overflows = sums * (1 + bound / np.maximum(sums, tiny)) > top
        overflows &= ~(np.isfinite(mine) & np.isfinite(other))
        if operation.name == "pmean":
            divisor = float(np.asarray(count).astype(mine.dtype))
            bound = bound / divisor + 4 * unit * np.abs(mine.astype(np.float64)) + tiny
        near: Bools = np.abs(mine.astype(np.float64) - other.astype(np.float64)) <= bound
    # A part that is the same needs no explanation.
    within: Bools = ((near & ~exact) | overflows | (mine == other)).all(axis=1)
    return within


def _finest(parts: Reals) -> Reals:
    """The largest power of two of which each number is a multiple; infinite for 0."""
    fraction, exponent = np.frexp(np.abs(parts))
    digits = (fraction * 2.0**53).astype(np.int64)
    lowest = (digits & -digits).astype(np.float64)
    return np.where(parts == 0, np.inf, np.ldexp(lowest, exponent - 53))


def _over_groups(operation: Operation, mesh: Mesh, before: Values, parts: Reals, how: str) -> Reals:
    """The sum, or the minimum, of all addends of each result: (values of the result, parts). `parts` are
    numbers for those of `before`, in one dimension before their real and imaginary ones."""
    pattern = operation.pattern(operation.dims(mesh))
    chunks = pattern.base_chunks
    addends = parts.reshape(len(before), -1, parts.shape[1])
    cuts = operation.cuts(before.shape[1:], "f64", pattern.group_size, chunks)
    member, chunk = pattern.ends(chunks)
    sums = np.zeros((len(before), int(np.prod(cuts.shape)), parts.shape[1]))
    for group in mesh.groups(operation.axes):
        total = getattr(np, how).reduce(addends[list(group)], axis=0)
        sums[np.array(group)[member][:, None], cuts.end[chunk]] = total[cuts.start[chunk]]
    return sums.reshape(-1, parts.shape[1])
