"""The problem: a mesh, and the statements that run on it, and their text: ``H[b,f] = X[b,d] * W1[d,f]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count, pairwise
from typing import Literal, NamedTuple

from shardviz.errors import joined
from shardviz.notation.einsum import Einsum
from shardviz.notation.program import Layers
from shardviz.planner.problem.training import Training
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.array import BITS

Phase = Literal["forward", "recomputed", "backward", "optimizer"]
"""The part of a train step that a statement belongs to."""


@dataclass(frozen=True)
class Statement:
    """One line of a program: a named array made from others by an einsum, or by another function.

    The function (`functions.FUNCTIONS`) is applied at every point of all dimensions of `einsum`, and summed
    over those that the result lacks. A dimension in `merged` stands for several others, the major first, and
    is split as they are; those in `whole` cannot be split. An operand that an earlier statement made has that
    result's name, perhaps other names for its dimensions, and a spec that is a constraint on it
    (`jax.lax.with_sharding_constraint`), or None. `result.spec` is None where the compiler may choose.
    `number` is how many `top_k` keeps, by what `scale` multiplies; `limit` the cap of the scores of
    attention, or how many times as often as the mean the fullest expert is chosen, 0 without; `along` the
    dimension that a function goes along, in `whole` too if each device needs all of it. `source` is the
    forward result whose statement this one differentiates or computes again, or the array that it updates,
    else ""."""

    einsum: Einsum
    operands: tuple[ShardedArray, ...]
    result: ShardedArray
    function: str = "multiply"
    merged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    phase: Phase = "forward"
    number: float | None = None
    source: str = ""
    along: str = ""
    limit: float = 0.0

    @property
    def arrays(self) -> tuple[ShardedArray, ...]:
        """The operands, and the result last."""
        return (*self.operands, self.result)

    @property
    def sizes(self) -> dict[str, int]:
        return sizes_of(self.arrays)

    @property
    def summed(self) -> tuple[str, ...]:
        """The dimensions that are summed over: those that the result lacks, also merged or taken apart."""
        has = set(self.result.dims)
        for dim, factors in self.merged:
            if dim in has or has.issuperset(factors):
                has.update((dim, *factors))
        return tuple(dim for dim in self.einsum.dims if dim not in has)


def sizes_of(arrays: Iterable[ShardedArray]) -> dict[str, int]:
    return {dim: size for array in arrays for dim, size in zip(array.dims, array.shape, strict=True)}


def is_floating(array: ShardedArray) -> bool:
    """Return whether the array can have a gradient: ``bf16``, ``f8e4m3fn``."""
    return array.dtype.removeprefix("b").startswith("f")


WRITTEN = {"fill": "where"}
"""The functions that a program writes as others."""
_SIGNS = {"multiply": " * ", "add": " + ", "subtract": " - ", "divide": " / "}


def value_pieces(part: Statement) -> Iterator[str | int]:
    """The value of a statement in pieces of text, with the number of an operand where that stands."""
    numbers = range(len(part.operands))
    function, einsum = part.function, part.einsum
    if len(numbers) == 1 and function in ("multiply", "sum"):
        # An einsum of one array sums what its result lacks; a sum over nothing passes the array on.
        function = "sum" if einsum.contracted else "multiply"
    is_product = function == "multiply" and len(numbers) > 2
    sign = ", " if is_product else _SIGNS.get(function, ", ")
    every = [piece for number in numbers for piece in (sign, number)][1:]
    if is_product:
        yield from (*every, f" -> {''.join(einsum.result)}")
    elif function in _SIGNS:
        yield from every
    elif function == "negative":
        yield from ("-", 0)
    elif function == "scale":
        yield from (f"{part.number:.9g} * ", 0)
    else:
        beside = (f", {word}" for word in _words_beside(part, function))
        yield from (f"{WRITTEN.get(function, function)}(", *every, *beside, ")")


def places_dim(einsum: Einsum) -> str:
    """The dimension of places of tokens with their experts: no other array of the statement has it."""
    return next(dim for dim in einsum.dims if [*chain(*einsum.operands, einsum.result)].count(dim) == 1)


def _words_beside(part: Statement, function: str) -> Iterator[str]:
    if function in ("sum", "mean", "mean_square", "max", "sum_exp", "pick"):
        yield from part.einsum.contracted
    elif function == "reshape":
        for whole, factors in part.merged:
            yield f"{whole} = {' * '.join(factors)}"
    elif part.along:
        yield from part.einsum.contracted if function == "slice" else (part.along,)
        if function == "slice":
            yield from (dim for dim in part.einsum.result if dim not in part.einsum.operands[0])
        elif function in ("slots", "dispatch", "combine"):
            yield places_dim(part.einsum)
    if not function.endswith("_gradient"):
        numbers = (part.number, part.limit or None)
        yield from (f"{number:.9g}" for number in numbers if number is not None)


def statement_text(part: Statement, written: Callable[[ShardedArray], str] | None = None) -> str:
    """A statement with the dimensions of all arrays, which a program's text may have, or with its arrays
    `written` otherwise: by their names alone, ``H = X * W1``."""
    written = written or dimensions
    pieces = (each if isinstance(each, str) else written(part.operands[each]) for each in value_pieces(part))
    return f"{written(part.result)} = {''.join(pieces)}"


def dimensions(array: ShardedArray, sign: str = ",") -> str:
    """An array with its dimensions: ``X[b,d]``."""
    return f"{array.name}[{sign.join(array.dims)}]"


def arguments_of(parts: Iterable[Statement]) -> tuple[ShardedArray, ...]:
    """The arrays that statements take and do not make, in the order in which they use them first."""
    arguments: dict[str, ShardedArray] = {}
    made: set[str] = set()
    for part in parts:
        for operand in part.operands:
            if operand.name not in made:
                arguments.setdefault(operand.name, operand)
        made.add(part.result.name)
    return tuple(arguments.values())


def unused_name(name: str, taken: set[str], first: int = 2) -> str:
    """The name, or the first of ``name_2``, ``name_3``, … that is not `taken`; from here on it is."""
    numbered = (f"{name}_{number}" for number in count(first))
    unused = next(word for word in chain([name], numbered) if word not in taken)
    taken.add(unused)
    return unused


Objective = Literal["given", "time", "bytes"]
"""What a plan minimises first: the estimated seconds of its steps in sequence, with the work divided as the
given arrays are ("given") or in any way ("time"), or the bytes that a device sends."""


class PaddedDim(NamedTuple):
    """A dimension of `size` elements that is padded to more, so that its axes divide it (`padding`)."""

    dim: str
    size: int
    padded: int


UNNAMED = "Out"
"""The result of what is asked in letters, such as ``bd,df->bf``."""


@dataclass(frozen=True)
class Problem:
    """A question to the planner and the compilers. Built from text by `problem_from_text`.

    `parts` are in an order in which they can run. `returned` are the names of results that the program
    returns beside the last. `layers` is how often the whole program runs, one after the other, each time with
    the same `shared` arguments, which training does not change. `padding` are the dimensions whose sizes in
    the arrays are larger than asked. `objective` is what its plan minimises.

    Of a train step (`training.with_backward`) `gradients` are pairs of names: of each forward result and the
    argument that is its gradient, then of each argument and its gradient, which is returned, or used by the
    optimizer; `updates` are pairs of arguments and what the optimizer makes of them, in their place, as of a
    forward pass what the function `update` does."""

    mesh: Mesh
    parts: tuple[Statement, ...]
    axis_types: Literal["auto", "explicit"] = "auto"
    returned: tuple[str, ...] = ()
    layers: int = 1
    shared: tuple[str, ...] = ()
    training: Training | None = None
    gradients: tuple[tuple[str, str], ...] = ()
    padding: tuple[PaddedDim, ...] = ()
    objective: Objective = "given"
    updates: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> tuple[ShardedArray, ...]:
        """The arrays that the program takes, in the order in which it uses them first."""
        return arguments_of(self.parts)

    @property
    def forward_arguments(self) -> tuple[ShardedArray, ...]:
        """Those of the statements that are not there for training."""
        return arguments_of(self.forward)

    @property
    def is_chain(self) -> bool:
        """Each statement is an einsum whose first operand is the result before it, used nowhere else."""
        follows = all(part.operands[0].name == before.result.name for before, part in pairwise(self.parts))
        used = [operand.name for part in self.parts for operand in part.operands]
        plain = all(part.function == "multiply" and not part.merged and not part.whole for part in self.parts)
        return follows and plain and not self.returned and len(set(used)) == len(used)

    @property
    def forward(self) -> tuple[Statement, ...]:
        """The statements that are not there for training."""
        return tuple(part for part in self.parts if part.phase == "forward")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the weights, which training changes unless they are frozen: the arguments of floating
        point, and whole numbers narrower than indices, but the input, which is what has all dimensions of one
        of the indices, such as tokens; without any, the first argument."""
        known = self.forward_arguments
        arguments = [array for array in known if array.dtype != "pred" and array.name not in self.shared]
        weights = [array for array in arguments if is_floating(array) or BITS[array.dtype] < 32]
        indices = [{*array.dims} for array in arguments if array not in weights]
        if not indices:
            return tuple(array.name for array in weights[1:])
        return tuple(array.name for array in weights if not any(dims <= {*array.dims} for dims in indices))

    @property
    def is_reshard(self) -> bool:
        """It is one statement that copies or transposes its operand to a given spec, no more."""
        part, dims = self.parts[0], self.parts[0].einsum.operands[0]
        is_alone = len(self.parts) == len(part.operands) == 1 and part.result.spec is not None
        is_plain = part.function == "multiply" and not part.merged and not part.whole
        is_same = sorted(dims) == sorted({*part.einsum.result})
        return is_alone and is_plain and is_same and part.operands[0].dtype == part.result.dtype

    @property
    def results(self) -> tuple[str, ...]:
        """The names of all results that the program returns."""
        return tuple(dict.fromkeys((*self.returned, self.result.name)))

    @property
    def returned_arrays(self) -> tuple[ShardedArray, ...]:
        """The arrays that the program returns, the last forward result at the end."""
        made = {part.result.name: part.result for part in self.parts}
        last = self.forward[-1].result
        return (*(made[name] for name in self.results if name != last.name), last)

    @property
    def is_tree(self) -> bool:
        """Every array is used once at most, and only the last result is returned."""
        used = [operand.name for part in self.parts for operand in part.operands]
        return self.results == (self.result.name,) and len({*used, self.result.name}) == len(used) + 1

    @property
    def result(self) -> ShardedArray:
        return self.parts[-1].result

    @property
    def passed_on(self) -> ShardedArray | None:
        """Where the program runs several times, the argument whose place its result takes in the next run:
        the first of its dimensions and shape, or else the first of all if that has its shape. Of all other
        arguments each run has its own."""
        if self.layers == 1:
            return None
        result = self.forward[-1].result
        arguments = [array for array in self.forward_arguments if array.name not in self.shared]
        alike = [one for one in arguments if (one.dims, one.shape) == (result.dims, result.shape)]
        return next((array for array in (*alike, *arguments[:1]) if array.shape == result.shape), None)

    @property
    def own_arguments(self) -> tuple[str, ...]:
        """The names of the forward arguments of which each of several runs has its own: weights, caches."""
        passed = self.passed_on
        others = {*self.shared, passed and passed.name}
        names = [argument.name for argument in self.forward_arguments] if self.layers > 1 else []
        return tuple(name for name in names if name not in others)

    @property
    def wanted_spec(self) -> PartitionSpec | None:
        """The spec in which the result is left: its own, or of a stack of forward passes that of the argument
        that is `passed_on`, where the result has its dimensions; None where the compiler may choose."""
        passed = self.passed_on if self.training is None and self.result.spec is None else None
        return passed.spec if passed and passed.dims == self.result.dims else self.result.spec

    @property
    def roots(self) -> dict[str, str]:
        """The first name of every dimension: statements may have other names for an array's dimensions than
        the one that made it, and what an array has in one place is one dimension."""
        first: dict[str, str] = {}
        places: dict[tuple[str, int], str] = {}
        for array in self.arrays:
            for index, dim in enumerate(array.dims):
                first.setdefault(dim, dim)
                both = {first[dim], first[places.setdefault((array.name, index), dim)]}
                if len(both) > 1:
                    root = next(name for name in first if name in both)
                    first |= {name: root for name, known in first.items() if known in both}
        return first

    def with_arrays(self, changed: Callable[[ShardedArray], ShardedArray]) -> Problem:
        parts = (
            replace(part, operands=tuple(map(changed, part.operands)), result=changed(part.result))
            for part in self.parts
        )
        return replace(self, parts=tuple(parts))

    def resized(self, sizes: Mapping[str, int]) -> Problem:
        return self.with_arrays(lambda array: replace(array, shape=tuple(sizes[dim] for dim in array.dims)))

    def with_results(self, specs: Mapping[str, PartitionSpec | None]) -> Problem:
        """The problem with some results split so, or left to the compiler (None)."""
        made = (part.result for part in self.parts)
        results = (one.with_spec(specs[one.name]) if one.name in specs else one for one in made)
        parts = (replace(part, result=one) for part, one in zip(self.parts, results, strict=True))
        return replace(self, parts=tuple(parts))

    @property
    def arrays(self) -> tuple[ShardedArray, ...]:
        """Operands and result of every part; what one part hands to the next stands twice."""
        return tuple(array for part in self.parts for array in part.arrays)

    @property
    def sizes(self) -> dict[str, int]:
        return sizes_of(self.arrays)

    @property
    def text(self) -> str:
        """The einsum, or a chain of them with semicolons; of a program its forward statements."""
        if self.training is not None:
            return replace(self, parts=self.forward, training=None).text
        texts = (str(part.einsum) if self.is_chain else statement_text(part) for part in self.parts)
        return f"{'; '.join(texts)}{Layers('', self.layers, self.shared)}"


def dropped_words(problem: Problem) -> Iterator[str]:
    """A sentence for each statement that drops choices of an expert: of all choices at least those for
    which the fullest has no room, at most as large a share as of its own."""
    made = {part.result.name: part for part in problem.forward}
    for part in problem.forward:
        gates = made.get(part.operands[-1].name)
        if part.limit and gates is not None and gates.function == "top_k":
            sizes, experts = gates.sizes | part.sizes, gates.sizes[gates.along]
            chosen = (gates.number or 1) * sizes[part.along]
            room = sizes[places_dim(part.einsum)] * experts / chosen
            least, most = (part.limit - room) / experts, 1 - room / part.limit
            if most > 0:
                own, every = f"{100 * most:.3g} %", f"{100 * least:.3g} to {100 * most:.3g} % of all"
                yield f"{own} of the choices of the fullest expert are dropped, {every}"


def notices(problem: Problem) -> tuple[str, ...]:
    """One sentence for each part of a program that its writer may not have meant: it runs, but perhaps for a
    mistyped letter; and for choices of experts that are dropped. None for an einsum or a chain of them."""
    if problem.is_chain:
        return ()
    sentences = [*dropped_words(problem)]
    *before, last = problem.forward
    used = {operand.name for part in problem.forward for operand in part.operands}
    if unused := [part.result.name for part in before if part.result.name not in used]:
        verb, returned = ("is", "it is") if len(unused) == 1 else ("are", "they are")
        beside = f"{returned} returned beside {last.result.name}"
        sentences.append(f"{joined(unused)} {verb} used by no statement: {beside}")
    # Arrays with other letters in a second place, where no statement needs two letters for one size: the
    # scores of attention have the sequence twice, so that the keys need another name for theirs.
    together = [
        {*(part.result if part.function == "multiply" else part.einsum).dims} for part in problem.forward
    ]
    known: dict[str, ShardedArray] = {}
    for part in problem.forward:
        for array in part.operands:
            own = known.setdefault(array.name, array)
            rows = zip(own.dims, array.dims, array.shape, strict=True)
            changed = [(old, new, size) for old, new, size in rows if old != new]
            if changed and not any({old, new} <= dims for old, new, _ in changed for dims in together):
                same = " and ".join(f"{new} is {old}, {size:,}" for old, new, size in changed)
                both = f"{dimensions(own, ', ')} is also taken as {dimensions(array, ', ')}"
                sentences.append(f"{both}: {same}")
        known.setdefault(part.result.name, part.result)
    return tuple(dict.fromkeys(sentences))
