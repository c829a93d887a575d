"""The places where two shardings of one value meet, out of Shardy's text with its reshards made explicit.

After the pass `insert-explicit-reshards` each change of a sharding is an operation of its own, between the
operation that made the value and the one that wants it split in another way; so is each sum of the parts that
devices have of a value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.mlir.attributes import (
    Meshes,
    parse_axes,
    parse_sharding,
    parse_sharding_list,
    parse_tensor,
    parse_tensors,
    parts,
)
from shardviz.hlo.mlir.named_shardings import NAMED_PLACE, PLACE
from shardviz.hlo.mlir.regions import Function, MlirOperation, Walk
from shardviz.hlo.mlir.sdy_op import sharding_of
from shardviz.hlo.text.shapes import ArrayShape
from shardviz.sharding import PartitionSpec

_RESHARD = re.compile(r"sdy\.(?:reshard|sharding_constraint) (%[\w$.#-]+) (?=<)")
_SUM = re.compile(r"sdy\.all_reduce \{([^{}]*)\} (%[\w$.#-]+) out_sharding=")
_OPERATION = re.compile(r'"?(?:[\w$]+\.)?([\w$]+)')
_CALL = re.compile(r'(?:func\.)?call @("[^"]*"|[\w.$-]+)\(([^)]*)\)')
_ARGUMENT_PLACE = re.compile(r'loc\((?:"((?:[^"\\]|\\.)*)"|(#loc\d*))')
_MATMUL = re.compile(r"stablehlo\.dot_general (%[\w$.#-]+), .*?contracting_dims = \[([\d, ]*)\]")
_SHARDING = "#sdy.sharding"
_PER_VALUE = "sdy.sharding_per_value<"
ARGUMENT = "argument"
"""In place of the operation that makes an argument of the function around it."""


@dataclass(frozen=True)
class Meeting:
    """A value split as `before` says, where `after` is wanted; `kind` is "sum" where every device has a part
    of a sum over `axes`, and then both are equal.

    `shape` is global. `producer` and `consumer` are the operations on both sides ("dot_general", "argument",
    "return"), `producer_name` and `consumer_name` JAX's names of them, as of `Collective.op_name`, "" where
    the text has none; `name` is that of the change itself.
    `argument` is the path of the program's argument that it is. Inside of a function, which does not tell, it
    is the first that has its shape and sharding, or that does along all dimensions but the first, as the
    layers of a scan do; "" where none has. `calls` counts the calls of the function around it, and
    `consumer_shape` is that of what the consumer makes, () where the text does not tell.
    """

    kind: Literal["reshard", "sum"]
    axes: tuple[str, ...]
    before: PartitionSpec
    after: PartitionSpec
    shape: tuple[int, ...]
    dtype: str
    producer: str
    consumer: str
    producer_name: str
    consumer_name: str
    name: str
    argument: str = ""
    calls: int = 1
    consumer_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class SplitArgument:
    """An argument of the program, by its path and its number; `shape` is global.

    One whose shape and dtype a result has `is_returned`, as the state of a step is and its batch is not.
    """

    number: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: PartitionSpec
    is_returned: bool = False


@dataclass(frozen=True)
class ExplicitReshards:
    """A program in whose text every reshard is an operation: the `meetings` in the order in which they run,
    the `arguments` whose sharding and place it tells, and the multiplications of one device in all of its
    matmuls, each counted once."""

    meetings: tuple[Meeting, ...] = ()
    arguments: tuple[SplitArgument, ...] = ()
    products: int = 0


def read_reshards(text: str) -> ExplicitReshards:
    """Read a module with explicit reshards and places. What cannot be read is passed over."""
    reader = _Reader(text)
    found = tuple(reader.read())
    return ExplicitReshards(found, tuple(reader.arguments), sum(reader.products()))


@dataclass(frozen=True)
class _Found:
    """A meeting as it is read, before the names of the functions around it are known."""

    operation: MlirOperation
    value: str
    axes: tuple[str, ...]
    before: PartitionSpec
    after: PartitionSpec
    tensor: ArrayShape
    definition: str
    number: int | None
    """Of the program's argument that it is; None for other values."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.meshes = Meshes(text)
        self.places = dict(NAMED_PLACE.findall(text))
        self.sizes = next((sizes for sizes in self.meshes.sizes.values() if sizes), {})
        self.walk = Walk(text)
        self.arguments: list[SplitArgument] = []
        self.callers: dict[str, tuple[str, str, int]] = {}
        """The function around the first call of each function, the name of that call, and its line."""
        self.calls: Counter[str] = Counter()

    def read(self) -> Iterator[Meeting]:
        found: list[_Found] = []
        walk = self.walk
        for operation in walk.operations():
            if call := _CALL.match(operation.text):
                called = call[1].strip('"')
                self.calls[called] += 1
                call_place = operation.function.name, self._place(operation.text), operation.order
                self.callers.setdefault(called, call_place)
            elif match := _RESHARD.match(operation.text):
                found += self._found(operation, match[1], match.end(), "")
            elif match := _SUM.match(operation.text):
                found += self._found(operation, match[2], match.end(), match[1])
        main = next((each for each in walk.functions if each.name == "main"), None)
        self.arguments = [*self._arguments(main)] if main else []
        return map(self._meeting, sorted(found, key=self._turn))

    def _turn(self, found: _Found) -> tuple[int, ...]:
        """The lines of the calls that lead to a meeting, the outermost first, then its own."""
        calls = [self.callers[each][2] for each in self._around(found.operation.function.name)]
        return (*reversed(calls), found.operation.order)

    def _arguments(self, main: Function) -> Iterator[SplitArgument]:
        returned = set()
        for chunk in main.results:
            with suppress(NotationError):
                tensor = parse_tensor(chunk)
                returned.add((tensor.sizes, tensor.dtype))
        for number, chunk in enumerate(main.arguments):
            place = _ARGUMENT_PLACE.search(chunk)
            at = chunk.find(_SHARDING)
            if place is None or at < 0:
                continue
            try:
                spec = parse_sharding(chunk, at + len(_SHARDING), self.meshes)[0].spec()
                tensor = parse_tensor(chunk)
            except (NotationError, QuestionError):
                continue
            name = place[1] or self.places.get(place[2], "")
            is_returned = (tensor.sizes, tensor.dtype) in returned
            yield SplitArgument(number, name, tensor.sizes, tensor.dtype, spec, is_returned)

    def products(self) -> Iterator[int]:
        """The multiplications of one device in each matmul: of its part of the result, and of what is
        summed."""
        for function in self.walk.functions:
            for body, _ in [*function.definitions.values()]:
                match = _MATMUL.match(body)
                if match is None:
                    continue
                try:
                    left, _, result = [*parse_tensors(body[body.rfind(" : ") :])][-3:]
                    out = self._local(body, result)
                    operand = sharding_of(function, match[1], self.sizes, self.meshes, len(left.sizes))
                except (NotationError, QuestionError, ValueError):
                    continue
                if operand is None or out is None:
                    continue
                summed = left.part([parts(dim) for dim in operand.dims]).sizes
                dims = [int(dim) for dim in match[2].split(",") if dim.strip()]
                yield math.prod(out) * math.prod(summed[dim] for dim in dims)

    def _local(self, body: str, result: ArrayShape) -> tuple[int, ...] | None:
        at = body.find(_PER_VALUE)
        if at < 0:
            return result.sizes
        sharding = next(iter(parse_sharding_list(body, at + len(_PER_VALUE), self.meshes)))[0]
        return result.part([parts(dim) for dim in sharding.dims]).sizes

    def _found(self, operation: MlirOperation, value: str, at: int, summed: str) -> Iterator[_Found]:
        """Read a meeting while the values around it are known: their names come again in other regions."""
        text, function = operation.text, operation.function
        try:
            sharding, sizes, end = parse_sharding(text, at, self.meshes)
            axes = tuple(map(str, parse_axes(summed, sizes)))
            tensor = parse_tensor(text, end)
            before = (
                sharding if axes else sharding_of(function, value, sizes, self.meshes, len(sharding.dims))
            )
            if before is None or (before == sharding and not axes):
                return
            specs = before.spec(), sharding.spec()
        except (NotationError, QuestionError):
            return
        definition = function.definition(value)
        made_by, number = ARGUMENT, None
        if definition is not None and definition[0] != function.header:
            made_by = definition[0]
        elif definition is not None and function.name == "main":
            number = definition[1]
        yield _Found(operation, value, axes, *specs, tensor, made_by, number)

    def _meeting(self, found: _Found) -> Meeting:
        operation = found.operation
        maker, maker_name = found.definition, ""
        if maker != ARGUMENT:
            maker, maker_name = self._named(operation.function.name, maker)
        user = self._user(operation)
        consumer, consumer_name = self._named(operation.function.name, user)
        own = self._qualified(operation.function.name, self._place(operation.text))
        return Meeting(
            "sum" if found.axes else "reshard",
            found.axes or _moved(found.before, found.after),
            found.before,
            found.after,
            found.tensor.sizes,
            found.tensor.dtype,
            maker,
            consumer,
            maker_name or own,
            consumer_name,
            own,
            self._argument(found) if maker in (ARGUMENT, "optimization_barrier") else "",
            math.prod(self.calls[each] for each in self._around(operation.function.name)),
            _made_shape(user),
        )

    def _argument(self, found: _Found) -> str:
        for one in self.arguments:
            if one.number == found.number:
                return one.name
        known = found.tensor.sizes, found.before.dims
        for one in self.arguments:
            if known in ((one.shape, one.spec.dims), (one.shape[1:], one.spec.dims[1:])):
                return one.name
        return ""

    def _user(self, operation: MlirOperation) -> str:
        """The first line below that takes the value."""
        taken = re.compile(rf"{re.escape(operation.value)}(?![\w$.-])")
        for line in self.lines[operation.order :]:
            if line.lstrip().startswith("func.func"):
                return ""
            if taken.search(line):
                return line.strip().partition(" = ")[2] or line.strip()
        return ""

    def _named(self, function: str, line: str) -> tuple[str, str]:
        """The operation on a line, and its name."""
        match = _OPERATION.match(line)
        name = self._qualified(function, self._place(line))
        if match is None:
            return "", name
        opcode = match[1]
        if opcode == "call" and (call := _CALL.match(line)):
            opcode = call[1].strip('"')
        return opcode, name

    def _place(self, line: str) -> str:
        place = PLACE.search(line)
        return (place[2] or self.places.get(place[1], "")) if place else ""

    def _qualified(self, function: str, name: str) -> str:
        """A name with those of the calls that lead to its function: bodies name their operations anew."""
        for each in self._around(function):
            name = "/".join(filter(None, (self.callers[each][1], name)))
        return name

    def _around(self, function: str) -> Iterator[str]:
        """A function that is called, and those that call it, the innermost first."""
        seen: set[str] = set()
        while function in self.callers and function not in seen:
            seen.add(function)
            yield function
            function = self.callers[function][0]


def _made_shape(line: str) -> tuple[int, ...]:
    """The shape of the array that the operation of a line makes, () where that is not one array."""
    try:
        return [*parse_tensors(line[line.rfind(" : ") :])][-1].sizes
    except (NotationError, QuestionError, IndexError):
        return ()


def _moved(before: PartitionSpec, after: PartitionSpec) -> tuple[str, ...]:
    """The axes that do not stay where they are in a dimension, as its major part."""
    moved: list[str] = []
    for old, new in zip(before.dims, after.dims, strict=True):
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        moved += [axis for axis in (*old[same:], *new[same:]) if axis not in moved]
    return tuple(moved)
