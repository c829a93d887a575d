"""The shardings that Shardy's text tells: of a value, of a program's tensors, of what its statements make."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.mlir.attributes import (
    Meshes,
    TensorSharding,
    parse_sharding,
    parse_sharding_list,
    parse_tensors,
)
from shardviz.hlo.mlir.operations import LOOP, MlirModule, MlirOperation, OperationValue
from shardviz.hlo.named_scopes import named_scope
from shardviz.sharding import PartitionSpec

Axes = tuple[tuple[str, ...], ...]
"""The mesh axes of each dimension, major first; a part of an axis as Shardy's ``Y:(1)2``."""

_LISTS = tuple(re.compile(rf"{key} ?= ?(?=\[)") for key in ("in_shardings", "out_shardings"))
_MANUAL_AXES = re.compile(r"manual_axes ?= ?\{([^{}]*)\}")
_QUOTED = re.compile(r'"([^"]*)"')
_RESHARDS = ("sdy.reshard", "sdy.sharding_constraint")
_SINGLE = re.compile(r"(?:\bout_sharding ?= ?|#sdy\.sharding|^%\S+ )(?=<)")
_PER_VALUE = "sdy.sharding_per_value<"
_FIRST_SHARDING = re.compile(rf"(?:\bout_sharding ?= ?|{re.escape(_PER_VALUE)}\[)(?=<)")
ARGUMENT, RESULT, RESHARD = "argument", "result", "reshard"


def sharding_of(value: OperationValue, meshes: Meshes, rank: int) -> TensorSharding | None:
    """A value's sharding as its definition says; None when that is not to be found. A definition that says
    nothing leaves the value whole on every device."""
    operation, index, is_argument = value
    text = operation.text
    if operation.name == "func.func":
        arguments = operation.header.arguments
        text, index = arguments[index] if index < len(arguments) else "", 0
    elif is_argument and operation.name != LOOP:
        match, manual = _LISTS[0].search(text), _MANUAL_AXES.search(text)
        listed = parse_sharding_list(text, match.end(), meshes) if match else []
        inside = listed[index] if index < len(listed) else None
        return inside.without(_QUOTED.findall(manual[1])) if inside and manual else inside
    match = _LISTS[1].search(text)
    if listed := parse_sharding_list(text, match.end(), meshes) if match else each_sharding(text, meshes):
        return listed[index] if index < len(listed) else None
    told = one_sharding(text, meshes)
    return told if told or operation.name == LOOP else TensorSharding(((),) * rank)


def one_sharding(text: str, meshes: Meshes) -> TensorSharding | None:
    """The one that an operation's text, or that of an argument or a result, ends with; None without one."""
    *_, match = (None, *_SINGLE.finditer(text))
    return None if match is None else parse_sharding(text, match.end(), meshes)[0]


def each_sharding(text: str, meshes: Meshes) -> list[TensorSharding]:
    """Those of an operation's results, of which each has its own in a list; none without that list."""
    at = text.rfind(_PER_VALUE)
    return parse_sharding_list(text, at + len(_PER_VALUE), meshes) if at >= 0 else []


@dataclass(frozen=True)
class ShardedTensor:
    """A tensor of the program and how Shardy has it split.

    `op` is what makes it (``dot``), or "argument" or "result" of the program, or "reshard" where the text
    only says that it must be split in another way from there on. `name` is its name in the text, ``%0``;
    arguments and results are numbered from 0. `shape` is global; `dims` has the axes of each dimension,
    `before` those before the pass or reshard, None if open; `unreduced` are the axes of a pending sum."""

    name: str
    op: str
    shape: tuple[int, ...]
    dtype: str
    before: Axes | None
    dims: Axes | None
    unreduced: tuple[str, ...] = ()


def tensor_shardings(module: MlirModule) -> tuple[ShardedTensor, ...]:
    """The arguments, the values and the results of a program, in the order of the text. `before` is open but
    for reshards. What cannot be read is passed over."""
    main = next((function for function in module.functions if function.header.name == "main"), None)
    values = []
    known: dict[OperationValue, Axes | None] = {}
    ends: dict[str, list[ShardedTensor]] = {ARGUMENT: [], RESULT: []}
    if main is not None:
        for op, texts in ((ARGUMENT, main.header.arguments), (RESULT, main.header.results)):
            for number, text in enumerate(texts):
                ends[op] += _tensors(str(number), op, text, text, module.meshes)
        known = {OperationValue(main, int(given.name), True): given.dims for given in ends[ARGUMENT]}
    for operation in module.operations:
        for split in _values(operation, module.meshes, known):
            _, _, index = split.name.partition("#")
            known[OperationValue(operation, int(index or 0))] = split.dims
            values.append(split)
    return (*ends[ARGUMENT], *values, *ends[RESULT])


def changed_shardings(
    before: Sequence[ShardedTensor], after: Sequence[ShardedTensor]
) -> tuple[ShardedTensor, ...]:
    """The splits of `after` that are new or different, each with how its tensor was split before. Values keep
    no names: the third ``dot`` of one text is the third of the other, where both have as many."""
    old: dict[str, list[ShardedTensor]] = defaultdict(list)
    for split in before:
        old[split.op].append(split)
    many = Counter(split.op for split in after)
    alike = Counter(map(_known_as, before))
    seen: Counter[str] = Counter()
    tensors = []
    for split in after:
        seen[split.op] += 1
        if split.op == RESHARD and split.before == split.dims:
            continue
        if len(old[split.op]) == many[split.op]:
            same = old[split.op][seen[split.op] - 1]
            if (same.dims, same.unreduced) != (split.dims, split.unreduced):
                is_same = split.op != RESHARD and same.shape == split.shape
                tensors.append(replace(split, before=same.dims) if is_same else split)
        elif alike[_known_as(split)]:
            alike[_known_as(split)] -= 1
        elif any(split.dims or ()) or split.unreduced:
            tensors.append(split)
    return tuple(tensors)


def _known_as(split: ShardedTensor) -> tuple[object, ...]:
    return split.op, split.shape, split.dims, split.unreduced


def _values(
    operation: MlirOperation, meshes: Meshes, known: Mapping[OperationValue, Axes | None]
) -> list[ShardedTensor]:
    """The values that an operation defines; `known` are the splits of those before it."""
    if not operation.value:
        return []
    types = operation.text.partition(" attributes {")[0]
    types = types[max(types.rfind(" -> "), types.rfind(" : "), 0) :]
    is_reshard = operation.name in _RESHARDS
    op = RESHARD if is_reshard else operation.name.rpartition(".")[2]
    tensors = _tensors(operation.value, op, types, operation.text, meshes)
    if not is_reshard:
        return tensors
    operand = next(iter(operation.operands), None)
    return [replace(split, before=known.get(operand) if operand else None) for split in tensors]


def _tensors(name: str, op: str, types: str, text: str, meshes: Meshes) -> list[ShardedTensor]:
    """Tensors of the types in one text, of which another may have the shardings."""
    is_one = op in (ARGUMENT, RESULT, RESHARD)
    try:
        tensors = parse_tensors(types)[: 1 if is_one else None]
        told = [one_sharding(text, meshes)] if is_one else each_sharding(text, meshes)
        shardings = told or [None] * len(tensors)
    except (NotationError, QuestionError):
        return []
    names = [name] if len(tensors) == 1 else [f"{name}#{index}" for index in range(len(tensors))]
    splits = []
    for name, tensor, sharding in zip(names, tensors, shardings, strict=False):
        split = ShardedTensor(name, op, tensor.sizes, tensor.dtype, None, None)
        if sharding is None:
            splits.append(split)
        elif len(tensor.sizes) == len(sharding.dims):
            dims = tuple(map(sharding.names, sharding.dims))
            splits.append(replace(split, dims=dims, unreduced=sharding.names(sharding.unreduced)))
    return splits


def named_shardings(module: MlirModule, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, PartitionSpec]:
    """The sharding in which each array of `shapes` is left by the operations whose places name it. These
    stand one after the other, with the collectives that add its partial sums or move it at once; what stands
    later moves it for one of its uses."""
    shardings: dict[str, PartitionSpec] = {}
    finished: set[str] = set()
    current = ""
    for operation in module.operations:
        scope = named_scope(location, shapes) if (location := module.place(operation)) else None
        name = scope.name if scope is not None and scope.phase == "forward" else ""
        if name != current and current in shardings:
            finished.add(current)
        current = name
        sharding = _FIRST_SHARDING.search(operation.text)
        if not name or name in finished or sharding is None:
            continue
        try:
            spec = parse_sharding(operation.text, sharding.end(), module.meshes)[0].spec()
            if parse_tensors(operation.text)[-1].sizes == shapes[name]:
                shardings[name] = spec
        except (NotationError, QuestionError, IndexError):
            continue
    return shardings
