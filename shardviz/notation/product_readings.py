"""The dimensions that a product without brackets sums over, and products that can be read in two ways.

``A[b,d] * B[d,f] * C[f,g]`` is the same from left to right, as matrix products, and as one einsum. In
``X[b,d] * W1[d,f] * W2[f,d]`` the letter d stands for two things: from left to right the first product sums
over it, and W2 has another d; one einsum has one d, and keeps it while a factor or the result needs it. Their
values differ, and both are common.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

Dims: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class ProductFactors:
    """The factors of a product, by their dimensions.

    `sums` are for each multiplication the dimensions that it says it sums over (``*_D``), None where it does
    not say. `result` are the dimensions of the result, None where they are not written; then those in
    `needed` are kept. Where `is_elementwise`, a product of arrays of the same dimensions keeps these.
    """

    dims: tuple[Dims, ...]
    sums: tuple[Dims | None, ...]
    result: Dims | None = None
    needed: AbstractSet[str] = frozenset()
    is_elementwise: bool = False

    def readings(self) -> tuple[tuple[Dims, ...], ...]:
        """For each reading the dimensions that each multiplication sums over: as one einsum, then, where its
        values differ, from left to right."""
        einsum, matmuls = self._summed(is_einsum=True), self._summed(is_einsum=False)
        if self._is_possible(matmuls) and self._letters(matmuls) != self._letters(einsum):
            return einsum, matmuls
        return (einsum,)

    def left(self, summed: Sequence[Dims]) -> list[Dims]:
        """The dimensions of the first factor, and those that each multiplication leaves."""
        found = [self.dims[0]]
        for dims, gone in zip(self.dims[1:], summed, strict=True):
            found.append(tuple(dim for dim in dict.fromkeys((*found[-1], *dims)) if dim not in gone))
        return found

    def _summed(self, is_einsum: bool) -> tuple[Dims, ...]:
        found: list[Dims] = []
        left, last = self.dims[0], len(self.dims) - 1
        for place, right in enumerate(self.dims[1:], 1):
            every = dict.fromkeys((*left, *right))
            kept = {dim for dims in self.dims[place + 1 :] for dim in dims} if is_einsum else set()
            if is_einsum or place == last:
                kept.update(self.needed if self.result is None else self.result)
            said = self.sums[place - 1]
            if place == last and self.result is not None:
                found.append(tuple(dim for dim in every if dim not in kept or dim in (said or ())))
            elif said is not None:
                found.append(said)
            elif self.is_elementwise and {*left} == {*right} and (place == last or not is_einsum):
                found.append(())
            else:
                found.append(tuple(dim for dim in left if dim in right and dim not in kept))
            left = tuple(dim for dim in every if dim not in found[-1])
        return tuple(found)

    def _letters(self, summed: Sequence[Dims]) -> tuple[AbstractSet[tuple[str, int]], ...]:
        """The dimensions of the factors and of the result, each with the number of sums over its letter
        before it: equal where two readings have equal values."""
        named = (*self.dims, *summed, self.result or ())
        sums = dict.fromkeys((dim for dims in named for dim in dims), 0)
        found = [{(dim, 0) for dim in self.dims[0]}]
        for dims, gone in zip(self.dims[1:], summed, strict=True):
            found.append({(dim, sums[dim]) for dim in dims})
            sums |= {dim: sums[dim] + 1 for dim in gone}
        result = self.left(summed)[-1] if self.result is None else self.result
        return (*found, {(dim, sums[dim]) for dim in result})

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
    """The problem of a product that has two `readings`, and the hint: how both are written, of the texts of
    the factors and of the result."""
    at_once, in_order = (", then ".join([", ".join(dims) for dims in each if dims]) for each in readings)
    problem = (
        f"this product has two readings: from left to right it sums over {in_order or 'nothing'}; "
        f"as one einsum it sums over {at_once or 'nothing'},"
    )
    if any(each is not None for each in sums):
        return problem, "write after each * what it sums over, as in A *_D W, or put brackets around products"
    matmuls = factors[0]
    for factor in factors[1:-1]:
        matmuls = f"({matmuls} * {factor})"
    return problem, f"write {matmuls} * {factors[-1]} or {', '.join(factors)} -> {result}"
