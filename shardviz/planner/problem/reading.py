"""A problem from what a user wrote: an einsum, a chain of them, a product in the scaling book's notation or a
program, with specs, sizes and a dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Literal, NoReturn

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
from shardviz.notation.program import is_program, split_layers
from shardviz.notation.spec_string import is_named, list_end, parse_named_specs
from shardviz.planner.problem.problem import UNNAMED, Problem, Statement, unused_name
from shardviz.planner.problem.sizes import dimension_sizes, padded, program_sizes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, canonical_dtype

Names = tuple[tuple[str, ...], str]
"""Names of one einsum's operands and of its result."""
_BETWEEN = re.compile(r"\([^()]*+(?:\([^()]*+\)[^()]*+)*+\)|->|[,;]|$")
"""The end of a spec; or parentheses, whose commas do not end one."""


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

    `text` is an einsum (``bd,df->bf``), a chain of them with semicolons, a program, or a product in the
    scaling book's notation, which may bring its own specs. `specs` are spec strings (`parse_specs`), or specs
    by name; without any, the operands' specs are left open (None) for `rank`, as are those that are ``?``
    where the problem is to be `ranked`.
    `sizes` are elements of dimensions; the others have the defaults.

    Raises `QuestionError` (`NotationError` where a place in the text can be shown) when something cannot be
    read, or does not fit: ranks, counts, sizes, axes. A size that its axes do not divide is padded.
    """
    text, layers = split_layers(text)
    if is_program(text):
        from shardviz.planner.problem.programs import named_specs, program_problem, read_program

        lowered = read_program(text, parse_sizes(sizes), mesh.shape)
        size = program_sizes(lowered, parse_sizes(sizes), sizes)
        by_name = None if specs is None else named_specs(lowered, mesh, specs, ranked)
        problem = program_problem(lowered, mesh, by_name, size, canonical_dtype(dtype), axis_types, ranked)
        return replace(problem, layers=layers)
    if specs is not None:
        _check_mesh(specs, mesh)
    given: tuple[SpecPart, ...] | None = None
    if "[" in text:
        product = parse_product(text, mesh.shape)
        einsums, names, given = parts_of_product(product)
        written = [array.spec for array in (*product.operands, product.result) if array]
        if specs is not None and any(spec.axes or spec.unreduced for spec in written):
            raise QuestionError(
                f"{quote(text)} says how its arrays are split, and so do the specs {quote(specs)}",
                "give the specs once: in the brackets, or beside arrays without subscripts, such as A[b,d]",
            )
    else:
        in_order = None if specs is None or is_named(specs) else parse_specs(specs, mesh.shape)
        einsums = parse_chain(text, ellipsis_rank(text, in_order, parse_sizes(sizes)))
        names = usual_names(einsums)
    if specs is not None and is_named(specs):
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
    nothing = (SpecPart((None,) * len(operands)) for operands, _ in names)
    rows = (row for each in zip(einsums, names, nothing, strict=True) for row in _rows(*each))
    ranks = {name: len(dims) for name, dims, _ in rows}
    made = {result for _, result in names}
    given: dict[str, PartitionSpec | None] = {
        name: None if name in made else PartitionSpec(((),) * rank) for name, rank in ranks.items()
    }
    given |= parse_named_specs(specs, mesh.shape, ranks)
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
        (*operands, result), (*einsum.operands, einsum.result), (*part.operands, part.result), strict=True
    )


def parts_of_product(product: Product) -> tuple[tuple[Einsum, ...], list[Names], tuple[SpecPart, ...]]:
    """The einsums of a product, the names of their arrays, none of them twice, and their specs."""
    taken: set[str] = set()
    operands = [unused_name(array.name, taken) for array in product.operands]
    result = unused_name(product.result.name if product.result else UNNAMED, taken)
    names: list[Names] = []
    specs: list[SpecPart] = []
    before, first = operands[0], product.operands[0].spec
    for index, einsum in enumerate(product.chain):
        last = index == len(product.chain) - 1
        made = result if last else unused_name(f"H{index + 1}", taken)
        joined = slice(index + 1, index + len(einsum.operands))
        names.append(((before, *operands[joined]), made))
        wanted = product.result.spec if last and product.result else None
        own = (None if index else first, *(array.spec for array in product.operands[joined]))
        specs.append(SpecPart(own, wanted))
        before = made
    return product.chain, names, tuple(specs)


def usual_names(einsums: Sequence[Einsum]) -> list[Names]:
    """A and W, or A, W1, W2, … in a chain, whose intermediates are H1, H2, …; the last result is Out."""
    names: list[Names] = []
    before = "A"
    weights = iter(["W"]) if len(einsums) == 1 else (f"W{number}" for number in count(1))
    for index, einsum in enumerate(einsums, 1):
        result = UNNAMED if index == len(einsums) else f"H{index}"
        names.append(((before, *(next(weights) for _ in einsum.operands[1:])), result))
        before = result
    return names


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
    einsums: Sequence[Einsum], names: Sequence[Names], specs: Sequence[SpecPart], text: str, ranked: bool
) -> None:
    """Raise `NotationError` where the specs do not fit the einsums in number or rank, or by a stray ``?``."""

    def fail(part: int, array: int, problem: str, hint: str) -> NoReturn:
        raise NotationError(problem, text, *_place_of_spec(text, part, array), hint)

    if (parts := len(einsums)) != len(specs):
        problem = f"the specs have {plural(len(specs), 'part')} but the chain has {parts},"
        hint = "write one part for each einsum, with ; between them"
        fail(min(parts, len(specs)), 0, problem, hint)
    for index, (einsum, named, part) in enumerate(zip(einsums, names, specs, strict=True)):
        if len(einsum.operands) != len(part.operands):
            fail(
                index,
                min(len(einsum.operands), len(part.operands)),
                f"{plural(len(part.operands), 'spec')} for the {plural(len(einsum.operands), 'operand')} of "
                f"{quote(str(einsum))}",
                "write one spec for each operand, with commas between them",
            )
        for place, (name, dims, spec) in enumerate(_rows(einsum, named, part)):
            if not ranked and spec is None and place < len(part.operands) and (place or not index):
                problem = f"the spec of {name} is left open, but a program is given its operands,"
                hint = "'?' may stand for results and intermediates; _ leaves a dimension whole"
                fail(index, place, problem, hint)
            if spec is not None and spec.rank != len(dims):
                fail(
                    index,
                    place,
                    f"the spec {quote(write_spec(spec))} has {plural(spec.rank, 'entry', 'entries')}, "
                    f"but {name} has the {plural(len(dims), 'dimension')} {quote(dims_text(dims))},",
                    "write one entry for each dimension; _ leaves a dimension whole",
                )
            if not ranked and spec is not None and spec.open_dims:
                hint = "a ranking decides it: `shardviz explain` with these specs; _ leaves a dimension whole"
                fail(index, place, f"dimension {dims[spec.open_dims[0]]} of {name} is left open,", hint)


def _place_of_spec(specs: str, part: int, array: int) -> tuple[int, int]:
    """The place of the spec of one array, counted within its part, the result last."""
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
    return bounds[array] if array < len(bounds) else (len(specs), len(specs) + 1)


def _without_lists(text: str) -> str:
    """The text with blanks for the brackets around the specs of all operands."""
    for part in re.finditer(r"(?:\A|;)\s*", text):
        end = list_end(text, part.end())
        if end is not None:
            text = f"{text[: part.end()]} {text[part.end() + 1 : end]} {text[end + 1 :]}"
    return text
