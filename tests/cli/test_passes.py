"""`shardviz passes`: the README's example, and wrong questions."""

from __future__ import annotations

import json

import pytest

from shardviz.cli.group import run

QUESTION = ("passes", "bd,df->bf", "--mesh", "X=2,Y=4", "--sizes", "b=8,d=2048,f=8192")
SPECS = ("--specs", "XY,Y_->X_")


def test_the_readmes_example_as_text_and_as_json(capsys):
    assert run([*QUESTION, *SPECS, "--width", "100", "-v"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "    %0  dot  bf16[8,8192]  ? → X_\n" in out
    assert "    + all-reduce over Y  bf16[4,8192]  65,536 bytes  98,304 sent\n" in out
    assert "    + all-reduce over Y  f32[4,8192]   131,072 bytes  196,608 sent\n" in out
    assert run([*QUESTION, *SPECS, "--json", "--diff", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    kinds = ["input", "propagation", "partitioner", "rewrite", "schedule"]
    assert [stage["kind"] for stage in found["stages"]] == kinds
    assert ["diff" in stage for stage in found["stages"]] == [False, False, True, False, False]
    assert found["answer"]["status"] == "ok"


CASES = [
    (QUESTION, "passes needs --specs", "--specs 'XY,Y_->X_'"),
    ((*QUESTION, "--specs"), "passes needs --specs", "--specs 'XY,Y_->X_'"),
    ((*QUESTION, *SPECS, "--target", "cpu,shardy"), "2 targets are given", "--target cpu"),
    ((*QUESTION, *SPECS, "--target", "none"), "none is given", "--target cpu"),
    ((*QUESTION, *SPECS, "--target", "v5e:0x4"), "v5e:0x4", ""),
    ((*QUESTION, *SPECS, "--diff", "first"), "'first' is not a valid number of a stage", "--help"),
]


@pytest.mark.parametrize(("words", "message", "hint"), CASES)
def test_a_wrong_question(words, message, hint, capsys):
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, *rest = err.splitlines()
    assert first.startswith("shardviz: error: ")
    assert message in first
    assert hint in "\n".join(rest)


def test_a_stage_that_is_not_there(capsys):
    words = ("passes", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "shardy", "--diff", "99")
    assert run(words) == 2
    assert "stage 99 does not exist\nhint: stages are 1 to 3" in capsys.readouterr().err


def test_what_the_compiler_refuses(capsys):
    assert run([*QUESTION, "--specs", "XY,Y_", "--axis-types", "explicit", "--target", "shardy"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("shardviz: error: shardy: ")
    assert "hint: " in err


def test_a_missing_extra(capsys, monkeypatch):
    monkeypatch.setattr("shardviz.targets.find_spec", lambda _: None)
    assert run([*QUESTION, *SPECS, "--target", "h100:8"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "h100:8 needs the GPU compiler" in err
    assert "-m pip install 'jax[cuda12]'" in err
