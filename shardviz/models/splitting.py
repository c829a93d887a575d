"""Rules × parameters: the spec of each, what no rule matches, and what its axes do not divide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from shardviz.models.model import Model
from shardviz.models.parameter import ModelParameter
from shardviz.models.rules.rule_set import RuleSet, ShardingRule
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
        return tuple(UnevenDim(place, *each) for place, each in enumerate(sizes) if each[0] % each[1])


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
        return tuple(each for each in self.parameters if not each.is_matched)

    @property
    def uneven(self) -> tuple[SplitParameter, ...]:
        """The parameters with a dimension that its axes do not divide."""
        return tuple(each for each in self.parameters if each.uneven)

    @property
    def bytes_per_device(self) -> int:
        return sum(each.bytes_per_device for each in self.parameters)


def split_model(model: Model, rules: RuleSet, mesh: Mesh) -> SplitModel:
    """The model, split by the rules. Raises `RuleError` for one that does not fit a parameter or the mesh."""
    used: set[ShardingRule] = set()
    found = []
    for parameter, (spec, matched) in zip(
        model.parameters, rules.splits(model.parameters, mesh), strict=True
    ):
        used.update(matched)
        whole = PartitionSpec.replicated(len(parameter.shape))
        found.append(SplitParameter(parameter, whole if spec is None else spec, mesh, spec is not None))
    asked = (*rules.changes, *(() if rules.for_any_model else rules.rules))
    unused = tuple(rule for rule in asked if rule not in used and not _is_of_inputs(rule, rules))
    return SplitModel(model, rules, mesh, tuple(found), unused)


def _is_of_inputs(rule: ShardingRule, rules: RuleSet) -> bool:
    """The rule is about activations, which have no parameters."""
    return rules.kind == "logical" and (rule.subject in INPUT_DIMS or rule.subject.startswith("activation"))


INPUT_DIMS = ("batch", "sequence", "length")
"""Logical axes of activations in T5X and Flax; MaxText's begin with `activation`."""
