"""Rules × parameters: the spec of each, what no rule matches, and what its axes do not divide; and repeated
layers as one: names that differ in their numbers alone, of parameters that are split alike."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shardviz.models.model import Model, ModelParameter
from shardviz.models.rule_set import RuleSet, ShardingRule
from shardviz.sharding import Mesh, PartitionSpec, array_bytes, shard_shape


class UnevenDim(NamedTuple):
    """Dimension `place` of `size` elements, which `parts` devices do not divide: a compiler pads it."""

    place: int
    size: int
    parts: int

    @property
    def padded(self) -> int:
        """The elements after padding."""
        return -(-self.size // self.parts) * self.parts


@dataclass(frozen=True)
class SplitParameter:
    """A parameter and its sharding on a mesh; without `is_matched` no rule says it, and every device has
    all."""

    parameter: ModelParameter
    spec: PartitionSpec
    mesh: Mesh
    is_matched: bool = True

    @cached_property
    def shard_shape(self) -> tuple[int, ...]:
        """The shape of one device's piece, padded where its axes do not divide."""
        return shard_shape(self.parameter.shape, self.spec, self.mesh)

    @cached_property
    def bytes_per_device(self) -> int:
        return array_bytes(self.shard_shape, self.parameter.dtype)

    @property
    def replicas(self) -> int:
        """The number of devices that hold the same data."""
        return self.mesh.size // self.mesh.group_size(self.spec.axes)

    @property
    def uneven(self) -> tuple[UnevenDim, ...]:
        """The dimensions that their axes do not divide: JAX refuses such an array."""
        sizes = zip(self.parameter.shape, self.spec.parts(self.mesh), strict=True)
        return tuple(UnevenDim(index, *size) for index, size in enumerate(sizes) if size[0] % size[1])


@dataclass(frozen=True)
class SplitModel:
    """A model whose parameters are split by rules; `unused` are the rules that no parameter matched."""

    model: Model
    rules: RuleSet
    mesh: Mesh
    parameters: tuple[SplitParameter, ...]
    unused: tuple[ShardingRule, ...]

    @property
    def unmatched(self) -> tuple[SplitParameter, ...]:
        """The parameters of which no rule says anything."""
        return tuple(parameter for parameter in self.parameters if not parameter.is_matched)

    @property
    def uneven(self) -> tuple[SplitParameter, ...]:
        """The parameters with a dimension that its axes do not divide."""
        return tuple(parameter for parameter in self.parameters if parameter.uneven)

    @property
    def bytes_per_device(self) -> int:
        return sum(parameter.bytes_per_device for parameter in self.parameters)


def split_model(model: Model, rules: RuleSet, mesh: Mesh) -> SplitModel:
    """The model, split by the rules. Raises `RuleError` for one that does not fit a parameter or the mesh."""
    used: set[ShardingRule] = set()
    parameters = []
    splits = rules.splits(model.parameters, mesh)
    for parameter, (spec, matched) in zip(model.parameters, splits, strict=True):
        used.update(matched)
        whole = PartitionSpec.replicated(len(parameter.shape))
        parameters.append(SplitParameter(parameter, spec or whole, mesh, spec is not None))
    asked = (*rules.changes, *(() if rules.for_any_model else rules.rules))
    unused = tuple(rule for rule in asked if rule not in used and not _is_of_inputs(rule, rules))
    return SplitModel(model, rules, mesh, tuple(parameters), unused)


def _is_of_inputs(rule: ShardingRule, rules: RuleSet) -> bool:
    """The rule is about activations, which have no parameters."""
    return rules.kind == "logical" and (rule.subject in INPUT_DIMS or rule.subject.startswith("activation"))


INPUT_DIMS = ("batch", "sequence", "length")
"""Logical axes of activations in T5X and Flax; MaxText's begin with `activation`."""


_NUMBER = re.compile(r"(?<![^./])\d+(?![^./])|(?<=layers_)\d+|(?<=layer_)\d+|(?<=blocks_)\d+|(?<=block_)\d+")
"""The number of a layer: a part of a path of its own, ``layers.12.w1``, or behind a word for it,
``layers_12``."""


@dataclass(frozen=True)
class FoldedParameter:
    """Parameters that are alike but for the numbers in their names, of which `first` is one; `name` has all
    numbers: ``model.layers.0–31.mlp.up_proj.weight``."""

    name: str
    first: SplitParameter
    count: int

    @property
    def elements(self) -> int:
        """Elements of all of them."""
        return self.count * self.first.parameter.elements

    @property
    def bytes_per_device(self) -> int:
        """Bytes of a device for all of them."""
        return self.count * self.first.bytes_per_device


def folded(parameters: Iterable[SplitParameter]) -> tuple[FoldedParameter, ...]:
    """All parameters, those that are alike as one, in the order of the first of each."""
    groups: dict[tuple[object, ...], list[SplitParameter]] = {}
    for parameter in parameters:
        own = parameter.parameter
        key = (
            _NUMBER.sub("#", own.name),
            own.shape,
            own.dtype,
            own.spec,
            parameter.spec,
            parameter.is_matched,
        )
        groups.setdefault(key, []).append(parameter)
    return tuple(parameter for group in groups.values() for parameter in _fold(group))


def _fold(group: Sequence[SplitParameter]) -> list[FoldedParameter]:
    """One of all, where every combination of their numbers is there; else each by itself."""
    numbers = [_NUMBER.findall(parameter.parameter.name) for parameter in group]
    ranges = [sorted(set(map(int, column))) for column in zip(*numbers, strict=True)]
    if math.prod(map(len, ranges)) != len(group):
        return [FoldedParameter(parameter.parameter.name, parameter, 1) for parameter in group]
    words = map(number_ranges, ranges)
    name = _NUMBER.sub(lambda _: next(words), group[0].parameter.name)
    return [FoldedParameter(name, group[0], len(group))]


def number_ranges(numbers: Sequence[int]) -> str:
    """``0–31``; ``0,2–5,9`` of numbers in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{first}–{last}" if last > first else str(first) for first, last in runs)
