"""A form's fields, each read on its own: edits and pictures go on where another field has an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, ParamSpec, TypeAlias, TypeVar

from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.form import OPEN, ArrayRow, ProblemForm
from shardviz.lazy_names import LazyImports
from shardviz.notation.book import Product, parse_product
from shardviz.notation.einsum import Einsum, parse_chain
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.numbers import parse_sizes
from shardviz.notation.program import Layers, is_program, split_layers
from shardviz.notation.reading import Context, Reading
from shardviz.notation.spec_string import read_spec_string, write_spec
from shardviz.planner.problem.reading import Names, parts_of_product, read_program, usual_names, written_specs
from shardviz.planner.problem.sizes import dimension_sizes, program_sizes
from shardviz.sharding import Mesh, PartitionSpec

with LazyImports():
    from shardviz.notation import notations

if TYPE_CHECKING:
    from shardviz.planner.problem.lowering import LoweredProgram
Spec: TypeAlias = "PartitionSpec | str | None"
"""A row's spec, None where it is open, its text where that cannot be read."""
P = ParamSpec("P")
T = TypeVar("T")
MAX_LINE = 100_000
"""Characters; a longer text is not a command line that a person has."""
_COMMAND = re.compile(r"\s*(?:\$\s+)?(?:shardviz(?:\s|$)|(?:explain|tui|step)\s+\S)")
_SPEC_STRING = re.compile(r"[\w ]*")
"""Texts that no other notation could mean."""


class ParsedForm(NamedTuple):
    """The values of a form's fields; None, or a spec's text, where one cannot be read, and the errors. `mesh`
    is without a device order that does not fit. `rows` are the arrays that `specs` belong to; None where
    there are more or fewer of them, or the einsum cannot be read."""

    mesh: Mesh | None
    sizes: Mapping[str, int] | None
    einsums: Einsums | None
    specs: tuple[Spec, ...]
    errors: Mapping[str, ShardvizError]

    @property
    def rows(self) -> tuple[ArrayRow, ...] | None:
        return self.einsums.rows if self.einsums and len(self.einsums.rows) == len(self.specs) else None


@lru_cache(maxsize=16)  # each key asks several times about the form before it and the one after it
def parsed(form: ProblemForm) -> ParsedForm:
    """Read the mesh, the sizes, the einsum and the specs of a form, once."""
    errors: dict[str, ShardvizError] = {}

    def attempt(field: str, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            with reader_errors():
                return read(*args, **kwargs)
        except ShardvizError as error:
            errors[field] = error
            return None

    mesh = attempt("mesh", read_mesh, form.mesh, "")
    if mesh is not None and form.device_order.strip():
        mesh = attempt("device_order", read_mesh, form.mesh, form.device_order.strip()) or mesh
    sizes = attempt("sizes", parse_sizes, form.sizes)
    axes = None if mesh is None else mesh.shape
    einsums = attempt("einsum", read_einsums, form.einsum, ellipsis_rank(sizes), axes)
    fits = einsums is not None and len(einsums.rows) == len(form.specs)
    rows = einsums.rows if einsums is not None and fits else (None,) * len(form.specs)
    specs: list[Spec] = [*form.specs]
    for number, row in enumerate(rows):
        if mesh is not None:
            field = f"specs.{number}"
            spec = attempt(field, read_spec, form.specs[number], mesh, row)
            specs[number] = form.specs[number] if field in errors else spec
    return ParsedForm(mesh, sizes, einsums, tuple(specs), errors)


class Einsums(NamedTuple):
    """A form's `einsum`, read: the parts of the chain, the names of their arrays, and the rows. `product` is
    what was written where that was a product in brackets, and `program` where that was a program, else None.
    A program has a row for each argument and then for each result that has a name."""

    parts: tuple[Einsum, ...]
    names: tuple[Names, ...]
    rows: tuple[ArrayRow, ...]
    product: Product | None = None
    program: LoweredProgram | None = None
    layers: Layers = Layers("")

    @property
    def places(self) -> list[tuple[tuple[int, ...], int]]:
        """For every part of a chain the places in `rows` of its operands and of its result."""
        part_rows = []
        index = 0
        for part in self.parts:
            count = len(part.operands)
            part_rows.append((tuple(range(index, index + count)), index + count))
            index += count + 1
        return part_rows

    @property
    def dims(self) -> tuple[str, ...]:
        """Every dimension once, in order of first appearance."""
        if self.program is not None:
            return self.program.dims
        return tuple(dict.fromkeys(dim for part in self.parts for dim in part.dims))

    def elements(self, sizes: str) -> dict[str, int]:
        """Elements of every dimension: those that a text says, and the others. Raises `QuestionError`."""
        if self.program is None:
            return dimension_sizes(self.parts, sizes)
        return program_sizes(self.program, parse_sizes(sizes), sizes)

    @property
    def written_specs(self) -> tuple[PartitionSpec | None, ...] | None:
        """The specs that subscripts say, one a row; None where nothing has a subscript."""
        if self.program is not None:
            specs = written_specs(self.program)
            return None if specs is None else tuple(specs[row.name] for row in self.rows)
        product = self.product
        arrays = [] if product is None else [*product.operands, *filter(None, [product.result])]
        if product is None or not any(array.spec.axes or array.spec.unreduced for array in arrays):
            return None
        _, _, parts = parts_of_product(product)
        return tuple(spec for part in parts for spec in (*part.operands, part.result))


@contextmanager
def reader_errors() -> Iterator[None]:
    """Raise `QuestionError` for an exception of the block that is not a `ShardvizError`."""
    try:
        yield
    except ShardvizError:
        raise
    except Exception as error:
        problem = f"this text cannot be read: {type(error).__name__}"
        raise QuestionError(problem, "write it in another way; this is a bug") from error


def looks_like_command(text: str) -> bool:
    """Return whether a text begins as the command line of a problem does: then none of it is a field."""
    return len(text) <= MAX_LINE and _COMMAND.match(text) is not None


@lru_cache(maxsize=8)  # an order of many devices takes long to read, and seldom changes
@reader_errors()
def read_mesh(text: str, device_order: str) -> Mesh:
    """The mesh, its devices in an order, or as JAX has them where that is empty. Raises `ShardvizError`."""
    return parse_mesh(text, device_order.strip() or None)


@reader_errors()
def read_einsums(text: str, ellipsis_rank: int = 0, axis_sizes: Mapping[str, int] | None = None) -> Einsums:
    """Read an einsum, a chain, a product in brackets or a program. Raises `NotationError`."""
    layers = split_layers(text)
    text = layers.text
    if is_program(text):
        program = read_program(text, {}, axis_sizes)
        einsums = tuple(statement.einsum for statement in program.statements)
        return Einsums(einsums, (), tuple(_program_rows(program)), program=program, layers=layers)
    product = None
    if "[" in text:
        product = parse_product(text, axis_sizes)
        parts, names, _ = parts_of_product(product)
    else:
        parts = parse_chain(text, ellipsis_rank)
        names = usual_names(parts)
    return Einsums(parts, tuple(names), tuple(_rows(parts, names)), product, layers=layers)


def _program_rows(program: LoweredProgram) -> Iterator[ArrayRow]:
    for use in program.arguments.values():
        yield ArrayRow(0, use.name, use.dims, "operand")
    for number, statement in enumerate(program.statements):
        if (result := statement.result).name in program.named:
            yield ArrayRow(number, result.name, result.dims, "result")


def _rows(parts: Sequence[Einsum], names: Sequence[Names]) -> Iterator[ArrayRow]:
    for part, (einsum, (operands, result)) in enumerate(zip(parts, names, strict=True)):
        for index, (name, dims) in enumerate(zip(operands, einsum.operands, strict=True)):
            yield ArrayRow(part, name, dims, "intermediate" if part and not index else "operand")
        yield ArrayRow(part, result, einsum.result, "result")


@reader_errors()
def read_spec(text: str, mesh: Mesh, row: ArrayRow | None) -> PartitionSpec | None:
    """A row's spec, None where it is open. Raises `ShardvizError`, also for the text of another array."""
    if text.strip() == OPEN:
        return None
    context = Context(mesh, None if row is None else len(row.dims))
    if _SPEC_STRING.fullmatch(text):
        # Spared: loading all the other notations.
        return read_spec_string(text, context).spec
    reading = notations.read_sharding(text, context)
    if row is not None:
        check_array(reading, row)
    return reading.spec


def check_array(reading: Reading, row: ArrayRow) -> None:
    """Raise `QuestionError` where a text names another array than that of the row, or other dimensions."""
    name, dims = reading.name or row.name, reading.dims or row.dims
    is_own = any(dim.startswith("...") for dim in row.dims) or _same(dims, row.dims)
    if not is_own or not _same([name], [row.name]):
        own = f"{row.name}[{', '.join(row.dims)}]"
        problem = f"{name}[{', '.join(dims)}] is not the array of this row, {own}"
        raise QuestionError(problem, f"name {own} with its axes, or write the axes alone")


def _same(names: Sequence[str], others: Sequence[str]) -> bool:
    return [name.casefold() for name in names] == [name.casefold() for name in others]


def ellipsis_rank(sizes: Mapping[str, int] | None) -> int:
    """The number of dimensions in ``...``: as many as have sizes."""
    return sum(name.startswith("...") for name in sizes or {})


def spec_texts(specs: Sequence[Spec]) -> tuple[str, ...]:
    """The specs as a form has them."""
    return tuple(spec if isinstance(spec, str) else write_spec(spec) for spec in specs)
