"""The sharding that Shardy gives every tensor of a module, and what a pass changed about it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.mlir.attributes import (
    Meshes,
    TensorSharding,
    parse_sharding,
    parse_sharding_list,
    parse_tensor,
    parse_tensors,
)
from shardviz.hlo.mlir.regions import Walk
from shardviz.hlo.text.shapes import ArrayShape
from shardviz.hlo.text.strip_metadata import strip_metadata

Axes = tuple[tuple[str, ...], ...]
"""The mesh axes of each dimension, major first; a part of an axis as Shardy's ``Y:(1)2``."""

_VALUE = re.compile(r'\s*(%[\w$-]+)(?::\d{1,6})? = "?((?:[\w$]+\.)?[\w$]+)"?')
_SHARDING = "sdy.sharding = #sdy.sharding<"
_PER_VALUE = "sdy.sharding_per_value<"
_RESHARD = re.compile(r"sdy\.(?:sharding_constraint|reshard) (%[\w$#-]+) (?=<)")
ARGUMENT, RESULT, RESHARD = "argument", "result", "reshard"


@dataclass(frozen=True)
class ShardedTensor:
    """A tensor of the program and how Shardy has it split.

    `op` is what makes it (``dot``), or "argument" or "result" of the program, or "reshard" where the text
    only says that it must be split in another way from there on. `name` is its name in the text, ``%0``;
    arguments and results are numbered from 0. `shape` is global; `dims` has the axes of each dimension and
    `before` those before the pass, or before the reshard; None where the text leaves it open. `unreduced`
    are the axes of a pending sum.
    """

    name: str
    op: str
    shape: tuple[int, ...]
    dtype: str
    before: Axes | None
    dims: Axes | None
    unreduced: tuple[str, ...] = ()


def tensor_shardings(text: str) -> tuple[ShardedTensor, ...]:
    """The arguments, the values and the results of a program, in the order of the text.

    `before` is open but for reshards. What cannot be read is passed over.
    """
    meshes = Meshes(text)
    walk = Walk(text)
    for _ in walk.operations():
        pass
    main = next((function for function in walk.functions[1:] if function.name == "main"), None)
    found: list[ShardedTensor] = []
    for op, chunks in ((ARGUMENT, main.arguments), (RESULT, main.results)) if main else ():
        for number, chunk in enumerate(chunks):
            found += _read(str(number), op, chunk, meshes)
    arguments = [split for split in found if split.op == ARGUMENT]
    results = [split for split in found if split.op == RESULT]
    known: dict[str, Axes | None] = {f"%arg{split.name}": split.dims for split in arguments}
    values: list[ShardedTensor] = []
    for line in text.splitlines():
        if match := _VALUE.match(line):
            for split in _values(match[1], match[2].rpartition(".")[2], strip_metadata(line), meshes, known):
                known[split.name] = split.dims
                values.append(split)
    return (*arguments, *values, *results)


def changed_shardings(
    before: Sequence[ShardedTensor], after: Sequence[ShardedTensor]
) -> tuple[ShardedTensor, ...]:
    """The splits of `after` that are new or different, each with how its tensor was split before.

    Values keep no names from one text to the next: the third ``dot`` of one is the third of the other,
    where both have as many.
    """
    old: dict[str, list[ShardedTensor]] = defaultdict(list)
    for split in before:
        old[split.op].append(split)
    many = Counter(split.op for split in after)
    alike = Counter(map(_known_as, before))
    place: Counter[str] = Counter()
    found = []
    for split in after:
        place[split.op] += 1
        if split.op == RESHARD and split.before == split.dims:
            continue
        if len(old[split.op]) == many[split.op]:
            same = old[split.op][place[split.op] - 1]
            if (same.dims, same.unreduced) != (split.dims, split.unreduced):
                is_same = split.op != RESHARD and same.shape == split.shape
                found.append(replace(split, before=same.dims) if is_same else split)
        elif alike[_known_as(split)]:
            alike[_known_as(split)] -= 1
        elif any(split.dims or ()) or split.unreduced:
            found.append(split)
    return tuple(found)


def _known_as(split: ShardedTensor) -> tuple[object, ...]:
    return split.op, split.shape, split.dims, split.unreduced


def _values(
    name: str, op: str, line: str, meshes: Meshes, known: dict[str, Axes | None]
) -> list[ShardedTensor]:
    """The values that a line defines; `known` are the splits of those before it."""
    if reshard := _RESHARD.search(line):
        found = _read(name, RESHARD, line[reshard.end() :], meshes)
        return [replace(split, before=known.get(reshard[1], split.before)) for split in found]
    tensors = _result_types(line)
    names = [name] if len(tensors) == 1 else [f"{name}#{place}" for place in range(len(tensors))]
    shardings: Sequence[TensorSharding | None] = [None] * len(tensors)
    at = line.find(_PER_VALUE)
    if at >= 0:
        try:
            shardings = [each for each, _ in parse_sharding_list(line, at + len(_PER_VALUE), meshes)]
        except NotationError:
            return []
    return [
        _split(one, op, tensor, sharding)
        for one, tensor, sharding in zip(names, tensors, shardings, strict=False)
        if sharding is None or len(tensor.sizes) == len(sharding.dims)
    ]


def _read(name: str, op: str, text: str, meshes: Meshes) -> list[ShardedTensor]:
    """One tensor whose type and whose sharding, if any, stand in `text`."""
    try:
        tensor = parse_tensor(text)
        at = 0 if text.startswith("<") else text.find(_SHARDING) + len(_SHARDING) - 1
        if not text.startswith("<", at):
            return [_split(name, op, tensor, None)]
        sharding = parse_sharding(text, at, meshes)[0]
    except (NotationError, QuestionError):
        return []
    return [_split(name, op, tensor, sharding)] if len(sharding.dims) == len(tensor.sizes) else []


def _split(name: str, op: str, tensor: ArrayShape, sharding: TensorSharding | None) -> ShardedTensor:
    if sharding is None:
        return ShardedTensor(name, op, tensor.sizes, tensor.dtype, None, None)
    dims = tuple(tuple(map(str, axes)) for axes in sharding.dims)
    return ShardedTensor(
        name, op, tensor.sizes, tensor.dtype, None, dims, tuple(map(str, sharding.unreduced))
    )


def _result_types(line: str) -> list[ArrayShape]:
    """The types after the last arrow or colon; none where they cannot be read."""
    types = line.partition(" attributes {")[0]
    types = types[max(types.rfind(" -> "), types.rfind(" : ")) :]
    try:
        return [*parse_tensors(types)]
    except NotationError:
        return []
