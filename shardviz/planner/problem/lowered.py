"""The statements that a program's text becomes, one by one: the arrays that they take and make, and the names
of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from shardviz.errors import NotationError, plural, quote
from shardviz.notation.einsum import Einsum
from shardviz.notation.program import Assignment, Expression, FunctionCall, Mention, ProgramText, mentions
from shardviz.notation.scanner import MAX_RANK
from shardviz.planner.problem import UNNAMED, unused_name
from shardviz.sharding import PartitionSpec

Dims = tuple[str, ...]


@dataclass(frozen=True)
class ArrayUse:
    """An array where a statement takes or makes it: the names that its dimensions have there, the `spec` that
    its subscripts say (None without any), and its place in the program's text."""

    name: str
    dims: Dims
    spec: PartitionSpec | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(self.dims)}]"

    def without(self, dims: Dims) -> Dims:
        return tuple(dim for dim in self.dims if dim not in dims)


@dataclass(frozen=True)
class LoweredStatement:
    """One function of a written statement, its `source`; other fields are as in `problem.Statement`."""

    function: str
    operands: tuple[ArrayUse, ...]
    result: ArrayUse
    source: Assignment
    merged: tuple[tuple[str, Dims], ...] = ()
    whole: Dims = ()
    number: float | None = None
    along: str = ""
    limit: float = 0.0

    @property
    def einsum(self) -> Einsum:
        return Einsum(tuple(use.dims for use in self.operands), self.result.dims)


@dataclass(frozen=True)
class WantedResult:
    """The result that an expression is to have, a partial one without a `name`; `dims` is None where they
    follow from the expression, whose products then do not sum over those in `kept`."""

    name: str = ""
    dims: Dims | None = None
    spec: PartitionSpec | None = None
    kept: frozenset[str] = frozenset()

    def of_operand(self, value: Expression) -> WantedResult:
        """The partial result that an operand makes of a function that keeps all dimensions. A product has the
        target's, in their order; what a function makes may lack some."""
        if is_product(value):
            return replace(self, name="", spec=None)
        return WantedResult(kept=frozenset(self.dims or self.kept))


PART = WantedResult()


class StatementWriter:
    """The statements of a program so far, in order. `arguments` are the arrays that it takes, as they stand
    first. `renamed` are arrays that a statement calls by other dimensions than before: its name, the array as
    it was, its use there. `dtypes` are those of arguments that hold places in a table, or a mask."""

    _source: Assignment

    def __init__(self, program: ProgramText, sizes: Mapping[str, int]) -> None:
        self.program, self._sizes = program, sizes
        self.statements: list[LoweredStatement] = []
        self.arguments: dict[str, ArrayUse] = {}
        self.renamed: list[tuple[str, ArrayUse, ArrayUse]] = []
        self.dtypes: dict[str, str] = {}
        self._made: dict[str, ArrayUse] = {}
        self._partial = 0
        self._targets = {
            statement.target.name for statement in program.statements if statement.target is not None
        }
        words = {word.name for statement in program.statements for word in mentions(statement.value)}
        self._taken = self._targets | words

    @property
    def uses(self) -> list[ArrayUse]:
        """All operands and results, in the order of the statements."""
        return [use for statement in self.statements for use in (*statement.operands, statement.result)]

    @property
    def dims(self) -> Dims:
        """Every dimension once, in the order in which arguments, then statements have them."""
        return tuple(dict.fromkeys(dim for use in self.uses for dim in use.dims))

    def _emit(
        self,
        function: str,
        operands: tuple[ArrayUse, ...],
        dims: Dims,
        target: WantedResult = PART,
        merged: tuple[tuple[str, Dims], ...] = (),
        whole: Dims = (),
        number: float | None = None,
        along: str = "",
        limit: float = 0.0,
    ) -> ArrayUse:
        source = self._source
        expression = source.target or source.value
        if not (name := target.name):
            self._partial += 1
            name = self._unused(f"{self._name}_{self._partial}")
        wanted = dims if target.dims is None else target.dims
        if set(wanted) != set(dims):
            leaves = self._all_sized(dims) or "no dimension"
            problem = f"{name}[{', '.join(wanted)}] is made by {function}, which leaves {leaves},"
            self._fail(problem, expression, "write the dimensions that it leaves, in any order")
        if len(wanted) > MAX_RANK:
            problem = f"{name} has {len(wanted)} dimensions, and an array has at most {MAX_RANK},"
            self._fail(problem, expression, "use fewer dimensions")
        result = self._made[name] = ArrayUse(name, wanted, target.spec, source.start, source.stop)
        self.statements.append(
            LoweredStatement(function, operands, result, source, merged, whole, number, along, limit)
        )
        return result

    def _use(self, mention: Mention) -> ArrayUse:
        """The array of a name, with the dimensions that it has here."""
        known = self._known(mention.name)
        if mention.array is None:
            if known is None:
                hint = f"write them at its first use, as in {mention.name}[b, d]"
                self._fail(f"{quote(mention.name, 30)} has no dimensions yet,", mention, hint)
            return replace(known, spec=None, start=mention.start, stop=mention.stop)
        dims = mention.array.dims
        use = ArrayUse(mention.name, dims, written_spec(mention), mention.start, mention.stop)
        self._check_once(mention)
        if known is None:
            self.arguments[mention.name] = use
            return use
        if len(known.dims) != len(dims):
            counts = f"{plural(len(dims), 'dimension')} against {len(known.dims)}"
            hint = "brackets may rename the dimensions, but not add or remove any"
            self._fail(f"{self._name} takes {use}, but it is {known}: {counts},", mention, hint)
        if dims != known.dims:
            self.renamed.append((self._name, known, use))
        return use

    def _check_once(self, mention: Mention) -> None:
        if mention.array is not None and len({*mention.array.dims}) < len(mention.array.dims):
            problem = f"{mention.name} has one dimension twice,"
            self._fail(problem, mention, "name each dimension of an array once")

    @property
    def _name(self) -> str:
        return self._source.target.name if self._source.target is not None else UNNAMED

    def _unused(self, name: str) -> str:
        return unused_name(name, self._taken)

    def _known(self, name: str) -> ArrayUse | None:
        return self._made.get(name) or self.arguments.get(name)

    def _sized(self, dim: str) -> str:
        return f"{dim}={self._sizes[dim]}" if dim in self._sizes else dim

    def _all_sized(self, dims: Dims) -> str:
        return " and ".join(map(self._sized, dims))

    def _fail(self, problem: str, place: Expression, hint: str) -> NoReturn:
        raise NotationError(problem, self.program.text, place.start, place.stop, hint)


def written_spec(mention: Mention) -> PartitionSpec | None:
    spec = None if mention.array is None else mention.array.spec
    return spec if spec is not None and (spec.axes or spec.unreduced) else None


def is_product(value: Expression) -> bool:
    return isinstance(value, FunctionCall) and value.function == "multiply"
