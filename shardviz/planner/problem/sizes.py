"""The elements of every dimension: those given, those that follow from others, and the usual ones; padded
once to the least size that the axes of all arrays divide, as JAX refuses others (`IndivisibleError`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.errors import NotationError, QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.einsum import Einsum
from shardviz.notation.numbers import parse_sizes
from shardviz.planner.problem import PaddedDim, Problem, places_dim

with LazyImports():
    from shardviz.planner.problem import functions

if TYPE_CHECKING:
    from shardviz.planner.problem.lowered import ArrayUse, LoweredStatement
    from shardviz.planner.problem.lowering import LoweredProgram

DEFAULT_SIZES = (1024, 2048, 8192)
"""The sizes of the first three dimensions; others have `OTHER_SIZE`."""
OTHER_SIZE = 128
OF_ATTENTION = {"b": 8, "h": 16, "n": 16, "g": 8, "k": 8, "q": 2048, "s": 2048, "t": 2048}
"""The sizes by letter where several dimensions are positions (q, k, s, t) and one is heads (h, n). Beside
queries, q, k is the keys, else the heads of keys."""
MOST_ROUNDS = 8
"""A padded dimension that stands for others takes a round, one of these that does so another."""


def dimension_sizes(einsums: Sequence[Einsum], text: str) -> dict[str, int]:
    """Elements of every dimension: those in the text, and the defaults of the others. Raises `NotationError`
    for text of another form, and for a dimension that no array has."""
    dims = tuple(dict.fromkeys(dim for einsum in einsums for dim in einsum.dims))
    given = parse_sizes(text)
    _check_names(given, dims, text)
    return usual_sizes(dims) | given


def usual_sizes(dims: Sequence[str]) -> dict[str, int]:
    """The sizes that dimensions have in this order where none are given; those of attention by letter."""
    letters = {dim.lower() for dim in dims}
    if len(letters & {*"qkst"}) > 1 and letters & {*"hn"} and len(dims) > len(DEFAULT_SIZES):
        sizes = OF_ATTENTION | ({"k": OF_ATTENTION["q"]} if "q" in letters else {})
        return {dim: sizes.get(dim.lower(), OTHER_SIZE) for dim in dims}
    return dict(zip(dims, (*DEFAULT_SIZES, *(OTHER_SIZE,) * len(dims)), strict=False))


def _check_names(given: Mapping[str, int], dims: Sequence[str], text: str) -> None:
    for name in given:
        if name not in dims:
            problem = f"no array has the dimension {quote(name)} given a size"
            start = text.find(name.rstrip("0123456789") if name.startswith("...") else name)
            hint = f"the dimensions are {', '.join(dims) or 'none'}"
            raise NotationError(problem, text, max(0, start), hint=hint)


def program_sizes(lowered: LoweredProgram, given: Mapping[str, int], text: str) -> dict[str, int]:
    """Elements of every dimension: those given, those that others say, and the defaults. An expert has places
    for all tokens where each is chosen as often. Raises `NotationError` where two sizes of one dimension
    differ, and for a size of a dimension that no array has."""
    _check_names(given, lowered.dims, text)
    sizes = _Sizes(lowered, given)
    known = [(one, functions.FUNCTIONS[one.function]) for one in lowered.statements]
    derived = {whole for one in lowered.statements for whole, _ in one.merged}
    derived.update(places_dim(one.einsum) for one, function in known if function.makes_places)
    usual = usual_sizes([dim for dim in lowered.dims if dim not in derived])
    usual |= {one.whole[-1]: function.few for one, function in known if function.few}
    parts = {one.whole[0]: one for one, function in known if function.lies_within and not function.few}
    derived.update(parts, (one.along for one, function in known if function.joins))
    sizes.spread()
    # Those that follow from others come last, for the places of an array that does not say its experts.
    for dim in sorted(lowered.dims, key=derived.__contains__):
        if dim not in sizes.size:
            sizes.size[dim] = usual.get(dim, OTHER_SIZE)
            if dim in parts and (every := sizes.size.get(parts[dim].along)):
                sizes.size[dim] = max(1, every - int(parts[dim].number or 0))
            sizes.spread()
    for one, function in known:
        if function.halves and sizes.size[one.whole[-1]] % 2:
            problem = f"rotary turns halves of {one.whole[-1]}={sizes.size[one.whole[-1]]},"
            sizes.fail(problem, one.operands[0], "give it an even size")
    return sizes.size


class _Sizes:
    def __init__(self, lowered: LoweredProgram, given: Mapping[str, int]) -> None:
        self._lowered, self.size = lowered, dict(given)

    def spread(self) -> None:
        """Take sizes from dimensions that say them, until nothing is new."""
        before = -1
        while before != len(self.size):
            before = len(self.size)
            for name, first, use in self._lowered.renamed:
                for own, other in zip(first.dims, use.dims, strict=True):
                    if self._differ(own, other):
                        both = f"{self._sized(other)} is {self._sized(own)} in {first}"
                        hint = f"give {other} the size {self.size[own]}, or leave it out"
                        self.fail(f"{name} takes {use}, but {both},", use, hint)
            for statement in self._lowered.statements:
                for whole, factors in statement.merged:
                    self._product(whole, factors, statement.result)
                function = functions.FUNCTIONS[statement.function]
                if function.joins:
                    self._sum(statement.along, statement.whole)
                if function.makes_places:
                    self._capacity(statement)
                if function.of_one_sequence:
                    self._same_length(statement)

    def _differ(self, own: str, other: str) -> bool:
        """Two names of one dimension have two sizes; where only one has a size, both have it from here on."""
        sizes = [self.size[dim] for dim in (own, other) if dim in self.size]
        if len(sizes) == 1:
            self.size[own] = self.size[other] = sizes[0]
        return len(set(sizes)) > 1

    def _same_length(self, attention: LoweredStatement) -> None:
        """Queries and keys of causal attention are one sequence."""
        (queries, keys, *_), along = attention.operands, attention.whole[0]
        own = queries.dims[keys.dims.index(along)]
        if self._differ(own, along):
            both = f"{self._sized(own)} of {queries} and {self._sized(along)} of {keys}"
            problem = f"{attention.result.name} attends along {both}, which must be one sequence"
            same = "only the sequence has another name in the keys: Q[b, t, n, h], K[b, s, n, h]"
            hint = f"{same}, with grouped heads Q[b, t, n, g, h]"
            self.fail(f"{problem} in causal attention,", queries, hint)

    def _product(self, whole: str, factors: tuple[str, ...], use: ArrayUse) -> None:
        size = self.size
        unknown = [dim for dim in factors if dim not in size]
        known = math.prod(size[dim] for dim in factors if dim in size)
        if not unknown and size.setdefault(whole, known) != known:
            written = " · ".join(map(self._sized, factors))
            problem = f"{self._sized(whole)} of {use} is not {written} = {known},"
            self.fail(problem, use, f"give {whole} the size {known}")
        if len(unknown) == 1 and whole in size:
            if not known or size[whole] % known:
                problem = f"{self._sized(whole)} of {use} is not a multiple of {known},"
                self.fail(problem, use, "give other sizes")
            size[unknown[0]] = size[whole] // known

    def _sum(self, whole: str, parts: tuple[str, ...]) -> None:
        unknown = [dim for dim in parts if dim not in self.size]
        known = sum(self.size[dim] for dim in parts if dim in self.size)
        if not unknown:
            self.size.setdefault(whole, known)
        elif len(unknown) == 1 and whole in self.size:
            self.size[unknown[0]] = max(1, self.size[whole] - known)

    def _capacity(self, slots: LoweredStatement) -> None:
        """As many places as each expert needs where all are chosen as often, times the capacity factor, or
        the load where that is less."""
        made = {statement.result.name: statement for statement in self._lowered.statements}
        gates = made.get(slots.operands[-1].name)
        if gates is None or gates.function != "top_k" or gates.number is None:
            return
        (along,), (experts,), places = slots.whole, gates.whole, places_dim(slots.einsum)
        if along not in self.size or not self.size.get(experts):
            return
        most, load = self.size[experts] / int(gates.number), slots.limit
        if load and not 1 <= load <= most:
            problem = f"the fullest of {self._sized(experts)} cannot be chosen {load:g} times the mean,"
            self.fail(problem, slots.operands[-1], f"give a load from 1 to {most:.4g}")
        room = self.size[along] / most * min(slots.number or 1, load or math.inf)
        self.size.setdefault(places, max(1, math.ceil(round(room, 6))))

    def _sized(self, dim: str) -> str:
        return f"{dim}={self.size[dim]}"

    def fail(self, problem: str, use: ArrayUse, hint: str) -> None:
        raise NotationError(problem, self._lowered.program.text, use.start, use.stop, hint)


def padded(problem: Problem) -> Problem:
    """The problem with sizes that the axes of its arrays divide. Raises `QuestionError` for a spec that fits
    neither array nor mesh, or is of other devices than the mesh's: JAX compiles no such program."""
    is_even = True
    for array in problem.arrays:
        if array.spec is not None:
            array.spec.check(problem.mesh, array.rank, array.name)
            if array.spec.devices:
                on_mesh = replace(array.spec, devices=())
                raise QuestionError(
                    f"JAX runs a program on one mesh, and {array.name} is {array.spec}",
                    f"move it first, by jax.device_put({array.name}, NamedSharding(mesh, {on_mesh}))",
                )
            parts = array.spec.parts(problem.mesh)
            is_even &= not any(size % count for size, count in zip(array.shape, parts, strict=True))
    if is_even:
        _check_lengths(problem)
        return problem
    same = problem.roots
    given = {same[dim]: size for dim, size in problem.sizes.items()}
    sizes = _padded_sizes(problem, same, given)
    before = {dim.dim: dim.size for dim in problem.padding}
    padding = tuple(
        PaddedDim(dim, before.get(dim, given[root]), sizes[root])
        for dim, root in same.items()
        if sizes[root] != before.get(dim, given[root])
    )
    made = replace(problem.resized({dim: sizes[root] for dim, root in same.items()}), padding=padding)
    _check_lengths(made)
    return made


def _check_lengths(problem: Problem) -> None:
    """Raise `QuestionError` for parts that are not as long as the whole, also once they are padded."""
    for part in problem.forward:
        function, size = functions.FUNCTIONS[part.function], part.sizes
        own = " + ".join(f"{dim}={size[dim]}" for dim in part.whole)
        whole = f"{part.along}={size[part.along]}" if part.along else ""
        if function.joins and sum(size[dim] for dim in part.whole) != size[part.along]:
            hint = "give sizes that add up, and that the axes divide"
            raise QuestionError(f"{whole} of {part.result.name} is not {own}", hint)
        if function.lies_within and size[part.whole[0]] + int(part.number or 0) > size[part.along]:
            begin = f", from {int(part.number)} on," if part.number else ""
            problem_words = f"{own} of {part.result.name}{begin} is more than there is of {whole}"
            is_within = int(part.number or 0) < size[part.along]
            hint = f"give {part.whole[0]} a smaller size" if is_within else f"begin before {size[part.along]}"
            raise QuestionError(problem_words, hint)


def _padded_sizes(problem: Problem, same: Mapping[str, str], given: Mapping[str, int]) -> dict[str, int]:
    """Every size, rounded up; one that stands for several dimensions is their product."""
    parts = dict.fromkeys(given, 1)
    for array in problem.arrays:
        if array.spec is not None:
            for dim, count in zip(array.dims, array.spec.parts(problem.mesh), strict=True):
                parts[same[dim]] = math.lcm(parts[same[dim]], count)
    merged = [
        (same[dim], [same[factor] for factor in factors])
        for part in problem.parts
        for dim, factors in part.merged
        if dim in same and all(factor in same for factor in factors)
    ]
    sizes: dict[str, int] = {}
    for _ in range(MOST_ROUNDS):
        sizes = {dim: -(-size // parts[dim]) * parts[dim] for dim, size in given.items()}
        before = dict(parts)
        for dim, (major, *minor) in merged:
            rest = math.prod(sizes[factor] for factor in minor)
            parts[major] = math.lcm(parts[major], parts[dim] // math.gcd(parts[dim], rest))
            sizes[major] = -(-given[major] // parts[major]) * parts[major]
            sizes[dim] = sizes[major] * rest
        if parts == before:
            break
    return sizes
