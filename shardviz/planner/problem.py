"""The problem: a mesh, einsums and how every array is split; read from an einsum, or from a product in the
scaling book's notation, with specs, sizes and a dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.notation import (
    Product,
    SpecPart,
    parse_chain,
    parse_mesh,
    parse_product,
    parse_sizes,
    parse_specs,
    write_spec,
)
from shardviz.notation.einsum import Einsum, dims_text, has_words
from shardviz.notation.mesh import mesh_in_text
from shardviz.notation.named_specs import is_named, parse_named_specs
from shardviz.notation.program import is_program, split_layers
from shardviz.notation.spec_string import list_end
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, canonical_dtype

if TYPE_CHECKING:
    from shardviz.planner.training.options import Training

DEFAULT_SIZES = (1024, 2048, 8192)
"""The sizes of the first three dimensions; others have `OTHER_SIZE`."""
OTHER_SIZE = 128
Names = tuple[tuple[str, ...], str]
"""Names of one einsum's operands and of its result."""
_BETWEEN = re.compile(r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)|->|[,;]|$")
"""The end of a spec; or parentheses, whose commas do not end one."""


Objective = Literal["time", "bytes"]
"""What a plan makes small first: the estimated seconds of its steps in sequence, or the bytes that a device
sends."""
Phase = Literal["forward", "recomputed", "backward", "optimizer"]
"""The part of a train step that a statement belongs to."""


@dataclass(frozen=True)
class Statement:
    """One line of a program: a named array made from others by an einsum, or by another function.

    `einsum` has the dimensions of the operands and of the result; the function (`functions.FUNCTIONS`) is
    applied at every point of all dimensions, and summed over those that the result lacks. A dimension in
    `merged` stands for several others, the major first, and is split as they are; those in `whole` cannot be
    split. An operand that an earlier statement made has that result's name, and its spec is a constraint on
    it, as `jax.lax.with_sharding_constraint`, or None. `result.spec` is None where the compiler may choose.
    A statement may have other names for an array's dimensions than the one that made it: the order counts.
    `number` is what the function takes beside arrays: how many `top_k` keeps, by what `scale` multiplies.
    `source` is the name of the forward result whose statement this one differentiates or computes again, or
    of the array whose gradients it adds up or updates; "" in a forward pass.
    """

    einsum: Einsum
    operands: tuple[ShardedArray, ...]
    result: ShardedArray
    function: str = "multiply"
    merged: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    phase: Phase = "forward"
    number: float | None = None
    source: str = ""

    @property
    def summed(self) -> tuple[str, ...]:
        """The dimensions that are summed over: those that the result lacks, also merged or taken apart."""
        has = set(self.result.dims)
        for dim, factors in self.merged:
            if dim in has or has.issuperset(factors):
                has.update((dim, *factors))
        return tuple(dim for dim in self.einsum.dims if dim not in has)


class PaddedDim(NamedTuple):
    """A dimension of `size` elements that is padded to more, so that its axes divide it (`padding`)."""

    dim: str
    size: int
    padded: int


@dataclass(frozen=True)
class Problem:
    """A question to the planner and the compilers. Built from text by `problem_from_text`.

    `parts` are in an order in which they can run. `returned` are the names of results that the program
    returns beside the last. `layers` is how often the whole program runs, one after the other. `padding` are
    the dimensions whose sizes in the arrays are larger than asked. `objective` is what its plan makes small.

    A train step (`training.with_backward`) says so in `training`. Its `gradients` are pairs of names: of each
    result of the forward statements and the argument that is its gradient, then of each argument and its
    gradient, which is returned, or used by the optimizer. The same gradients are `jax.grad` by these
    arguments of the sum of the forward results, each multiplied by the argument that is its gradient.
    `updates` are pairs of arguments and what the optimizer makes of them, in their place.
    """

    mesh: Mesh
    parts: tuple[Statement, ...]
    axis_types: Literal["auto", "explicit"] = "auto"
    returned: tuple[str, ...] = ()
    layers: int = 1
    training: Training | None = None
    gradients: tuple[tuple[str, str], ...] = ()
    padding: tuple[PaddedDim, ...] = ()
    objective: Objective = "time"
    updates: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> tuple[ShardedArray, ...]:
        """The arrays that the program takes, in the order in which it uses them first."""
        found: dict[str, ShardedArray] = {}
        made: set[str] = set()
        for part in self.parts:
            for operand in part.operands:
                if operand.name not in made:
                    found.setdefault(operand.name, operand)
            made.add(part.result.name)
        return tuple(found.values())

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
    def results(self) -> tuple[str, ...]:
        """The names of all results that the program returns."""
        return tuple(dict.fromkeys((*self.returned, self.result.name)))

    @property
    def is_tree(self) -> bool:
        """Every array is used once at most, and only the last result is returned."""
        used = [operand.name for part in self.parts for operand in part.operands]
        return self.results == (self.result.name,) and len({*used, self.result.name}) == len(used) + 1

    @property
    def result(self) -> ShardedArray:
        """The last part's result."""
        return self.parts[-1].result

    @property
    def carried(self) -> ShardedArray | None:
        """Where the program runs several times, the argument whose place its result takes in the next run:
        the first of its dimensions and shape."""
        result = self.result
        alike = (each for each in self.arguments if (each.dims, each.shape) == (result.dims, result.shape))
        return next(alike, None) if self.layers > 1 and self.training is None else None

    @property
    def wanted_spec(self) -> PartitionSpec | None:
        """The spec in which the result is left: its own, or that of the array whose place it takes; None
        where the compiler may choose."""
        if self.result.spec is None and self.carried is not None:
            return self.carried.spec
        return self.result.spec

    @property
    def aliases(self) -> tuple[frozenset[str], ...]:
        """Names of one dimension: those that an array has in the same place, as the statements call it."""
        named: dict[tuple[str, int], set[str]] = {}
        for array in self.arrays:
            for place, dim in enumerate(array.dims):
                named.setdefault((array.name, place), set()).add(dim)
        groups: list[set[str]] = []
        for names in named.values():
            joined = [group for group in groups if group & names]
            groups = [group for group in groups if not group & names]
            groups.append(names.union(*joined))
        return tuple(frozenset(group) for group in groups if len(group) > 1)

    @property
    def arrays(self) -> tuple[ShardedArray, ...]:
        """Operands and result of every part; what one part hands to the next stands twice."""
        return tuple(array for part in self.parts for array in (*part.operands, part.result))

    @property
    def text(self) -> str:
        """The einsum, or a chain of them with semicolons; of a program its statements, those of its forward
        pass."""
        if self.training is not None:
            return replace(self, parts=self.forward, training=None).text
        from shardviz.planner.statement_text import statement_text

        texts = (str(part.einsum) if self.is_chain else statement_text(part) for part in self.parts)
        return "; ".join(texts) + (f" × {self.layers}" if self.layers > 1 else "")


def problem_from_text(
    text: str,
    *,
    mesh: Mesh,
    specs: str | None = None,
    sizes: str = "",
    dtype: str = "bf16",
    axis_types: Literal["auto", "explicit"] = "auto",
    ranked: bool = False,
) -> Problem:
    """The problem that a user wrote.

    `text` is an einsum (``bd,df->bf``), a chain of them with semicolons, or a product in the scaling book's
    notation, which brings its own specs. `specs` are spec strings (`parse_specs`); without any, the operands'
    specs are left open (None) for `rank`, as are those that are ``?`` where the problem is to be `ranked`.
    `sizes` are elements of dimensions; the others have the defaults.

    Raises `QuestionError` (`NotationError` where a place in the text can be shown) when something cannot be
    read, or does not fit: ranks, counts, sizes, axes. A size that its axes do not divide is padded.
    """
    from shardviz.planner.padding import padded

    text, layers = split_layers(text)
    if is_program(text):
        from shardviz.planner.programs import problem_from_program

        found = problem_from_program(text, mesh, specs, sizes, dtype, axis_types, ranked)
        return replace(found, layers=layers)
    given: tuple[SpecPart, ...] | None
    if "[" in text:
        if specs is not None:
            raise QuestionError(
                f"{quote(text)} says how its arrays are split, and so do the specs {quote(specs)}",
                "give the specs once: in the brackets, or beside an einsum such as bd,df->bf",
            )
        einsums, names, given = parts_of_product(parse_product(text, mesh.shape))
    else:
        by_name = specs is not None and is_named(specs)
        if specs is not None:
            _check_mesh(specs, mesh)
        given = None if specs is None or by_name else parse_specs(specs, mesh.shape)
        einsums = parse_chain(text, ellipsis_rank(text, given, parse_sizes(sizes)))
        names = usual_names(einsums)
        if by_name and specs is not None:
            given = _named_parts(einsums, names, specs, mesh)
        elif specs is not None:
            ranks = [[len(dims) for dims in (*einsum.operands, einsum.result)] for einsum in einsums]
            given = parse_specs(specs, mesh.shape, ranks)
    if given is None:
        given = tuple(SpecPart((None,) * len(einsum.operands)) for einsum in einsums)
    else:
        _check_fit(einsums, names, given, specs or "", ranked)
    size, dtype = dimension_sizes(einsums, sizes), canonical_dtype(dtype)
    parts = []
    for einsum, named, part in zip(einsums, names, given, strict=True):
        arrays = tuple(
            ShardedArray(name, dims, tuple(size[dim] for dim in dims), dtype, spec)
            for name, dims, spec in _rows(einsum, named, part)
        )
        parts.append(Statement(einsum, arrays[:-1], arrays[-1]))
    return padded(Problem(mesh, tuple(parts), axis_types, layers=layers))


def _named_parts(
    einsums: Sequence[Einsum], names: Sequence[Names], specs: str, mesh: Mesh
) -> tuple[SpecPart, ...]:
    """The specs of a chain whose arrays are named; operands that are not are whole, results are open."""
    dims = {
        name: dims
        for einsum, (operands, result) in zip(einsums, names, strict=True)
        for name, dims in zip((*operands, result), (*einsum.operands, einsum.result), strict=True)
    }
    found = parse_named_specs(specs, mesh.shape, {name: len(each) for name, each in dims.items()})
    made = {result for _, result in names}
    given = {name: None if name in made else PartitionSpec(((),) * len(each)) for name, each in dims.items()}
    given |= found
    return tuple(
        # What one part hands to the next is constrained where it is made.
        SpecPart(tuple(None if name in made else given[name] for name in operands), given[result])
        for operands, result in names
    )


def _check_mesh(specs: str, mesh: Mesh) -> None:
    """Raise `QuestionError` for specs that name another mesh, as a NamedSharding can."""
    own = mesh_in_text(specs)
    try:
        said = mesh if own is None else parse_mesh(own)
    except NotationError:
        return  # a mesh of variables
    if said.shape != mesh.shape:
        raise QuestionError(f"the specs are on the mesh {said}, not {mesh}", f"give the mesh {said}")


def _rows(
    einsum: Einsum, names: Names, part: SpecPart
) -> Iterator[tuple[str, tuple[str, ...], PartitionSpec | None]]:
    """Name, dimensions and spec of each operand, and of the result last."""
    operands, result = names
    return zip(
        (*operands, result),
        (*einsum.operands, einsum.result),
        (*part.operands, part.result),
        strict=True,
    )


def parts_of_product(product: Product) -> tuple[tuple[Einsum, ...], list[Names], tuple[SpecPart, ...]]:
    """The einsums of a product, the names of their arrays, none of them twice, and their specs."""
    taken: set[str] = set()
    operands = [_unused(array.name, taken) for array in product.operands]
    result = _unused(product.result.name if product.result else "Out", taken)
    einsums = product.chain
    names: list[Names] = []
    specs_of: list[SpecPart] = []
    previous = operands[0]
    first: PartitionSpec | None = product.operands[0].spec
    for index, einsum in enumerate(einsums):
        last = index == len(einsums) - 1
        made = result if last else _unused(f"H{index + 1}", taken)
        wanted = product.result.spec if last and product.result else None
        joined = slice(index + 1, index + len(einsum.operands))
        names.append(((previous, *operands[joined]), made))
        specs_of.append(SpecPart((first, *(array.spec for array in product.operands[joined])), wanted))
        previous, first = made, None
    return einsums, names, tuple(specs_of)


def usual_names(einsums: Sequence[Einsum]) -> list[Names]:
    """A and W, or A, W1, W2, … in a chain, whose intermediates are H1, H2, …; the last result is Out."""
    names: list[Names] = []
    previous = "A"
    weights: Iterator[str] = iter(["W"]) if len(einsums) == 1 else (f"W{number}" for number in count(1))
    for index, einsum in enumerate(einsums):
        result = "Out" if index == len(einsums) - 1 else f"H{index + 1}"
        names.append(((previous, *(next(weights) for _ in einsum.operands[1:])), result))
        previous = result
    return names


def _unused(name: str, taken: set[str]) -> str:
    found = next(
        candidate
        for number in count(1)
        if (candidate := name if number == 1 else f"{name}_{number}") not in taken
    )
    taken.add(found)
    return found


def ellipsis_rank(text: str, specs: tuple[SpecPart, ...] | None, sizes: dict[str, int]) -> int:
    """The number of dimensions in ``...``: as many as have sizes, or as a spec has entries left."""
    if "..." not in text:
        return 0
    sized = sum(name.startswith("...") for name in sizes)
    if sized or specs is None:
        return sized
    for part_text, part in zip(text.split(";"), specs, strict=False):
        left, _, right = part_text.partition("->")
        for operand, spec in zip((*left.split(","), right), (*part.operands, part.result), strict=False):
            if "..." in operand and spec is not None:
                named = operand.replace("...", " ")
                count = len(named.split()) if has_words(text) else len("".join(named.split()))
                return max(0, spec.rank - count)
    return 0


def _check_fit(
    einsums: Sequence[Einsum],
    names: Sequence[Names],
    specs: Sequence[SpecPart],
    text: str,
    ranked: bool,
) -> None:
    """Raise `NotationError` where the specs do not fit the einsums in number or rank, or by a stray ``?``."""
    if len(einsums) != len(specs):
        raise _spec_error(
            text,
            min(len(einsums), len(specs)),
            0,
            f"the specs have {plural(len(specs), 'part')} but the chain has {len(einsums)},",
            "write one part for each einsum, with ; between them",
        )
    for index, (einsum, named, part) in enumerate(zip(einsums, names, specs, strict=True)):
        if len(einsum.operands) != len(part.operands):
            raise _spec_error(
                text,
                index,
                min(len(einsum.operands), len(part.operands)),
                f"{plural(len(part.operands), 'spec')} for the {plural(len(einsum.operands), 'operand')} of "
                f"{quote(str(einsum))}",
                "write one spec for each operand, with commas between them",
            )
        for place, (name, dims, spec) in enumerate(_rows(einsum, named, part)):
            if not ranked and spec is None and place < len(part.operands) and (place or not index):
                raise _spec_error(
                    text,
                    index,
                    place,
                    f"the spec of {name} is left open, but a program is given its operands,",
                    "'?' may stand for results and intermediates; _ leaves a dimension whole",
                )
            if not ranked and spec is not None and spec.open_dims:
                raise _spec_error(
                    text,
                    index,
                    place,
                    f"dimension {dims[spec.open_dims[0]]} of {name} is left open,",
                    "a ranking decides it: `shardviz explain` with these specs; _ leaves a dimension whole",
                )
            if spec is not None and spec.rank != len(dims):
                raise _spec_error(
                    text,
                    index,
                    place,
                    f"the spec {quote(write_spec(spec))} has {plural(spec.rank, 'entry', 'entries')}, "
                    f"but {name} has the {plural(len(dims), 'dimension')} {quote(dims_text(dims))},",
                    "write one entry for each dimension; _ leaves a dimension whole",
                )


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


def _spec_error(specs: str, part: int, array: int, problem: str, hint: str) -> NotationError:
    """A `NotationError` that points at the spec of one array, counted within its part, the result last."""
    parts: list[list[tuple[int, int]]] = [[]]
    start = 0
    for mark in _BETWEEN.finditer(_without_lists(specs)):
        if mark.group().startswith("("):
            continue
        piece = specs[start : mark.start()]
        begin = start + len(piece) - len(piece.lstrip())
        parts[-1].append((begin, max(begin + 1, begin + len(piece.strip()))))
        if mark.group() == ";":
            parts.append([])
        start = mark.end()
    bounds = parts[part] if part < len(parts) else []
    begin, end = bounds[array] if array < len(bounds) else (len(specs), len(specs) + 1)
    return NotationError(problem, specs, begin, end, hint)


def _without_lists(text: str) -> str:
    """The text with blanks for the brackets around the specs of all operands."""
    for part in re.finditer(r"(?:\A|;)\s*", text):
        end = list_end(text, part.end())
        if end is not None:
            text = f"{text[: part.end()]} {text[part.end() + 1 : end]} {text[end + 1 :]}"
    return text
