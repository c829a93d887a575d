"""Rules in every format, and the specs that they give; formats are told apart by what a file holds."""

from __future__ import annotations

import pytest

from shardviz.errors import ShardvizError
from shardviz.models.model import ModelParameter
from shardviz.models.rules.rule_files import function_rules, read_rule_file
from shardviz.models.rules.rule_set import RuleSet, inputs_spec
from shardviz.models.rules.shipped import shipped_names, shipped_rules
from shardviz.notation import parse_mesh, write_spec

MESH = parse_mesh("data=2,fsdp=2,mp=4")
EASYLM = '''
from jax.sharding import PartitionSpec as PS

class LLaMAConfig:
    @staticmethod
    def get_partition_rules():
        """ Parition rules for LLaMA. """
        return (
            # embeddings
            ("transformer/wte/embedding", PS("mp", "fsdp")),
            # atention
            ("attention/(wq|wk|wv)/kernel", PS("fsdp", "mp")),
            ("attention/wo/kernel", PS("mp", "fsdp")),
            ("attention_norm/kernel", PS(None)),
            ('.*', PS(None)),
        )
'''
"""As EasyLM writes them (young-geng/EasyLM, models/llama/llama_model.py)."""
T5X = """
RULES = [
    ('batch', 'data'),
    ('mlp', 'model'),
    ('embed', 'model'),
    ('embed', 'data'),
    ('heads', 'model'),
    ('kv', None),
]
"""
MAXTEXT = """
base_emb_dim: 2048
logical_axis_rules: [
                      ['activation_batch', ['data', 'fsdp', 'fsdp_transpose', 'expert']],  # [all of it]
                      ['mlp', ['fsdp_transpose', 'mp']],
                      ['embed', ['fsdp']],
                      ['norm', 'mp'],
                      ['kv', []],
                    ]
data_sharding: [['data', 'fsdp']]
"""
PLAN = """
base_model_tp_plan = {
    "layers.*.self_attn.q_proj": "colwise",
    "layers.*.self_attn.o_proj": "rowwise",
    "lm_head": "colwise_rep",
}
"""
"""As a configuration class of transformers has it."""


def read(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read_rule_file(str(path))


def spec(rules, name, shape, dims=(), mesh=MESH):
    found, _ = rules.split(ModelParameter(name, shape, "bf16", dims), mesh)
    return None if found is None else write_spec(found)


def test_regular_expressions_of_easylm(tmp_path):
    rules = read(tmp_path, EASYLM, "llama.py")
    assert rules.kind == "patterns"
    assert [rule.place for rule in rules.rules[:2]] == ["line 10", "line 12"]
    assert spec(rules, "transformer/h/0/attention/wq/kernel", (64, 64)) == "fsdp mp"
    assert spec(rules, "transformer/h/0/attention/wo/kernel", (64, 64)) == "mp fsdp"
    assert spec(rules, "transformer/h/0/ffn_norm/kernel", (64,)) == "_"
    assert spec(rules, "step", ()) == "()"


def test_logical_axes_are_tried_in_order(tmp_path):
    """The facts of Flax: with mlp before embed on the model axis, ('embed', 'mlp') has P('data', 'model')."""
    rules = read(tmp_path, T5X, "rules.py")
    mesh = parse_mesh("data=2,model=4")
    assert rules.kind == "logical"
    assert spec(rules, "w", (8, 8), ("embed", "mlp"), mesh) == "data model"
    assert spec(rules, "w", (8, 8), ("embed", "kv"), mesh) == "model _"
    assert spec(rules, "w", (8, 8), ("embed", "embed"), mesh) == "model data"
    assert spec(rules, "w", (8,), ("other",), mesh) is None
    assert write_spec(inputs_spec(rules, mesh)) == "data _"


def test_the_rules_of_maxtext(tmp_path):
    rules = read(tmp_path, MAXTEXT, "base.yml")
    assert [rule.place for rule in rules.rules] == ["line 4", "line 5", "line 6", "line 7", "line 8"]
    assert spec(rules, "w", (8, 8), ("embed", "mlp")) == "fsdp mp"
    assert spec(rules, "w", (8, 8), ("mlp", "norm")) == "mp _"
    assert write_spec(inputs_spec(rules, MESH)) == "(data fsdp) _"


LEVANTER = """
model:
  type: llama
trainer:
  mp: p=f32,c=bf16
  axis_resources:   # of all arrays
    batch: data
    vocab: mp

    mlp: [mp]
    "heads": mp     # and of their keys
    embed: null
  parameter_axis_resources:
    embed: data
optimizer:
  mlp: fsdp
"""


def test_the_tables_of_levanter(tmp_path):
    rules = read(tmp_path, LEVANTER, "llama.yaml")
    assert {rule.subject: rule.split for rule in rules.rules} == {
        "embed": ("data",),
        "batch": ("data",),
        "vocab": ("mp",),
        "mlp": ("mp",),
        "heads": ("mp",),
    }
    assert rules.rules[1].place == "line 7"
    assert spec(rules, "w", (8, 8), ("mlp", "embed")) == "mp data"
    assert write_spec(inputs_spec(rules, MESH)) == "data _"


@pytest.mark.parametrize(
    "table",
    [
        "axis_resources: {batch: [fsdp, data], 'mlp': mp, embed: null}  # one line",
        "axis_resources:\n  batch:\n    - fsdp\n    - 'data'  # the inner one\n  mlp: mp\n  embed:\n",
        "axis_resources:\n  batch:\n  - fsdp\n  - data\n\n  # of all\n  mlp: mp\n  embed: []\nz: {a: b}\n",
    ],
)
def test_all_that_yaml_writes_a_table_in(tmp_path, table):
    rules = read(tmp_path, f"{table}\nparameter_axis_resources: {{}}\n", "llama.yaml")
    splits = {"batch": ("fsdp", "data"), "mlp": ("mp",), "embed": ()}
    assert {rule.subject: rule.split for rule in rules.rules} == splits


def test_a_plan_of_hugging_face(tmp_path):
    rules = read(tmp_path, PLAN, "configuration_llama.py")
    assert rules.kind == "patterns"
    assert spec(rules, "model.layers.31.self_attn.q_proj.weight", (8, 16), ("heads", "embed")) == "mp _"
    assert spec(rules, "model.layers.0.self_attn.o_proj.weight", (16, 8), ("embed", "heads")) == "_ mp"
    assert spec(rules, "lm_head.weight", (32, 16)) == "mp _"
    assert spec(rules, "model.norm.weight", (16,)) is None


def test_styles_of_biases_experts_and_words(tmp_path):
    rules = read(tmp_path, '[rules]\nup = "colwise"\ndown = "rowwise"\nembed = "rowwise"\n', "rules.toml")
    assert spec(rules, "up.bias", (32,), ("mlp",)) == "( mp )"
    assert spec(rules, "experts.up", (4, 32, 8), ("experts", "mlp", "embed")) == "_ mp _"
    assert spec(rules, "down.bias", (8,), ("norm",)) == "_"
    assert spec(rules, "embed_tokens", (64, 8), ("vocab", "embed")) == "mp _"


TOML = """
inputs = "(data fsdp) _"
[rules]
'q_proj' = "mp fsdp"
"o_proj" = "P('fsdp', 'mp')"
norm = "replicated"
"""


def test_toml_with_specs_in_any_notation(tmp_path):
    rules = read(tmp_path, TOML, "rules.toml")
    assert spec(rules, "layers.0.q_proj.weight", (8, 8)) == "mp fsdp"
    assert spec(rules, "layers.0.o_proj.weight", (8, 8)) == "fsdp mp"
    assert spec(rules, "layers.0.norm.weight", (8,)) == "_"
    assert write_spec(inputs_spec(rules, MESH)) == "(data fsdp) _"
    assert write_spec(inputs_spec(rules, MESH, "data _")) == "data _"


def test_a_function_runs_and_gives_specs(tmp_path):
    text = "def split(name, shape):\n    return 'mp _' if len(shape) == 2 else None\n"
    path = tmp_path / "rules.py"
    path.write_text(text)
    rules = read_rule_file(f"{path}:split")
    assert spec(rules, "w", (8, 8)) == "mp _"
    assert spec(rules, "b", (8,)) is None


def test_json_of_patterns_and_of_logical_axes(tmp_path):
    assert spec(read(tmp_path, '{"q_.*": "mp _"}', "a.json"), "q_proj", (8, 8)) == "mp _"
    assert read(tmp_path, '{"embed": "fsdp", "mlp": ["data", "mp"]}', "b.json").kind == "logical"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.toml", "[rules]\nq = 3\n", "line 2: 'q' is given 3, which is not a spec"),
        ("a.toml", "[logical]\nembed = 3\n", "line 2: 'embed' is given 3, which is not a mesh axis"),
        ("a.toml", "[rule]\n", "rule: there is no such key"),
        ("a.toml", "", "it has no [rules] and no [logical]"),
        ("a.toml", "[rules]\n", "there are no rules"),
        ("a.toml", "x", "it is not TOML: Expected '=' after a key"),
        ("a.py", "x = (", "it is not Python: '(' was never closed"),
        ("a.py", "x = 1\n", "it has no list of rules"),
        ("a.py", "x = [('a', 'b')]\ny = [('c', 'd')]\n", "it has several lists of rules"),
        ("a.yml", "foo: 1\n", "it has no list logical_axis_rules and no axis_resources"),
        ("a.yml", "axis_resources:\n  mlp: a b\n", "line 2: 'mlp' is given ['a b']"),
        ("a.yml", "axis_resources: *shared\n", "line 1: '*shared' is not a table"),
        ("a.yml", "axis_resources:\n  mlp: mp\n  <<: *x\n", "line 3: '<<: *x' is not an axis of a table"),
        ("a.yml", "logical_axis_rules: [\n", "line 1: the list logical_axis_rules does not end"),
        ("a.json", "{}", "there are no rules"),
    ],
)
def test_a_bad_file_says_its_line(tmp_path, name, text, error):
    with pytest.raises(ShardvizError) as raised:
        read(tmp_path, text, name)
    assert error in raised.value.message


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("axs _", "line 2: 'q', which q matches: unknown mesh axis 'axs' at character 1 of 'axs _'"),
        ("mp", "line 2: 'q', which q matches: "),
        ("P('mp', None, 'data')", "which q matches: 3 entries for an array of 2 dimensions"),
        ("mp mp", "mesh axis 'mp' is used twice"),
    ],
)
def test_a_spec_that_does_not_fit_says_its_line_and_the_parameter(tmp_path, value, error):
    rules = read(tmp_path, f'[rules]\nq = "{value}"\n', "a.toml")
    with pytest.raises(ShardvizError) as raised:
        spec(rules, "q", (8, 8))
    assert error in raised.value.message


def test_a_pattern_that_is_none(tmp_path):
    with pytest.raises(ShardvizError, match=r"line 2: 'q\(' is not a regular expression: missing \)"):
        spec(read(tmp_path, "[rules]\n'q(' = \"mp _\"\n", "a.toml"), "q", (8, 8))


def test_a_function_that_fails_is_named():
    rules = function_rules(lambda *_: 1 // 0, "mine")
    with pytest.raises(ShardvizError, match="'mine': it fails for w: ZeroDivisionError"):
        spec(rules, "w", (8,))
    with pytest.raises(ShardvizError, match="'mine': '3' does not say how a parameter is split"):
        spec(function_rules(lambda *_: 3, "mine"), "w", (8,))


# Sets that ship.

Q, DOWN = ("q", (64, 32), ("heads", "embed")), ("down", (32, 96), ("embed", "mlp"))


@pytest.mark.parametrize(
    ("text", "mesh", "q", "down", "inputs"),
    [
        ("data", "data=4", "__", "__", "data _"),
        ("fsdp", "fsdp=4", "_ fsdp", "fsdp _", "fsdp _"),
        ("fsdp", "axis=4", "_ axis", "axis _", "axis _"),
        ("tensor", "axis=4", "axis _", "_ axis", "__"),
        ("fsdp+tensor", "data=4,model=2", "model data", "data model", "data _"),
        ("fsdp+tensor", "data=2,fsdp=2,tensor=2", "tensor fsdp", "fsdp tensor", "(data fsdp) _"),
        ("X=fsdp+Y=tensor", "X=2,Y=4", "YX", "XY", "X_"),
        ("data+sequence", "data=2,context=2", "__", "__", "data context"),
        ("fsdp+expert", "data=2,expert=2", "_ data", "data _", "(data expert) _"),
    ],
)
def test_what_a_set_splits(text, mesh, q, down, inputs):
    devices = parse_mesh(mesh)
    rules = shipped_rules(text, devices)
    assert (spec(rules, *Q, devices), spec(rules, *DOWN, devices)) == (q, down)
    assert write_spec(inputs_spec(rules, devices)) == inputs


@pytest.mark.parametrize(
    ("text", "mesh", "error"),
    [
        ("fdsp", "data=4", "there are no rules called 'fdsp'"),
        ("fsdp+tensor", "X=2,Y=4", "the mesh X=2,Y=4 has no axis for fsdp"),
        ("fsdp+data", "data=8", "the axis data is that of fsdp and of data"),
        ("Z=fsdp", "X=2,Y=4", "unknown mesh axis 'Z'"),
    ],
)
def test_sets_that_do_not_fit_the_mesh(text, mesh, error):
    with pytest.raises(ShardvizError) as raised:
        shipped_rules(text, parse_mesh(mesh))
    assert raised.value.message == error


def test_every_set_is_documented():
    from pathlib import Path

    import shardviz

    page = (Path(shardviz.__file__).parent.parent / "docs" / "models.md").read_text(encoding="utf-8")
    for name in shipped_names():
        assert f"| `{name}` |" in page


def test_annotations_that_name_mesh_axes():
    rules = RuleSet("as annotated", "annotations")
    assert spec(rules, "w", (8, 8), ("mp", "")) == "mp _"
    assert spec(rules, "w", (8, 8), ("embed", "mlp")) is None
