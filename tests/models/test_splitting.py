"""Rules × parameters: shards are those that JAX computes; repeated layers are one; nothing goes unsaid."""

from __future__ import annotations

import jax
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from shardviz.models.model import Model, ModelParameter
from shardviz.models.rule_set import RuleSet, ShardingRule, folded, number_ranges


@pytest.mark.parametrize(
    ("source", "rules", "mesh"),
    [
        ("llama-3-70b", "fsdp+tensor", {"data": 16, "tensor": 4}),
        ("mixtral-8x7b", "fsdp+expert", {"data": 2, "expert": 8}),
        ("gemma-2b", "X=tensor", {"X": 4, "Y": 2}),
    ],
)
def test_shards_are_those_of_jax(asked, source, rules, mesh):
    split = asked(source, rules, ",".join(f"{axis}={size}" for axis, size in mesh.items())).split
    devices = AbstractMesh(tuple(mesh.values()), tuple(mesh))
    for each in split.parameters:
        spec = PartitionSpec(*(axes or None for axes in each.spec.dims))
        sharding = NamedSharding(devices, spec)
        assert each.shard_shape == sharding.shard_shape(each.parameter.shape)
        assert each.replicas * each.parameter.elements == devices.size * jax.numpy.prod(
            jax.numpy.array(each.shard_shape, dtype="int32")
        )


def test_repeated_layers_are_one(asked):
    found = folded(asked("llama-2-7b", "tensor", "axis=8").split.parameters)
    assert [(each.name, each.count) for each in found if "q_proj" in each.name] == [
        ("model.layers.0–31.self_attn.q_proj.weight", 32)
    ]
    assert len(found) == 12
    assert sum(each.elements for each in found) == 6_738_415_616


def model(*names, shape=(8, 8)):
    return Model("m", "here", tuple(ModelParameter(name, shape, "f32") for name in names))


def patterns(*pairs):
    rules = (ShardingRule(pattern, spec, f"line {n}") for n, (pattern, spec) in enumerate(pairs, 1))
    return RuleSet("rules.toml", "patterns", tuple(rules))


def test_layers_that_are_split_otherwise_stay_apart(asked):
    rules = patterns((r"layers\.[01]\.", "X_"), (".*", "_X"))
    split = asked(model(*(f"layers.{n}.w" for n in range(6))), rules, "X=2").split
    assert [(each.name, each.count) for each in folded(split.parameters)] == [
        ("layers.0–1.w", 2),
        ("layers.2–5.w", 4),
    ]


def test_names_of_other_libraries_fold(asked):
    names = ("params/layers_0/Dense_0/kernel", "params/layers_1/Dense_0/kernel", "h/0/ln_1", "h/0/ln_2")
    split = asked(model(*names), patterns((".*", "replicated")), "X=2").split
    assert [each.name for each in folded(split.parameters)] == [
        "params/layers_0–1/Dense_0/kernel",
        "h/0/ln_1",
        "h/0/ln_2",
    ]


@pytest.mark.parametrize(("numbers", "text"), [([0, 1, 2], "0–2"), ([0, 2, 3, 9], "0,2–3,9"), ([5], "5")])
def test_ranges(numbers, text):
    assert number_ranges(numbers) == text


def test_what_no_rule_matches_and_rules_that_match_nothing(asked):
    rules = patterns(("q_proj", "X_"), ("k_prj", "X_"), ("q_proj", "_X"))
    split = asked(model("q_proj", "k_proj"), rules, "X=2").split
    assert [each.parameter.name for each in split.unmatched] == ["k_proj"]
    assert [(rule.subject, rule.place) for rule in split.unused] == [
        ("k_prj", "line 2"),
        ("q_proj", "line 3"),
    ]


def test_what_does_not_divide_is_padded(asked):
    split = asked("gpt2", "tensor", "axis=4").split
    ((table, dim),) = [(each, dim) for each in split.uneven for dim in each.uneven]
    assert (table.parameter.name, dim.size, dim.parts, dim.padded) == ("wte.weight", 50257, 4, 50260)
    assert table.shard_shape == (12565, 768)
