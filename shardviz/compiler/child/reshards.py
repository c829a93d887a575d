"""The places in a lowered program where two shardings of a value meet, read off its module once its reshards
are explicit, with its large values; and what in it may be removed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from shardviz.compiler.child.shardy import operations_inside, passes
from shardviz.errors import QuestionError
from shardviz.hlo.mlir.attributes import element_type
from shardviz.hlo.named_scopes import program_place
from shardviz.hlo.text.source_locations import LIBRARY
from shardviz.reports.lowered_module import (
    ARGUMENT,
    CONSTRAINTS,
    FEW_ELEMENTS,
    ExplicitReshards,
    Meeting,
    ScheduleCandidate,
    ShardingCandidate,
    SplitArgument,
    SplitValue,
    ValueKind,
    name_in,
)
from shardviz.sharding import PartitionSpec

RESHARDS = "insert-explicit-reshards"
_AXIS = re.compile(r'"([^"]*)"(?::\((\d+)\)(\d+))?')
_FILE_LINE = re.compile(r'"([^"]+)":(\d+):')
Array = tuple[tuple[int, ...], str]  # shape and dtype
Sizes = tuple[tuple[str, int], ...]  # name and size of each axis of a mesh
Split = tuple[PartitionSpec, Sizes]
"""A spec, and the axes of the mesh that it is of; none for a value of which nothing is said."""


def partitioned(module: ir.Module) -> tuple[str, ExplicitReshards]:
    """The text of a module after all of Shardy's passes, with the place of each operation, and what was seen
    in between, when its reshards were explicit. Raises what the passes raise."""
    with module.context:
        for name in passes(module):
            if name == RESHARDS:
                reshards = Reshards(module).read()
        return module.operation.get_asm(enable_debug_info=True), reshards


@dataclass
class _Change:
    """An operation that changes a sharding, or sums over `axes`, with the function around it, its number
    among all operations, and the first one that takes its result."""

    operation: Any
    function: str
    number: int
    axes: tuple[str, ...]
    before: PartitionSpec
    after: PartitionSpec
    array: Array
    user: Any = None


class Reshards:
    """A module with explicit reshards. One walk finds the changes and for each the operation that takes its
    result next; names come at the end, when all calls are known: a function that is called names its
    operations anew, behind the names of the calls that lead to it."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module  # without it, its operations would go
        top = {
            ir.StringAttr(operation.attributes["sym_name"]).value: operation.operation
            for operation in module.body.operations
        }
        meshes = ((name, each) for name, each in top.items() if each.name == "sdy.mesh")
        self._meshes = {name: _sizes(each.attributes["mesh"]) for name, each in meshes}
        self._devices = max((math.prod(dict(each).values()) for each in self._meshes.values()), default=1)
        self._functions = {name: each for name, each in top.items() if each.name == "func.func"}
        self._calls: Counter[str] = Counter()
        self._callers: dict[str, tuple[str, Any, int]] = {}
        """The first call of each function: the function around it, the operation, and its number."""
        self._known: dict[tuple[Any, int], Split] = {}
        """Shardings that were read: a program has few, and reading one takes as long as all else."""
        self._changes: list[_Change] = []
        self._products = 0
        self._values: dict[tuple[object, ...], tuple[str, Any, SplitValue]] = {}
        """Large values, with the operation that makes each, and the function around it."""
        self._manual: set[str] = set()
        """Functions that are called in a manual computation: their shapes are not global."""

    def read(self) -> ExplicitReshards:
        """Its meetings in the order in which they run, the program's arguments, and its matmuls."""
        self._walk()
        arguments = tuple(self._arguments())

        def order(change: _Change) -> tuple[int, ...]:
            """The numbers of the calls that lead to a change, the outermost first, then its own."""
            calls = [self._callers[callee][2] for callee in self._around(change.function)]
            return (*reversed(calls), change.number)

        meetings = tuple(self._meeting(change, arguments) for change in sorted(self._changes, key=order))
        return ExplicitReshards(meetings, arguments, self._products, tuple(self._named_values()))

    def uneven_constraints(self) -> Iterator[ShardingCandidate]:
        """The constraints, before any pass, whose axes do not divide the value, each as its removal."""
        removals: dict[ShardingCandidate, None] = {}
        for operation in operations_inside(self._module.operation):
            if operation.name == "sdy.sharding_constraint":
                array, split = _array(operation.results[0].type), self._split(operation.results[0])
                if array is not None and split is not None and _is_uneven(split, array[0]):
                    source, at = source_of(operation), str(operation.location)
                    removals[ShardingCandidate(split[0], shape=array[0], source=source, removed=at)] = None
        yield from removals

    def _walk(self) -> None:
        waiting: dict[Any, _Change] = {}
        number = manual_until = 0
        for function, around in self._functions.items():
            for operation in operations_inside(around):
                number += 1
                for operand in operation.operands if waiting else ():
                    if operand in waiting:
                        waiting.pop(operand).user = operation
                if number > manual_until:
                    self._note_values(function, operation)
                match operation.name:
                    case "sdy.manual_computation":
                        inside = sum(1 for _ in operations_inside(operation))
                        manual_until = max(manual_until, number + inside)
                    case "func.call":
                        if number <= manual_until:
                            self._manual.add(_callee(operation))
                        self._calls[_callee(operation)] += 1
                        self._callers.setdefault(_callee(operation), (function, operation, number))
                    case "stablehlo.dot_general":
                        self._products += self._multiplications(operation)[0]
                    case "sdy.reshard" | "sdy.sharding_constraint" | "sdy.all_reduce":
                        change = self._change(operation, function, number)
                        if change is not None:
                            self._changes.append(change)
                            waiting[operation.results[0]] = change

    def _change(self, operation: Any, function: str, number: int) -> _Change | None:
        """The change that an operation makes; None where it changes nothing, or nobody knows from what."""
        (value,), (result,) = operation.operands, operation.results
        array, after = _array(result.type), self._split(result)
        axes: tuple[str, ...] = ()
        if operation.name == "sdy.all_reduce":
            # jaxlib has no class for a list of axes.
            written = _AXIS.findall(str(operation.attributes["reduction_axes"]))
            axes = tuple(f"{name}:({above}){size}" if size else name for name, above, size in written)
        before = after if axes else self._split(value)
        if array is None or after is None or before is None or (before == after and not axes):
            return None
        if before[1] and before[1] != after[1]:
            return None
        return _Change(operation, function, number, axes, before[0], after[0], array)

    def _split(self, value: Any) -> Split | None:
        """The split of a value, by the operation that makes it; one that says nothing leaves it whole."""
        number = 0
        if isinstance(value.owner, ir.Block):
            number = ir.BlockArgument(value).arg_number
            around = value.owner.owner.operation
            if around.name == "sdy.manual_computation":
                # Over the axes that are left to Shardy.
                own = set(map(str, sdy.ManualAxesAttr(around.attributes["manual_axes"])))
                return self._read(around.attributes["in_shardings"], number, own)
            if around.name not in ("func.func", "stablehlo.while"):
                return None
            is_argument = around.name == "func.func"
            said = _attributes_of_argument(around, number) if is_argument else around.attributes
        else:
            number = ir.OpResult(value).result_number
            said = value.owner.attributes
        names = ("sharding", "out_sharding", "out_shardings", "sdy.sharding")
        attribute = next((said[name] for name in names if name in said), None)
        if attribute is None:
            array = _array(value.type)
            return None if array is None else (PartitionSpec.replicated(len(array[0])), ())
        return self._read(attribute, number)

    def _read(self, attribute: Any, number: int, manual: Set[str] = frozenset()) -> Split | None:
        """A sharding of Shardy's, or the one with a number among several, without axes of size 1 and those of
        a manual computation; None where its parts of axes overlap."""
        if not manual and (known := self._known.get((attribute, number))) is not None:
            return known
        sharding = attribute
        if sdy.TensorShardingPerValueAttr.isinstance(attribute):
            sharding = sdy.TensorShardingPerValueAttr(attribute).shardings[number]
        sharding = sdy.TensorShardingAttr(sharding)
        mesh = sharding.mesh_or_ref
        sizes = self._meshes[mesh.value] if isinstance(mesh, ir.FlatSymbolRefAttr) else _sizes(mesh)
        dims = [_axes(sdy.DimensionShardingAttr(each).axes) for each in sharding.dimension_shardings]
        unreduced = () if manual else _axes(sharding.unreduced_axes)
        if left := {*manual, *(name for name, size in sizes if size == 1)}:
            every = (*dims, unreduced)
            *dims, unreduced = (tuple(a for a in dim if a.partition(":")[0] not in left) for dim in every)
        try:
            split = PartitionSpec(tuple(dims), unreduced), sizes
        except QuestionError:
            return None
        if not manual:
            self._known[attribute, number] = split
        return split

    def _multiplications(self, matmul: Any) -> tuple[int, int]:
        """Those of one device, of each element of its part of the result what is summed; and of them all."""
        left = matmul.operands[0]
        own, made = self._split(left), self._split(matmul.results[0])
        array, result = _array(left.type), _array(matmul.results[0].type)
        if own is None or made is None or array is None or result is None:
            return 0, 0
        numbers = stablehlo.DotDimensionNumbers(matmul.attributes["dot_dimension_numbers"])
        summed = [*map(int, numbers.lhs_contracting_dimensions)]
        parts = (_local(own, array[0]), _local(made, result[0])), (array[0], result[0])
        counted = (math.prod(whole) * math.prod(left[dim] for dim in summed) for left, whole in parts)
        return next(counted), next(counted)

    def _note_values(self, function: str, operation: Any) -> None:
        """Note how the large values that an operation makes are split, and what a loop hands on."""
        for number, value in enumerate(operation.results):
            array = _array(value.type)
            split = self._split(value) if array is not None and math.prod(array[0]) > FEW_ELEMENTS else None
            if array is None or split is None:
                continue
            kind: ValueKind = "value"
            argument, products, repeats = "", 0, 1
            match operation.name:
                case "stablehlo.while":
                    kind = self._loop_kind(operation, number)
                case "stablehlo.constant" if not ir.DenseElementsAttr(operation.attributes["value"]).is_splat:
                    kind = "constant"
                case "stablehlo.dynamic_slice" | "func.call":
                    argument = self._sliced_argument(value)
                    kind = "slice" if argument else kind
                case "stablehlo.dot_general":
                    kind = "matmul"
                    own, products = self._multiplications(operation)
                    repeats = own * self._devices // products if products else 1
            if kind == "value" and _is_uneven(split, array[0]):
                kind = "padded"
            record = SplitValue(kind, *array, split[0], argument=argument, products=products, repeats=repeats)
            # What is elementwise is split alike many times over, and both passes take a slice.
            is_one = kind in ("value", "padded", "slice")
            key = (kind, array, split, argument) if is_one else (operation, number)
            self._values.setdefault(key, (function, operation, record))

    def _loop_kind(self, loop: Any, number: int) -> ValueKind:
        """The kind of what a loop ends with: "value" for what it only reads."""
        body = loop.regions[1].blocks[0]
        (*_, end) = body.operations
        value, own = end.operands[number], body.arguments[number]
        if value == own:
            return "value"
        written = self._cut(value, "stablehlo.dynamic_update_slice")
        if written is None or written != own:
            return "carry"
        readers = [use.owner for use in loop.results[number].uses]
        moved = (reader for reader in [*readers] if reader.name == "sdy.reshard")
        readers += [use.owner for reader in moved for use in reader.results[0].uses]
        loops = (name_in(reader.location) for reader in readers if reader.name == "stablehlo.while")
        return "residual" if any(program_place(name).phase == "backward" for name in loops) else "stacked"

    def _cut(self, value: Any, name: str) -> Any:
        """The value of which an operation of this name, or a function around one, takes or writes a slice to
        make another one; None where none does."""
        if isinstance(value.owner, ir.Block):
            return None
        operation, number = value.owner, ir.OpResult(value).result_number
        if operation.name in ("sdy.reshard", "stablehlo.reshape"):
            return self._cut(operation.operands[0], name)
        if operation.name == name:
            return operation.operands[0]
        if operation.name != "func.call":
            return None
        (*_, end) = self._functions[_callee(operation)].regions[0].blocks[0].operations
        inner = self._cut(end.operands[number], name)
        is_given = inner is not None and isinstance(inner.owner, ir.Block)
        return operation.operands[ir.BlockArgument(inner).arg_number] if is_given else None

    def _sliced_argument(self, value: Any) -> str:
        """The path of the argument, handed on by a loop, of which this value is a slice; "" for any other."""
        in_loop, value = False, self._cut(value, "stablehlo.dynamic_slice")
        while value is not None:
            is_argument = isinstance(value.owner, ir.Block)
            owner = value.owner.owner.operation if is_argument else value.owner
            number = ir.BlockArgument(value).arg_number if is_argument else ir.OpResult(value).result_number
            if owner.name == "func.func":
                name = ir.StringAttr(owner.attributes["sym_name"]).value
                if name == "main":
                    return name_in(value.location) if in_loop else ""
                owner = self._callers[name][1] if self._calls[name] == 1 else None
            elif owner.name == "stablehlo.while":
                in_loop |= is_argument
            elif owner.name not in ("sdy.reshard", "stablehlo.optimization_barrier"):
                return ""
            value = None if owner is None else owner.operands[number]
        return ""

    def _named_values(self) -> Iterator[SplitValue]:
        for function, operation, split_value in self._values.values():
            if not self._manual.isdisjoint((function, *self._around(function))):
                continue
            if split_value.kind != "value":
                name = self._name(function, operation)
                split_value = replace(split_value, name=name, source=source_of(operation))
            yield split_value

    def _arguments(self) -> Iterator[SplitArgument]:
        main = self._functions.get("main")
        if main is None:
            return
        kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
        returned = {*map(_array, kind.results)}
        for number, value in enumerate(main.regions[0].blocks[0].arguments):
            array, split = _array(value.type), self._split(value)
            if array is None or split is None or "sdy.sharding" not in _attributes_of_argument(main, number):
                continue
            yield SplitArgument(number, name_in(value.location), *array, split[0], array in returned)

    def _meeting(self, change: _Change, arguments: Sequence[SplitArgument]) -> Meeting:
        function = change.function
        own = self._name(function, change.operation)
        home, value = self._before(function, change.operation.operands[0])
        producer, producer_name, number = ARGUMENT, "", None
        if not isinstance(value.owner, ir.Block):
            producer, producer_name = _opcode(value.owner), self._name(home, value.owner)
        elif home == "main" and value.owner.owner.operation.name == "func.func":
            number = ir.BlockArgument(value).arg_number
        consumer, made, constraint = "", None, None
        if change.user is not None:
            consumer = _opcode(change.user)
            if program_place(name_in(change.user.location)).primitive in CONSTRAINTS:
                constraint = change.user
            made = _array(change.user.results[0].type) if len(change.user.results) == 1 else None
        is_handed_on = producer in (ARGUMENT, "optimization_barrier")
        is_used = change.user is not None
        return Meeting(
            "sum" if change.axes else "reshard",
            change.axes or _moved(change.before, change.after),
            change.before,
            change.after,
            *change.array,
            producer,
            consumer,
            producer_name or own,
            self._name(function, change.user) if is_used else "",
            own,
            _argument(change, number, arguments) if is_handed_on else self._sliced_argument(value),
            math.prod(self._calls[callee] for callee in self._around(function)),
            () if made is None else made[0],
            (
                "" if producer == ARGUMENT else source_of(value.owner),
                source_of(change.user) if is_used else "",
            ),
            "" if constraint is None else str(constraint.location),
            "" if constraint is None else next(_opcode(use.owner) for use in constraint.results[0].uses),
        )

    def _before(self, function: str, value: Any) -> tuple[str, Any]:
        """The value that this one is outside of a loop that only reads it, if functions in between are called
        once; with the function around it."""
        outermost = function, value
        while isinstance(value.owner, ir.Block):
            around, number = value.owner.owner.operation, ir.BlockArgument(value).arg_number
            if around.name == "stablehlo.while" and self._loop_kind(around, number) == "value":
                value = around.operands[number]
                outermost = function, value
            elif around.name == "func.func" and self._calls[function] == 1:
                function, call, _ = self._callers[function]
                value = call.operands[number]
            else:
                break
        return outermost

    def _name(self, function: str, operation: Any) -> str:
        """JAX's name of an operation, behind those of the calls that lead to its function."""
        calls = [self._callers[each][1] for each in self._around(function)]
        names = (name_in(each.location) for each in (*reversed(calls), operation))
        return "/".join(filter(None, names))

    def _around(self, function: str) -> Iterator[str]:
        """A function that is called, and those that call it, the innermost first."""
        seen: set[str] = set()
        while function in self._callers and function not in seen:
            seen.add(function)
            yield function
            function = self._callers[function][0]


def _callee(call: Any) -> str:
    name: str = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    return name


def _opcode(operation: Any) -> str:
    """The operation's name without its dialect; of a call the function's."""
    name: str = operation.name
    return _callee(operation) if name == "func.call" else name.rpartition(".")[2]


def _sizes(mesh: Any) -> Sizes:
    axes = map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh).axes)
    return tuple((axis.name, axis.size) for axis in axes)


def _axes(axes: Sequence[Any]) -> tuple[str, ...]:
    """Axes, and parts of axes as Shardy writes them."""
    names = []
    for axis in map(sdy.AxisRefAttr, axes):
        part = axis.sub_axis_info
        own = None if part is None else sdy.SubAxisInfoAttr(part)
        names.append(axis.name if own is None else f"{axis.name}:({own.pre_size}){own.size}")
    return tuple(names)


def _attributes_of_argument(function: Any, number: int) -> Any:
    if "arg_attrs" not in function.attributes:
        return {}
    return ir.DictAttr(ir.ArrayAttr(function.attributes["arg_attrs"])[number])


def _array(kind: Any) -> Array | None:
    """The shape and dtype of a type; None for one that is not an array of fixed size and known dtype."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return None
    try:
        return tuple(kind.shape), element_type(str(kind.element_type))
    except QuestionError:
        return None


def _counts(split: Split) -> tuple[int, ...]:
    """The number of parts of each dimension."""
    sizes = dict(split[1])
    counts = ([int(axis.partition(")")[2] or sizes[axis]) for axis in dim] for dim in split[0].dims)
    return tuple(map(math.prod, counts))


def _is_uneven(split: Split, shape: Sequence[int]) -> bool:
    return any(size % count for size, count in zip(shape, _counts(split), strict=True))


def _local(split: Split, shape: Sequence[int]) -> tuple[int, ...]:
    """A device's part of a shape, rounded up where the parts are not equal."""
    return tuple(-(-size // count) for size, count in zip(shape, _counts(split), strict=True))


def _argument(change: _Change, number: int | None, arguments: Sequence[SplitArgument]) -> str:
    """The path of the argument that is split anew; see `Meeting`."""
    for one in arguments:
        if one.number == number:
            return one.name
    known = change.array[0], change.before.dims
    for one in arguments:
        if known in ((one.shape, one.spec.dims), (one.shape[1:], one.spec.dims[1:])):
            return one.name
    return ""


def _moved(before: PartitionSpec, after: PartitionSpec) -> tuple[str, ...]:
    """The axes that do not stay where they are in a dimension, as its major part."""
    moved: list[str] = []
    for old, new in zip(before.dims, after.dims, strict=True):
        same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))])
        moved += [*old[same:], *new[same:]]
    return tuple(dict.fromkeys(moved))


def source_of(operation: Any) -> str:
    """The user's innermost line that an operation comes from, ``file:line``."""
    places = _FILE_LINE.findall(str(operation.location))
    return next((f"{file}:{line}" for file, line in places if not LIBRARY.search(file)), "")


def barriers_in(module: ir.Module) -> Iterator[ScheduleCandidate]:
    """The optimization barriers that lines of the user's write, those of a line as one. Those of
    `jax.checkpoint` have its name."""
    found: dict[str, dict[str, None]] = {}
    for operation in operations_inside(module.operation):
        name = program_place(name_in(operation.location))
        if operation.name == "stablehlo.optimization_barrier" and name.primitive == "optimization_barrier":
            source = source_of(operation)
            if source and source == ":".join(_FILE_LINE.findall(str(operation.location))[0]):
                found.setdefault(source, {})[str(operation.location)] = None
    for source, removed in found.items():
        yield ScheduleCandidate((*removed,), source=source)
