"""Rules in every format, and the specs that they give; formats are told apart by what a file holds."""

from __future__ import annotations

import re

import pytest
import yaml

from shardviz.errors import ShardvizError, quote
from shardviz.models import rule_set
from shardviz.models.model import ModelParameter
from shardviz.models.rule_files import function_rules, read_rule_file, shipped_rules, shipped_sets
from shardviz.models.rule_set import RuleSet, ShardingRule, first_found, inputs_spec
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import write_spec

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
    ((found, _),) = rules.splits([ModelParameter(name, shape, "bf16", dims)], mesh)
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


def test_a_bare_list_of_pairs_is_read_as_rules(tmp_path):
    """The list alone, without the configuration around it."""
    rules = read(tmp_path, "- [mlp, mp]\n- [embed, [fsdp, data]]\n- [kv, null]\n", "rules.yaml")
    assert rules.kind == "logical"
    found = [(rule.subject, rule.split, rule.place) for rule in rules.rules]
    assert found == [("mlp", ("mp",), "line 1"), ("embed", ("fsdp", "data"), "line 2"), ("kv", (), "line 3")]
    assert spec(rules, "w", (8, 8), ("embed", "mlp")) == "(fsdp data) mp"


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


@pytest.mark.parametrize(
    "rules",
    [
        "[[batch, [data, fsdp]], [mlp, mp], [norm, null], [embed, ~]]",
        """[
            ["batch", ['data', fsdp]],  # quotes or none
            [mlp, [mp,]], ['norm', []], [embed, [null]],
        ]""",
        "\n  - [batch, [data, fsdp]]\n  - - mlp\n    - - mp\n  - [norm, null]\n  - - embed\n    -\n",
        "\n- !!seq [batch, [data, fsdp]]\n- [mlp, &m mp]\n- [norm, []]\n- [embed, null]\n",
    ],
)
def test_all_that_yaml_writes_a_list_in_is_what_pyyaml_constructs(tmp_path, rules):
    """PyYAML's own loader is the judge: it makes values of the same text."""
    text = f"a: 1\nlogical_axis_rules: {rules}"
    loaded = yaml.safe_load(text)["logical_axis_rules"]
    splits = [(name, [axes] if isinstance(axes, str) else axes or []) for name, axes in loaded]
    wanted = [(name, tuple(axis for axis in axes if axis)) for name, axes in splits]
    assert [(rule.subject, rule.split) for rule in read(tmp_path, text, "a.yml").rules] == wanted
    assert wanted == [("batch", ("data", "fsdp")), ("mlp", ("mp",)), ("norm", ()), ("embed", ())]


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


def test_a_file_is_read_and_not_run(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text("x = [('a', 'mp')]\ndef split(name, shape):\n    return 'mp _'\n")
    assert len(read_rule_file(f"{path}:x").rules) == 1
    with pytest.raises(ShardvizError, match="it has no list 'split'"):
        read_rule_file(f"{path}:split")


def test_a_function_gives_specs():
    rules = function_rules(lambda _, shape: "mp _" if len(shape) == 2 else None, "mine")
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
        ("a.yml", "axis_resources: *shared\n", "line 1: it is not YAML: found undefined alias 'shared'"),
        ("a.yml", "axis_resources: shared\n", "line 1: 'shared' is not a table or a list of pairs"),
        ("a.yml", "axis_resources:\n  mlp: mp\n  <<: 3\n", "line 3: '<<' is not the name of an axis"),
        ("a.yml", "logical_axis_rules: [\n", "line 2: it is not YAML: "),
        ("a.yml", "logical_axis_rules: [[mlp]]\n", "line 1: a list is not a pair of a logical axis"),
        ("a.yml", "logical_axis_rules: [[mlp, 3]]\n", "line 1: '3' is not the name of an axis"),
        ("a.yml", "logical_axis_rules: [[[], mp]]\n", "line 1: a list is not the name of an axis"),
        ("a.yml", "logical_axis_rules:\n", "there are no rules"),
        ("a.yml", "a: 1\n---\nb: 2\n", "line 2: it is not YAML: but found another document"),
        ("a.yml", "a: \x01\n", "it is not YAML: unacceptable character #x0001"),
        ("a.yml", "[" * 5000, "it is not YAML: its lists are too deep"),
        ("a.yml", "#" * 500_001, "it has more than 500,000 bytes"),
        ("a.py", f"x = [('a', {'-' * 100_000}1)]", "its expressions are too deep"),
        ("a.py", f"x = [('a', {'-' * 2_000}1)]", "it has no list of rules"),
        ("a.py", "x = [('a', {[]: 1})]", "it has no list of rules"),
        ("a.py", "[" * 100_000, "it is not Python: too many nested parentheses"),
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


@pytest.mark.parametrize(
    ("pattern", "error"),
    [
        ("a{99999999999999999999}", "the repetition number is too large"),
        ("(" * 5000 + ")" * 5000, "its groups are too deep"),
    ],
)
def test_a_pattern_that_python_refuses_otherwise(pattern, error):
    with pytest.raises(ShardvizError, match=error):
        spec(RuleSet("mine", "patterns", (ShardingRule(pattern, "mp _"),)), "q", (8, 8))


LONG = f"{'a' * 60}.kernel"


@pytest.mark.parametrize("pattern", ["((.*)*)*z", "(a|a)*$|z", r"(?:\w+\.?)+!", "(.*){30}z"])
def test_a_pattern_that_goes_back_for_ever_is_refused(pattern, monkeypatch):
    monkeypatch.setattr(rule_set, "SECONDS", 0.5)
    with pytest.raises(ShardvizError) as raised:
        spec(RuleSet("mine", "patterns", (ShardingRule(pattern, "mp _", "line 4"),)), LONG, (8, 8))
    assert raised.value.message == f"'mine', line 4: the search for {quote(pattern)} takes more than 0.5 s"
    assert "do not repeat" in raised.value.hint


@pytest.mark.slow
def test_the_change_whose_pattern_goes_back_is_named_among_others():
    changes = tuple(ShardingRule(each, "mp _", "a change") for each in ("wq", "(.*)*z", "wk"))
    with pytest.raises(ShardvizError, match=r"a change: the search for '\(\.\*\)\*z' takes more than 5 s"):
        spec(RuleSet("mine", "logical", changes=changes), LONG, (8, 8))


NAMES = ("q", "a.q_proj", "layers.10.w", "a\nb", "{i}", "h{2}", "(.é", "", "k_proj")
PATTERNS = ("^q$", r"[0-9]++\.w", ".", "x|q", "(q|k)_proj", ".{i}", "a*b", r"\(", "é", "h{2}", "", "(?i)Q_")


def test_every_pattern_is_found_where_python_finds_it():
    for ordered in (PATTERNS, PATTERNS[::-1], *((each,) for each in PATTERNS)):
        found = [
            next((place for place, each in enumerate(ordered) if re.search(each, name)), -1) for name in NAMES
        ]
        assert [*first_found(ordered, NAMES)] == found


def test_the_pattern_of_alike_names_needs_no_process(monkeypatch):
    monkeypatch.delattr(rule_set.subprocess, "run")
    assert first_found((r"^model\.layers\.[0-9]++\.w$",), ("model.layers.12.w", "x")) == [0, -1]


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
        ("fsdp+data", "data=8", "fsdp and data share the axis data"),
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
    for name in shipped_sets():
        assert f"| `{name}` |" in page


def test_annotations_that_name_mesh_axes():
    rules = RuleSet("as annotated", "annotations")
    assert spec(rules, "w", (8, 8), ("mp", "")) == "mp _"
    assert spec(rules, "w", (8, 8), ("embed", "mlp")) is None
