"""`shardviz model` on the command line: the page, JSON, errors, and what compilers make of a layer."""

from __future__ import annotations

import json

import pytest

from shardviz.cli.group import run

SMALL = ["--mesh", "data=2,tensor=2", "--batch", "2", "--sequence", "64"]


def test_the_page_and_the_document_agree(capsys):
    words = ["model", "gpt2", "--rules", "fsdp+tensor", *SMALL]
    assert run([*words, "--width", "80"]) == 0
    page = capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert f"{document['parameter_count']:,} parameters" in page
    assert f"{document['step']['collectives']} collectives send" in page


def test_a_checkpoint_without_a_config_is_a_table_and_a_note(capsys, tmp_path):
    text = json.dumps({"wq": {"dtype": "BF16", "shape": [8, 8], "data_offsets": [0, 128]}}).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    rules = tmp_path / "rules.toml"
    rules.write_text("[rules]\nwq = 'tensor _'\n")
    assert run(["model", str(path), "--rules", str(rules), *SMALL]) == 0
    told = capsys.readouterr()
    assert "tensor _  4×8" in told.out
    assert "no step is planned" in told.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["model", "gpt2"], "missing option '--rules'"),
        (["model", "gpt3", "--rules", "fsdp"], "there is no model 'gpt3'"),
        (["model", "gpt2", "--rules", "nothing.toml"], "the file does not exist"),
        (["model", "gpt2", "--rules", "X=data", "--inputs", "q _"], "'q'"),
        (["model", "gpt2", "--rules", "X=data", "--optimizer", "adamw"], "'adamw' is not an optimizer"),
    ],
)
def test_bad_input_is_one_sentence(capsys, words, error):
    assert run(words) == 2
    told = capsys.readouterr().err
    assert told.startswith("shardviz: error: ")
    assert error in told
    assert "Traceback" not in told


def test_compilers_make_of_a_llama_what_is_planned_or_the_answer_says_where_not(capsys):
    """Seed 000: one all-reduce for a pair of matrices, two in a layer, 64 in 32 layers. Simulated CPUs have
    no bf16, and send f32."""
    words = ["model", "llama-2-7b", "--rules", "docs/rules/llama.toml", "--mesh", "axis=8", "--no-backward"]
    assert run([*words, "--sequence", "16", "--target", "shardy,cpu", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    for target in document["targets"]:
        assert {(each["op"], *each["axes"]) for each in target["collectives"]} == {("all-reduce", "axis")}
        assert sum(each["count"] for each in target["collectives"]) == 2 * 32
    told = {name: set() for name in ("shardy", "cpu")}
    for each in document["differences"]:
        told[each["target"]].add(each["code"])
    assert told["shardy"] <= {"as_planned", "combined"}
    assert "promoted_dtype" in told["cpu"]


def test_a_change_says_what_moves(capsys):
    words = ["model", "gpt2", "--rules", "tensor", "--mesh", "tensor=2", "--no-backward", "--sequence", "64"]
    assert run([*words, "--change", "c_attn.weight=replicated", "--width", "80"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("changes\n")
    moved = told.partition("changes\n")[2]
    assert "h.0–11.attn.c_attn  _ tensor  →  _ _" in moved
    assert "40.5 MiB → 81 MiB" in moved
    assert run([*words, "--change", "c_attn=replicated", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["change"]
    assert [each["name"] for each in found["parameters"]][:1] == ["h.0–11.attn.c_attn.weight"]
