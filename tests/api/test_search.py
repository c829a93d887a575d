"""What `shardviz.search` refuses; its answers are those of the command, which tests/answers asks too."""

from __future__ import annotations

import json

import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.errors import QuestionError

MLP = "btd,df->btf; btf,fd->btd"
SIZES = {"b": 16, "t": 128, "d": 1024, "f": 4096}


def test_a_machine_is_needed():
    with pytest.raises(QuestionError, match="a search needs a machine"):
        shardviz.search(MLP, machine=None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"overlap": "some"}, "'some' is not an overlap policy"),
        ({"microbatches": 0}, "a step has at least 1 microbatch, not 0"),
        ({"batch": 0}, "a step has at least 1 sequence of 1 token"),
        ({"microbatches": 2}, "microbatches are those of a train step or a pipeline"),
        ({"interleave": 2}, "an interleave is that of a pipeline"),
    ],
)
def test_what_is_refused(words, message):
    with pytest.raises(QuestionError, match=message):
        shardviz.search(MLP, machine="v5e:2x4", sizes=SIZES, **words)


def test_a_model_that_serves_has_the_answer_of_the_command(capsys):
    words = ["search", "gpt2", "--machine", "v5e:2x2", "--serve", "--batch", "8", "--cache", "s8"]
    assert run([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    report = shardviz.search("gpt2", machine="v5e:2x2", serve=True, batch=8, cache="s8")
    assert json.loads(json.dumps(report.document())) == printed
    assert "tokens/s per device" in str(report)
