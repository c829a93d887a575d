"""`shardviz.search`: the command's answer as an object."""

from __future__ import annotations

import json

import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.errors import QuestionError

MLP = "btd,df->btf; btf,fd->btd"
SIZES = {"b": 16, "t": 128, "d": 1024, "f": 4096}


def test_it_is_the_answer_of_the_command(capsys):
    found = shardviz.search(MLP, machine="v5e:2x4", sizes=SIZES, backward=True, optimizer="adam")
    sizes = ",".join(f"{dim}={size}" for dim, size in SIZES.items())
    words = ["search", MLP, "--machine", "v5e:2x4", "--sizes", sizes, "--backward", "--optimizer", "adam"]
    assert run([*words, "--json"]) == 0
    assert found.document() == json.loads(capsys.readouterr().out)
    assert found.found[0].seconds == found.document()["found"][0]["step_seconds"]
    assert "MFU" in repr(found)


def test_a_machine_is_needed():
    with pytest.raises(QuestionError, match="a search needs a machine"):
        shardviz.search(MLP, machine=None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"overlap": "some"}, "'some' is not what can overlap"),
        ({"microbatches": 0}, "a step has at least 1 microbatch, not 0"),
    ],
)
def test_what_is_refused(words, message):
    with pytest.raises(QuestionError, match=message):
        shardviz.search(MLP, machine="v5e:2x4", sizes=SIZES, **words)
