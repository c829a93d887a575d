"""A problem from what a user wrote: an einsum, a chain of them, a product in the scaling book's notation or a
program, with specs, sizes and a dtype."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Literal, NoReturn

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.book import Product, parse_product
from shardviz.notation.einsum import Einsum, dims_text, has_words, parse_chain
from shardviz.notation.mesh import mesh_in_text, parse_mesh
from shardviz.notation.numbers import parse_sizes
from shardviz.notation.program import Layers, is_program, split_layers
from shardviz.notation.spec_string import SpecPart, is_named, parse_named_specs, parse_specs, write_spec
from shardviz.planner.problem import UNNAMED, Problem, Statement, unused_name
from shardviz.planner.problem.sizes import dimension_sizes, padded, program_sizes, usual_sizes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

with LazyImports():
    from shardviz.notation import program as programs
    from shardviz.planner.problem import dtypes, functions, lowering

if TYPE_CHECKING:
    from shardviz.planner.problem.lowered import ArrayUse, LoweredStatement

Names = tuple[tuple[str, ...], str]
"""Names of one einsum's operands and of its result."""
Specs = Mapping[str, PartitionSpec | None]


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
    where the problem is to be `ranked`. `sizes` are elements of dimensions; the others have the defaults.

    Raises `QuestionError` (`NotationError` where a place in the text can be shown) when something cannot be
    read, or does not fit: ranks, counts, sizes, axes. A size that its axes do not divide is padded."""
    known = dtypes.parse_dtypes(dtype)
    layers = split_layers(text)
    text = layers.text
    if is_program(text):
        lowered = read_program(text, parse_sizes(sizes), mesh.shape)
        size = program_sizes(lowered, parse_sizes(sizes), sizes)
        by_name = None if specs is None else _named_specs(lowered, mesh, specs, ranked)
        problem = program_problem(lowered, mesh, by_name, size, known, axis_types, ranked)
        return with_layers(problem, layers)
    if specs is not None:
        _check_mesh(specs, mesh)
    given: tuple[SpecPart, ...] | None = None
    if "[" in text:
        product = parse_product(text, mesh.shape)
        einsums, names, given = parts_of_product(product)
        written = [array.spec for array in (*product.operands, product.result) if array]
        if specs is not None and any(spec.axes or spec.unreduced for spec in written):
            own = "has specs in its brackets, but the specs"
            complaint = f"{quote(text)} {own} {quote(specs)} are given as well"
            hint = "give the specs once: in the brackets, or beside arrays without subscripts, such as A[b,d]"
            raise QuestionError(complaint, hint)
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
    size = dimension_sizes(einsums, sizes)
    parts = []
    for einsum, named, part in zip(einsums, names, given, strict=True):
        arrays = tuple(
            ShardedArray(name, dims, tuple(size[dim] for dim in dims), known.usual, spec)
            for name, dims, spec in _rows(einsum, named, part)
        )
        parts.append(Statement(einsum, arrays[:-1], arrays[-1]))
    return padded(dtypes.with_dtypes(with_layers(Problem(mesh, tuple(parts), axis_types), layers), known.own))


def with_layers(problem: Problem, layers: Layers) -> Problem:
    """The problem run as often. Raises `QuestionError` for a shared array that is not an argument."""
    arguments = [array.name for array in problem.arguments]
    if unknown := next((name for name in layers.shared if name not in arguments), None):
        hint = f"the arguments are {', '.join(arguments)}"
        raise QuestionError(f"the layers share {quote(unknown, 30)}, which is not an argument", hint)
    return replace(problem, layers=layers.runs, shared=layers.shared)


def _named_parts(
    einsums: Sequence[Einsum], names: Sequence[Names], specs: str, mesh: Mesh
) -> tuple[SpecPart, ...]:
    """The specs of a chain whose arrays are named; operands that are not are whole, results are open."""
    ranks: dict[str, int] = {}
    for einsum, (operands, result) in zip(einsums, names, strict=True):
        ranks |= zip((*operands, result), map(len, (*einsum.operands, einsum.result)), strict=True)
    made = {result for _, result in names}
    given = {name: None if name in made else PartitionSpec.replicated(rank) for name, rank in ranks.items()}
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
        places = specs[part].places[array:] if part < len(specs) else ()
        raise NotationError(problem, text, *next(iter(places), (len(text), len(text) + 1)), hint)

    if (parts := len(einsums)) != len(specs):
        problem = f"the specs have {plural(len(specs), 'part')} but the chain has {parts},"
        hint = "write one part for each einsum, with ; between them"
        fail(min(parts, len(specs)), 0, problem, hint)
    for index, (einsum, named, part) in enumerate(zip(einsums, names, specs, strict=True)):
        if len(einsum.operands) != len(part.operands):
            counts = f"{plural(len(part.operands), 'spec')} for the {plural(len(einsum.operands), 'operand')}"
            hint = "write one spec for each operand, with commas between them"
            first = min(len(einsum.operands), len(part.operands))
            fail(index, first, f"{counts} of {quote(str(einsum))}", hint)
        for row, (name, dims, spec) in enumerate(_rows(einsum, named, part)):
            if not ranked and spec is None and row < len(part.operands) and (row or not index):
                problem = f"the operand {name} needs a spec,"
                hint = "'?' is for results and intermediates; _ leaves a dimension unsharded"
                fail(index, row, problem, hint)
            if spec is not None and spec.rank != len(dims):
                entries = f"{quote(write_spec(spec))} has {plural(spec.rank, 'entry', 'entries')}"
                own = f"{plural(len(dims), 'dimension')} {quote(dims_text(dims))}"
                hint = "write one entry for each dimension; _ leaves a dimension unsharded"
                fail(index, row, f"the spec {entries}, but {name} has the {own},", hint)
            if not ranked and spec is not None and spec.open_dims:
                hint = "`shardviz rank` with these specs ranks its shardings; _ leaves a dimension unsharded"
                fail(index, row, f"dimension {dims[spec.open_dims[0]]} of {name} is open,", hint)


# Programs.


def read_program(
    text: str, sizes: Mapping[str, int], axis_sizes: Mapping[str, int] | None = None
) -> lowering.LoweredProgram:
    """The statements of a program's text; errors say `sizes` where they are known. Raises `NotationError`."""
    program = programs.parse_program(text, axis_sizes)
    dims: dict[str, None] = {}
    for statement in program.statements:
        value = statement.value
        for mention in programs.mentions(value):
            if mention.array is not None:
                dims |= dict.fromkeys(mention.array.dims)
            elif isinstance(value, programs.EinsumCall) and mention in value.operands:
                dims |= dict.fromkeys(mention.name)
    return lowering.LoweredProgram(program, {**usual_sizes([*dims]), **sizes})


def program_problem(
    lowered: lowering.LoweredProgram,
    mesh: Mesh,
    specs: Specs | None,
    sizes: Mapping[str, int],
    given: dtypes.Dtypes,
    axis_types: Literal["auto", "explicit"],
    ranked: bool = False,
) -> Problem:
    """The problem of a program's statements, with the elements of all dimensions; its arguments are split as
    its subscripts say, or as `specs` say by name, and have the dtypes that are `given`.
    Arguments of which nothing is said are whole, or open (None) where nothing is said at all and the problem
    is to be `ranked`; such results are open. An argument that is updated in place stays split as it is, and
    is returned. Raises `NotationError` for a spec that is said twice."""
    _check_said_once(lowered, specs or {})
    written = written_specs(lowered)
    known = {**(written or {}), **(specs or {})}
    is_open = ranked and specs is None and written is None
    updates = {
        one.result.name: one.operands[0]
        for one in lowered.statements
        if functions.FUNCTIONS[one.function].in_place and one.operands[0].name in lowered.arguments
    }

    def array(use: ArrayUse, spec: PartitionSpec | None) -> ShardedArray:
        shape = tuple(sizes[dim] for dim in use.dims)
        own = lowered.dtypes.get(use.name, given.usual)
        return ShardedArray(use.name, use.dims, shape, own, spec)

    def operand(use: ArrayUse) -> ShardedArray:
        """An argument with its spec, or a result with the constraint that its use writes."""
        if use.name not in lowered.arguments:
            return array(use, use.spec)
        return array(use, known.get(use.name, None if is_open else PartitionSpec.replicated(len(use.dims))))

    def statement(one: LoweredStatement) -> Statement:
        operands, spec = tuple(map(operand, one.operands)), known.get(one.result.name)
        if spec is None and one.result.name in updates and operands[0].dims == one.result.dims:
            spec = operands[0].spec
        arrays = operands, array(one.result, spec)
        statement = Statement(one.einsum, *arrays, one.function, one.merged, one.whole)
        return replace(statement, number=one.number, along=one.along, limit=one.limit)

    statements = tuple(map(statement, lowered.statements))
    taken = {operand.name for statement in statements for operand in statement.operands}
    made = [statement.result.name for statement in statements[:-1]]
    returned = tuple(name for name in made if name not in taken or name in updates)
    replaced = tuple((old.name, new) for new, old in updates.items())
    problem = Problem(mesh, statements, axis_types, returned, updates=replaced)
    return padded(dtypes.with_dtypes(problem, given.own))


def written_specs(lowered: lowering.LoweredProgram) -> dict[str, PartitionSpec | None] | None:
    """The specs of all arguments and results that a program's subscripts say, by name; None without any."""
    made = [statement.result for statement in lowered.statements]
    specs = {use.name: use.spec for use in (*lowered.arguments.values(), *made)}
    if not any(specs.values()):
        return None
    whole = [*lowered.arguments.values()]
    if (target := lowered.program.statements[-1].target) is not None and target.array is not None:
        whole.append(made[-1])
    return specs | {use.name: use.spec or PartitionSpec.replicated(len(use.dims)) for use in whole}


def _check_said_once(lowered: lowering.LoweredProgram, specs: Specs) -> None:
    """Raise for a spec that is said twice. Where a result is used, subscripts constrain it anew."""
    made = [statement.result for statement in lowered.statements]
    for use in lowered.uses:
        argument = lowered.arguments.get(use.name)
        if use.spec is None or (argument is None and use not in made):
            continue
        if use.name in specs:
            problem = f"the subscripts of {use.name} give its spec, but the specs do so as well,"
            hint = "give its spec once"
        elif argument is not None and use.spec != argument.spec:
            problem = f"the argument {use.name} has another spec at its first use,"
            hint = "write an argument's subscripts at its first use"
        else:
            continue
        raise NotationError(problem, lowered.program.text, use.start, use.stop, hint)


def _named_specs(lowered: lowering.LoweredProgram, mesh: Mesh, specs: str, ranked: bool) -> Specs:
    """The specs in a text by name, or in order as those of an einsum of letters."""
    uses = [*lowered.arguments.values(), *(statement.result for statement in lowered.statements)]
    value, *others = (statement.value for statement in lowered.program.statements)
    named: Specs
    if is_named(specs):
        named = parse_named_specs(specs, mesh.shape, {use.name: len(use.dims) for use in uses})
    elif (
        not others
        and isinstance(value, programs.EinsumCall)
        and all(isinstance(operand, programs.Mention) and operand.array is None for operand in value.operands)
    ):
        names = [use.name for use in uses]
        einsums = [Einsum(tuple(use.dims for use in uses[:-1]), uses[-1].dims)]
        parts = parse_specs(specs, mesh.shape, [[len(use.dims) for use in uses]])
        _check_fit(einsums, [(tuple(names[:-1]), names[-1])], parts, specs, ranked)
        named = dict(zip(names, (*parts[0].operands, parts[0].result), strict=True))
    else:
        arrays = [*lowered.arguments, *lowered.named]
        hint = f"write {arrays[0]}=… for each sharded array of {', '.join(arrays)}"
        problem = "a program's specs need array names, but no name is given"
        raise NotationError(problem, specs, 0, hint=hint)
    for name in lowered.arguments:
        if not ranked and named.get(name, True) is None:
            match = re.search(rf"(?<![\w']){re.escape(name)}\s*=\s*", specs)
            problem = f"the argument {name} needs a spec,"
            hint = "'?' may stand for results; _ leaves a dimension unsharded"
            raise NotationError(problem, specs, 0 if match is None else match.end(), hint=hint)
    return named
