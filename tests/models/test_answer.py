"""Answers, and what moves from one to another by a change of a split."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.models.answer import answered, change, read_change, with_changes


def test_a_change_of_a_pair_of_matrices_moves_their_all_reduce(asked):
    """Split by its outputs instead of its inputs, the second matrix of a pair makes no partial sums."""
    question = asked("llama-2-7b", "tensor", "tensor=8", "v5p:2x2x2", training=None, batch=8)
    before = answered(question)
    after = answered(with_changes(question, [read_change("o_proj=tensor _")]))
    moved = change(before, after)
    ((one, other),) = moved.parameters
    assert (one.name, one.count) == ("model.layers.0–31.self_attn.o_proj.weight", 32)
    assert [str(each.first.spec) for each in (one, other)] == ["P(None, 'tensor')", "P('tensor', None)"]
    sums = next(each for each in moved.collectives if (each.part, each.op) == ("layer", "psum"))
    assert sums.bytes[1] < sums.bytes[0]
    assert all(each.counts != (0, 0) for each in moved.collectives)


def test_the_same_answer_moves_nothing(asked):
    answer = answered(asked("gpt2", "data", "data=2", training=None))
    moved = change(answer, answer)
    assert (moved.parameters, moved.collectives) == ((), ())


def test_later_changes_and_rules_give_way_to_the_first_that_matches(asked):
    question = with_changes(
        asked("gpt2", "data", "X=2"), map(read_change, ["c_fc.weight=_X", "c_fc=replicated", "nothing=X_"])
    )
    specs = {each.parameter.name: str(each.spec) for each in question.split.parameters}
    assert specs["h.0.mlp.c_fc.weight"] == "P(None, 'X')"
    assert specs["h.0.mlp.c_fc.bias"] == "P(None)"
    assert [rule.subject for rule in question.split.unused] == ["nothing"]


@pytest.mark.parametrize("text", ["q_proj", "=X_", "q_proj="])
def test_a_change_needs_a_pattern_and_a_spec(asked, text):
    with pytest.raises(QuestionError, match="is not a change of a sharding"):
        with_changes(asked("gpt2", "data", "X=2"), [read_change(text)])


@pytest.mark.parametrize(
    ("tokens", "error"), [({"batch": 0}, "0 sequences"), ({"sequence": -1}, "-1 tokens")]
)
def test_a_step_has_tokens(asked, tokens, error):
    with pytest.raises(QuestionError, match=f"a step cannot have {error}"):
        asked("gpt2", "data", "X=2", **tokens)
