"""The problem that a program's text states: its arrays with their sizes, dtypes and specs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from shardviz.errors import NotationError, plural
from shardviz.notation.named_specs import is_named, parse_named_specs
from shardviz.notation.numbers import parse_sizes
from shardviz.notation.program import (
    EinsumCall,
    Expression,
    FunctionCall,
    Mention,
    ProgramText,
    parse_program,
)
from shardviz.notation.spec_string import parse_specs
from shardviz.planner.problem.lowering import ArrayUse, LoweredProgram, lower
from shardviz.planner.problem.padding import padded
from shardviz.planner.problem.problem import Problem
from shardviz.planner.problem.sizes import program_sizes, usual_sizes
from shardviz.planner.problem.statement import Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray, canonical_dtype

PLACE_DTYPE = "s32"
"""The dtype of an array that holds places in a table."""


def problem_from_program(
    text: str,
    mesh: Mesh,
    specs: str | None,
    sizes: str,
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    ranked: bool,
) -> Problem:
    """The problem of a program; its arguments are split as its subscripts say, or as `specs` say by name.

    What neither says is not split, but is left open (None) where the problem is to be `ranked` and nothing is
    said at all. A result is split as the compiler likes where neither says it; with subscripts in the text
    the last result is as its brackets say.

    Raises `QuestionError`, a `NotationError` where a place in the text can be shown.
    """
    given = parse_sizes(sizes)
    lowered = read_program(text, given, mesh.shape)
    size = program_sizes(lowered, given, sizes)
    named = _named_specs(lowered, mesh, specs)
    problem = program_problem(lowered, mesh, named, size, canonical_dtype(dtype), axis_types, ranked)
    if not ranked and specs is not None:
        _check_decided(problem, specs)
    return problem


def read_program(
    text: str, sizes: Mapping[str, int], axis_sizes: Mapping[str, int] | None = None
) -> LoweredProgram:
    """The statements of a program's text; errors say `sizes` where they are known. Raises `NotationError`."""
    program = parse_program(text, axis_sizes)
    return lower(program, {**usual_sizes(written_dims(program)), **sizes})


def program_problem(
    lowered: LoweredProgram,
    mesh: Mesh,
    specs: Mapping[str, PartitionSpec | None] | None,
    sizes: Mapping[str, int],
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    ranked: bool = False,
) -> Problem:
    """The problem of a program's statements, with the elements of all dimensions and specs by name, as
    `problem_from_program` has it. Raises `NotationError` for a spec that is said twice."""
    arrays = _Arrays(lowered, sizes, dtype, specs, ranked)
    statements = tuple(
        Statement(
            each.einsum,
            tuple(arrays.operand(use) for use in each.operands),
            arrays.result(each.result),
            each.function,
            each.merged,
            each.whole,
            number=each.number,
        )
        for each in lowered.statements
    )
    return padded(Problem(mesh, statements, axis_types, returned_names(statements)))


def written_specs(lowered: LoweredProgram) -> dict[str, PartitionSpec | None] | None:
    """The specs of all arguments and results that a program's subscripts say, by name; None without any."""
    arguments = lowered.arguments.values()
    made = {each.result.name: each.result for each in lowered.statements}
    if all(use.spec is None for use in (*arguments, *made.values())):
        return None
    specs: dict[str, PartitionSpec | None] = {use.name: use.spec or _whole(use) for use in arguments}
    specs |= {name: use.spec for name, use in made.items()}
    last = lowered.statements[-1].result
    if last.spec is None and lowered.program.statements[-1].has_brackets:
        specs[last.name] = _whole(last)
    return specs


def _check_decided(problem: Problem, specs: str) -> None:
    """Raise for an argument that is left open where none may be."""
    for array in problem.arguments:
        if array.spec is None:
            place = re.search(rf"(?<![\w']){re.escape(array.name)}\s*=\s*", specs)
            start = 0 if place is None else place.end()
            raise NotationError(
                f"the spec of {array.name} is left open, but a program is given its arguments,",
                specs,
                start,
                hint="'?' may stand for results; _ leaves a dimension whole",
            )


def _named_specs(
    lowered: LoweredProgram, mesh: Mesh, specs: str | None
) -> dict[str, PartitionSpec | None] | None:
    if specs is None:
        return None
    if not is_named(specs) and _is_one_einsum(lowered.program):
        return _specs_in_order(lowered, mesh, specs)
    if not is_named(specs):
        arrays = [*lowered.arguments, *lowered.named]
        raise NotationError(
            "the arrays of a program are given specs by name, but no name stands",
            specs,
            0,
            hint=f"write {arrays[0]}=… for those of {', '.join(arrays)} that are split",
        )
    uses = [*lowered.arguments.values(), *(each.result for each in lowered.statements)]
    return parse_named_specs(specs, mesh.shape, {use.name: len(use.dims) for use in uses})


def _is_one_einsum(program: ProgramText) -> bool:
    """Return whether the text is one einsum of letters, whose arrays have an order."""
    values = [each.value for each in program.statements]
    return (
        len(values) == 1
        and isinstance(values[0], EinsumCall)
        and all(isinstance(each, Mention) and each.array is None for each in values[0].operands)
    )


def _specs_in_order(lowered: LoweredProgram, mesh: Mesh, specs: str) -> dict[str, PartitionSpec | None]:
    """Specs as those of an einsum: of each operand, and of the result. Raises `NotationError` for another
    number."""
    result = lowered.statements[-1].result
    uses = [*lowered.arguments.values(), result]
    (part, *more) = parse_specs(specs, mesh.shape, [[len(use.dims) for use in uses]])
    if more or len(part.operands) != len(lowered.arguments):
        count = sum(len(each.operands) for each in (part, *more))
        raise NotationError(
            f"{plural(count, 'spec')} for {len(lowered.arguments)} operands,",
            specs,
            0,
            len(specs),
            f"write one for each of {', '.join(lowered.arguments)}, and after -> that of the result",
        )
    found = dict(zip(lowered.arguments, part.operands, strict=True)) | {result.name: part.result}
    for use in uses:
        spec = found[use.name]
        if spec is not None and spec.rank != len(use.dims):
            raise NotationError(
                f"{use.name} has {plural(len(use.dims), 'dimension')}, but its spec has {spec.rank},",
                specs,
                0,
                len(specs),
                "write one entry for each dimension",
            )
    return found


def returned_names(statements: Sequence[Statement]) -> tuple[str, ...]:
    """The results that no statement takes, without the last."""
    taken = {operand.name for each in statements for operand in each.operands}
    return tuple(each.result.name for each in statements[:-1] if each.result.name not in taken)


class _Arrays:
    """The arrays of a lowered program where statements use them."""

    def __init__(
        self,
        lowered: LoweredProgram,
        size: Mapping[str, int],
        dtype: str,
        specs: Mapping[str, PartitionSpec | None] | None,
        ranked: bool,
    ) -> None:
        self._lowered, self._size, self._dtype = lowered, size, dtype
        self._specs = specs or {}
        self._written = written_specs(lowered) or {}
        self._is_open = ranked and specs is None and not self._written
        self._check_specs([use for each in lowered.statements for use in (*each.operands, each.result)])

    def operand(self, use: ArrayUse) -> ShardedArray:
        """An argument with its spec, or a result with the constraint that its use writes."""
        if use.name not in self._lowered.arguments:
            return self._array(use, use.spec)
        return self._array(use, self._argument_spec(use.name))

    def result(self, use: ArrayUse) -> ShardedArray:
        return self._array(use, self._specs.get(use.name, self._written.get(use.name)))

    def _argument_spec(self, name: str) -> PartitionSpec | None:
        first = self._lowered.arguments[name]
        usual = None if self._is_open else self._written.get(name, _whole(first))
        return self._specs.get(name, usual)

    def _array(self, use: ArrayUse, spec: PartitionSpec | None) -> ShardedArray:
        shape = tuple(self._size[dim] for dim in use.dims)
        dtype = PLACE_DTYPE if use.name in self._lowered.integers else self._dtype
        return ShardedArray(use.name, use.dims, shape, dtype, spec)

    def _check_specs(self, uses: Sequence[ArrayUse]) -> None:
        """Raise for a spec that is said twice."""
        text, arguments = self._lowered.program.text, self._lowered.arguments
        made = [each.result for each in self._lowered.statements]
        for name in self._specs:
            # Where a result is used, subscripts constrain it anew.
            is_said = (
                use
                for use in uses
                if use.name == name and use.spec is not None and (use in made or name in arguments)
            )
            written = next(is_said, None)
            if written is not None:
                raise NotationError(
                    f"the subscripts of {name} say how it is split, and so do the specs,",
                    text,
                    written.start,
                    written.stop,
                    "give its spec once",
                )
        for name, argument in arguments.items():
            for use in uses:
                if use.name == name and use.spec is not None and use.spec != argument.spec:
                    raise NotationError(
                        f"the argument {name} is split otherwise where it stands first,",
                        text,
                        use.start,
                        use.stop,
                        "write the subscripts of an argument where it stands first",
                    )


def _whole(use: ArrayUse) -> PartitionSpec:
    return PartitionSpec(((),) * len(use.dims))


def written_dims(program: ProgramText) -> tuple[str, ...]:
    """The dimensions in a program's text, in order."""
    return tuple(dict.fromkeys(dim for each in program.statements for dim in _dims_in(each.value)))


def _dims_in(value: Expression) -> Iterator[str]:
    if isinstance(value, Mention):
        yield from () if value.array is None else value.array.dims
    elif isinstance(value, (FunctionCall, EinsumCall)):
        for operand in value.operands:
            if isinstance(value, EinsumCall) and isinstance(operand, Mention) and operand.array is None:
                yield from operand.name
            yield from _dims_in(operand)
