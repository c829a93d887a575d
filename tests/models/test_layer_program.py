"""The programs of a model: they are of its shapes, split as its parameters, and of the operations it has."""

from __future__ import annotations

import math

import pytest

from shardviz.errors import QuestionError
from shardviz.models.answer import planned_step
from shardviz.models.layer_program import model_parts, parameter_specs, spread
from shardviz.models.sources import built_in_names, read_model
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.functions import FUNCTIONS
from shardviz.sharding import Layout, PartitionSpec, ShardedArray


def parts_of(question):
    return {part.name: part.problem for part in model_parts(question.split, question.tokens)}


PLANNED = built_in_names()


@pytest.mark.parametrize("name", PLANNED)
def test_every_model_is_planned_as_programs_with_its_matrices(asked, name):
    """All of its weights but biases, norms of queries and keys, and GPT-2's table of positions are there."""
    question = asked(name, "fsdp", "data=4", batch=4, sequence=64)
    parts = model_parts(question.split, question.tokens)
    of = question.model.architecture
    assert [(part.name, part.problem.layers) for part in (parts[0], parts[-1])] == [
        ("embedding", 1),
        ("logits", 1),
    ]
    assert sum(part.problem.layers for part in parts) == of.layers + 2
    total = 0
    for part in parts:
        arrays = [each for each in part.problem.arguments if each.name not in ("x", "tokens")]
        own = part.problem.layers * sum(math.prod(each.shape) for each in arrays)
        total += of.width if of.tied and part.name == "logits" else own
    assert total == pytest.approx(question.model.elements, rel=1e-2)
    assert total <= question.model.elements


@pytest.mark.parametrize("name", ["llama-2-7b", "llama-3-8b", "gemma-7b"])
def test_a_forward_pass_takes_two_operations_for_each_weight_and_token(asked, name):
    """2·N FLOPs a token (Kaplan and others, 2020), without the embedding's table, and attention beside it."""
    question = asked(name, "data", "data=1", batch=1, sequence=512, training=None)
    of = question.model.architecture
    table, sizes = of.vocab * of.width, dict(of.kinds[0].sizes)
    weights = question.model.elements - (0 if of.tied else table)
    attention = 2 * of.layers * sizes["k"] * sizes["g"] * sizes["h"] * 512
    flops = planned_step(question).flops
    assert flops == pytest.approx(512 * (2 * weights + attention), rel=0.01)


def test_functions_are_those_of_the_family(asked):
    llama = parts_of(asked("llama-3-8b", "data", "data=1"))["layer"]
    gemma = parts_of(asked("gemma-2-9b", "data", "data=1"))["local layer"]
    mixtral = parts_of(asked("mixtral-8x7b", "data", "data=1"))["layer"]

    def functions(problem):
        return [part.function for part in problem.parts]

    assert set(functions(llama) + functions(gemma) + functions(mixtral)) <= set(FUNCTIONS)
    assert functions(llama).count("silu") == 1
    assert functions(gemma).count("gelu") == 1
    assert functions(gemma).count("normalize") == 4
    assert [part.number for part in mixtral.parts if part.function == "top_k"] == [2]


def test_what_is_trained_are_the_weights(asked):
    layer = parts_of(asked("llama-3-8b", "fsdp", "data=8"))["layer"]
    assert layer.parameters == (
        *("input_layernorm", "q_proj", "k_proj", "v_proj", "o_proj", "post_attention_layernorm"),
        *("gate_proj", "up_proj", "down_proj"),
    )
    question = asked("llama-3-8b", "fsdp", "data=8")
    *_, loss = model_parts(question.split, question.tokens, with_loss=True)
    assert loss.problem.parameters == ("norm", "lm_head")


def rows_of_devices(size, spec, mesh):
    """The rows of a dimension, taken apart into those of a size, that each device has."""
    layout = Layout(ShardedArray("W", tuple("abc"[: len(size)]), size, "f32", spec), mesh)
    found = []
    for position in range(mesh.size):
        rows = [0]
        for (start, stop), whole in zip(layout.slices(layout.block(position)), size, strict=True):
            rows = [row * whole + place for row in rows for place in range(start, stop)]
        found.append(rows)
    return found


@pytest.mark.parametrize(
    ("sizes", "mesh", "axes", "found"),
    [
        ((8, 4), "t=4", ("t",), [("t",), ()]),
        ((8, 4), "t=16", ("t",), [("t:(1)8",), ("t:(8)2",)]),
        ((2, 2, 4), "t=8", ("t",), [("t:(1)2",), ("t:(2)2",), ("t:(4)2",)]),
        ((2, 8), "a=2,b=4", ("a", "b"), [("a",), ("b",)]),
        ((1, 8), "t=4", ("t",), [(), ("t",)]),
    ],
)
def test_a_split_over_heads_is_that_over_their_dimensions(sizes, mesh, axes, found):
    devices = parse_mesh(mesh)
    assert spread(axes, sizes, devices) == found
    joined = rows_of_devices((math.prod(sizes),), PartitionSpec((axes,)), devices)
    assert rows_of_devices(sizes, PartitionSpec(tuple(found)), devices) == joined


def test_what_divides_no_dimension_is_padded():
    assert spread(("t",), (8, 4), parse_mesh("t=3")) == [("t",), ()]


def test_a_model_of_unknown_use_has_no_programs(asked, weights):
    question = asked(weights({"w": ("F32", [8, 8])}), "data", "data=2")
    with pytest.raises(QuestionError, match=r"has no config, so the use of its parameters is unknown"):
        model_parts(question.split, question.tokens)


def test_weights_that_are_not_those_of_the_config(asked, weights, config):
    config()
    question = asked(weights({"model.embed_tokens.weight": ("F32", [8, 8])}), "data", "data=2")
    with pytest.raises(
        QuestionError, match=r"has the shape 8×8 for embed_tokens.weight, where its config says"
    ):
        model_parts(question.split, question.tokens)


def test_layers_that_are_split_otherwise_are_not_planned(asked, tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text("[rules]\n'layers.0.*q_proj' = \"X_\"\n'.*' = \"replicated\"\n")
    question = asked("llama-2-7b", str(path), "X=2")
    with pytest.raises(QuestionError, match=r"layers.1.self_attn.q_proj.weight and .* sharded differently"):
        model_parts(question.split, question.tokens)


def test_experts_and_dense_layers_have_matrices_of_one_name():
    """Most layers of DeepSeek-V3 have experts, in the order of its dense ones. Llama 4 Maverick has as many
    dense layers; the matrices of its experts are [experts, width, hidden], those of its router and of dense
    layers [hidden, width]."""
    experts = {"gate_proj": PartitionSpec((("expert",), (), ("fsdp",)))}
    deepseek = parameter_specs(read_model("deepseek-v3"), experts)
    assert deepseek["mlp.experts.gate_proj.weight"].dims == (("expert",), (), ("fsdp",))
    assert deepseek["mlp.gate_proj.weight"].dims == ((), ("fsdp",))
    dense = {
        "gate_proj": PartitionSpec((("tensor",), ("fsdp",))),
        "router": PartitionSpec((("expert",), ("fsdp",))),
    }
    llama = parameter_specs(read_model("llama-4-maverick"), dense)
    assert llama["feed_forward.gate_proj.weight"].dims == (("tensor",), ("fsdp",))
    assert llama["feed_forward.experts.gate_up_proj"].dims == (("expert",), ("fsdp",), ("tensor",))
