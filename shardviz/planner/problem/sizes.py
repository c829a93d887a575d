"""The elements of every dimension: those given, those that follow from others, and the usual ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz.errors import NotationError, quote
from shardviz.notation.einsum import Einsum
from shardviz.notation.numbers import parse_sizes

if TYPE_CHECKING:  # an einsum is read without programs
    from shardviz.planner.problem.lowering import ArrayUse, LoweredProgram, LoweredStatement, Renamed

DEFAULT_SIZES = (1024, 2048, 8192)
"""The sizes of the first three dimensions; others have `OTHER_SIZE`."""
OTHER_SIZE = 128


def dimension_sizes(einsums: Sequence[Einsum], text: str) -> dict[str, int]:
    """Elements of every dimension: those in the text, and the defaults of the others.

    Raises `NotationError` for text of another form, and for a dimension that no array has.
    """
    dims = list(dict.fromkeys(dim for einsum in einsums for dim in einsum.dims))
    given = parse_sizes(text)
    for name in given:
        if name not in dims:
            raise NotationError(
                f"no array has the dimension {quote(name)} given a size",
                text,
                max(0, text.find(name.rstrip("0123456789") if name.startswith("...") else name)),
                hint=f"the dimensions are {', '.join(dims) or 'none'}",
            )
    return usual_sizes(dims) | given


def usual_sizes(dims: Sequence[str]) -> dict[str, int]:
    """The sizes that dimensions have in this order where none are given."""
    return dict(zip(dims, (*DEFAULT_SIZES, *(OTHER_SIZE,) * len(dims)), strict=False))


def program_sizes(lowered: LoweredProgram, given: Mapping[str, int], text: str) -> dict[str, int]:
    """Elements of every dimension: those given, those that others say, and the defaults.

    A dimension that stands for others has as many elements as they have together; the places of an expert
    are enough for all tokens where each expert is chosen as often. Raises `NotationError` where two sizes of
    one dimension differ, and for a size of a dimension that no array has.
    """
    dims = lowered.dims
    for name in given:
        if name not in dims:
            raise NotationError(
                f"no array has the dimension {quote(name)} given a size",
                text,
                max(0, text.find(name)),
                hint=f"the dimensions are {', '.join(dims)}",
            )
    return _Sizes(lowered, dict(given)).found()


def _places(slots: LoweredStatement) -> str:
    """The dimension of an expert's places."""
    return next(dim for dim in slots.result.dims if dim not in slots.operands[0].dims)


class _Sizes:
    def __init__(self, lowered: LoweredProgram, size: dict[str, int]) -> None:
        self._lowered, self._size = lowered, size

    def found(self) -> dict[str, int]:
        derived = {whole for each in self._lowered.statements for whole, _ in each.merged}
        derived.update(_places(each) for each in self._lowered.statements if each.function == "slots")
        usual = usual_sizes([dim for dim in self._lowered.dims if dim not in derived])
        self._spread()
        # Those that follow from others come last, for the places of an array that does not say its experts.
        for dim in sorted(self._lowered.dims, key=derived.__contains__):
            if dim not in self._size:
                self._size[dim] = usual.get(dim, OTHER_SIZE)
                self._spread()
        return self._size

    def _spread(self) -> None:
        """Take sizes from dimensions that say them, until nothing is new."""
        before = -1
        while before != len(self._size):
            before = len(self._size)
            for each in self._lowered.renamed:
                for own, other in zip(each.before.dims, each.use.dims, strict=True):
                    self._equal(own, other, each)
            for statement in self._lowered.statements:
                for whole, factors in statement.merged:
                    self._product(whole, factors, statement.result)
                if statement.function == "slots":
                    self._capacity(statement)
                if statement.function == "causal_attention":
                    self._same_length(statement)

    def _equal(self, own: str, other: str, renamed: Renamed) -> None:
        size, use = self._size, renamed.use
        if own in size and other in size and size[own] != size[other]:
            self._fail(
                f"{renamed.statement} takes {use}, but {other}={size[other]} is {own}={size[own]} in "
                f"{renamed.before},",
                use,
                f"give {other} the size {size[own]}, or leave it out",
            )
        for one, of in ((own, other), (other, own)):
            if one not in size and of in size:
                size[one] = size[of]

    def _same_length(self, attention: LoweredStatement) -> None:
        """Queries and keys of causal attention are one sequence."""
        size, (queries, keys, _), along = self._size, attention.operands, attention.whole[0]
        own = queries.dims[keys.dims.index(along)]
        if own in size and along in size and size[own] != size[along]:
            self._fail(
                f"{attention.result.name} attends along {own}={size[own]} of {queries} and "
                f"{along}={size[along]} of {keys}, which are one sequence in causal attention,",
                queries,
                "only the sequence has another name in the keys: Q[b, t, n, h], K[b, s, n, h], with grouped "
                "heads Q[b, t, n, g, h]",
            )
        for one, of in ((own, along), (along, own)):
            if one not in size and of in size:
                size[one] = size[of]

    def _product(self, whole: str, factors: tuple[str, ...], use: ArrayUse) -> None:
        size = self._size
        unknown = [dim for dim in factors if dim not in size]
        known = math.prod(size[dim] for dim in factors if dim in size)
        if not unknown and size.setdefault(whole, known) != known:
            written = " · ".join(f"{dim}={size[dim]}" for dim in factors)
            self._fail(
                f"{whole}={size[whole]} of {use} is not {written} = {known},",
                use,
                f"give {whole} the size {known}",
            )
        if len(unknown) == 1 and whole in size:
            if not known or size[whole] % known:
                self._fail(
                    f"{whole}={size[whole]} of {use} is not a multiple of {known},", use, "give other sizes"
                )
            size[unknown[0]] = size[whole] // known

    def _capacity(self, slots: LoweredStatement) -> None:
        """As many places as each expert needs where all are chosen as often."""
        made = {each.result.name: each for each in self._lowered.statements}
        gates = made.get(slots.operands[0].name)
        if gates is None or gates.function != "top_k" or gates.number is None:
            return
        (along,), (experts,), places = slots.whole, gates.whole, _places(slots)
        if places not in self._size and along in self._size and self._size.get(experts):
            self._size[places] = max(1, -(-self._size[along] * int(gates.number) // self._size[experts]))

    def _fail(self, problem: str, use: ArrayUse, hint: str) -> None:
        raise NotationError(problem, self._lowered.program.text, use.start, use.stop, hint)
