"""The problem that a program's text states: its arrays with their sizes, dtypes and specs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from shardviz.errors import NotationError, plural
from shardviz.notation.program import EinsumCall, Mention, ProgramText, mentions, parse_program
from shardviz.notation.spec_string import is_named, parse_named_specs, parse_specs
from shardviz.planner.problem.lowering import ArrayUse, LoweredProgram, lower
from shardviz.planner.problem.problem import Problem, Statement
from shardviz.planner.problem.sizes import padded, usual_sizes
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

PLACE_DTYPE = "s32"
"""The dtype of an array that holds places in a table."""
Specs = Mapping[str, PartitionSpec | None]


def read_program(
    text: str, sizes: Mapping[str, int], axis_sizes: Mapping[str, int] | None = None
) -> LoweredProgram:
    """The statements of a program's text; errors say `sizes` where they are known. Raises `NotationError`."""
    program = parse_program(text, axis_sizes)
    return lower(program, {**usual_sizes(_written_dims(program)), **sizes})


def _written_dims(program: ProgramText) -> list[str]:
    dims: dict[str, None] = {}
    for statement in program.statements:
        value = statement.value
        for mention in mentions(value):
            if mention.array is not None:
                dims |= dict.fromkeys(mention.array.dims)
            elif isinstance(value, EinsumCall) and mention in value.operands:
                dims |= dict.fromkeys(mention.name)
    return [*dims]


def program_problem(
    lowered: LoweredProgram,
    mesh: Mesh,
    specs: Specs | None,
    sizes: Mapping[str, int],
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    ranked: bool = False,
) -> Problem:
    """The problem of a program's statements, with the elements of all dimensions; its arguments are split as
    its subscripts say, or as `specs` say by name.

    What neither says is not split, but is left open (None) where the problem is to be `ranked` and nothing is
    said at all. A result is split as the compiler likes where neither says it; with subscripts in the text
    the last result is as its brackets say. Raises `NotationError` for a spec that is said twice.
    """
    _check_said_once(lowered, specs or {})
    written = written_specs(lowered)
    known = {**(written or {}), **(specs or {})}
    is_open = ranked and specs is None and written is None

    def array(use: ArrayUse, spec: PartitionSpec | None) -> ShardedArray:
        shape = tuple(sizes[dim] for dim in use.dims)
        return ShardedArray(
            use.name, use.dims, shape, PLACE_DTYPE if use.name in lowered.integers else dtype, spec
        )

    def operand(use: ArrayUse) -> ShardedArray:
        """An argument with its spec, or a result with the constraint that its use writes."""
        if use.name not in lowered.arguments:
            return array(use, use.spec)
        return array(use, known.get(use.name, None if is_open else _whole(use)))

    statements = tuple(
        Statement(
            each.einsum,
            tuple(map(operand, each.operands)),
            array(each.result, known.get(each.result.name)),
            each.function,
            each.merged,
            each.whole,
            number=each.number,
        )
        for each in lowered.statements
    )
    taken = {operand.name for each in statements for operand in each.operands}
    returned = (each.result.name for each in statements[:-1] if each.result.name not in taken)
    return padded(Problem(mesh, statements, axis_types, tuple(returned)))


def written_specs(lowered: LoweredProgram) -> dict[str, PartitionSpec | None] | None:
    """The specs of all arguments and results that a program's subscripts say, by name; None without any."""
    arguments, made = lowered.arguments.values(), [each.result for each in lowered.statements]
    if all(use.spec is None for use in (*arguments, *made)):
        return None
    specs: dict[str, PartitionSpec | None] = {use.name: use.spec or _whole(use) for use in arguments}
    specs |= {use.name: use.spec for use in made}
    if made[-1].spec is None and lowered.program.statements[-1].has_brackets:
        specs[made[-1].name] = _whole(made[-1])
    return specs


def _whole(use: ArrayUse) -> PartitionSpec:
    return PartitionSpec(((),) * len(use.dims))


def _check_said_once(lowered: LoweredProgram, specs: Specs) -> None:
    """Raise for a spec that is said twice. Where a result is used, subscripts constrain it anew."""
    made = [each.result for each in lowered.statements]
    for use in lowered.uses:
        argument = lowered.arguments.get(use.name)
        if use.spec is None or (argument is None and use not in made):
            continue
        if use.name in specs:
            problem = f"the subscripts of {use.name} say how it is split, and so do the specs,"
            hint = "give its spec once"
        elif argument is not None and use.spec != argument.spec:
            problem = f"the argument {use.name} is split otherwise where it stands first,"
            hint = "write the subscripts of an argument where it stands first"
        else:
            continue
        raise NotationError(problem, lowered.program.text, use.start, use.stop, hint)


def named_specs(lowered: LoweredProgram, mesh: Mesh, specs: str, ranked: bool) -> Specs:
    """The specs in a text by name, or in order as those of an einsum of letters. Raises `NotationError` where
    one leaves an argument open, unless the problem is to be `ranked`."""
    uses = [*lowered.arguments.values(), *(each.result for each in lowered.statements)]
    named: Specs
    if is_named(specs):
        named = parse_named_specs(specs, mesh.shape, {use.name: len(use.dims) for use in uses})
    elif _is_one_einsum(lowered.program):
        named = _specs_in_order(lowered, mesh, specs)
    else:
        arrays = [*lowered.arguments, *lowered.named]
        hint = f"write {arrays[0]}=… for those of {', '.join(arrays)} that are split"
        problem = "the arrays of a program are given specs by name, but no name stands"
        raise NotationError(problem, specs, 0, hint=hint)
    for name in lowered.arguments:
        if not ranked and named.get(name, True) is None:
            place = re.search(rf"(?<![\w']){re.escape(name)}\s*=\s*", specs)
            problem = f"the spec of {name} is left open, but a program is given its arguments,"
            hint = "'?' may stand for results; _ leaves a dimension whole"
            raise NotationError(problem, specs, 0 if place is None else place.end(), hint=hint)
    return named


def _is_one_einsum(program: ProgramText) -> bool:
    value = program.statements[0].value
    return (
        len(program.statements) == 1
        and isinstance(value, EinsumCall)
        and all(isinstance(each, Mention) and each.array is None for each in value.operands)
    )


def _specs_in_order(lowered: LoweredProgram, mesh: Mesh, specs: str) -> Specs:
    """Specs of each operand, and of the result. Raises `NotationError` for another number."""
    result = lowered.statements[-1].result
    uses = [*lowered.arguments.values(), result]
    (part, *more) = parse_specs(specs, mesh.shape, [[len(use.dims) for use in uses]])
    if more or len(part.operands) != len(lowered.arguments):
        count = sum(len(each.operands) for each in (part, *more))
        problem = f"{plural(count, 'spec')} for {len(lowered.arguments)} operands,"
        hint = f"write one for each of {', '.join(lowered.arguments)}, and after -> that of the result"
        raise NotationError(problem, specs, 0, len(specs), hint)
    by_name = dict(zip([use.name for use in uses], (*part.operands, part.result), strict=True))
    for use in uses:
        spec = by_name[use.name]
        if spec is not None and spec.rank != len(use.dims):
            problem = f"{use.name} has {plural(len(use.dims), 'dimension')}, but its spec has {spec.rank},"
            raise NotationError(problem, specs, 0, len(specs), "write one entry for each dimension")
    return by_name
