"""Combinations to try: how they are written, how many there may be, and which of them nothing beats."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import QuestionError
from shardviz.reports.target_result import TargetResult
from shardviz.reports.trials import Trial, combinations, keywords_of, options_of, parse_try, ranked
from shardviz.timeline.program_timeline import MemoryReport


@pytest.mark.parametrize(
    ("text", "called", "options"),
    [
        ("batch=8,16", {"batch": [8, 16]}, {}),
        ("remat=none, full", {"remat": ["none", "full"]}, {}),
        ("block=(8, 128),(16, 64)", {"block": [(8, 128), (16, 64)]}, {}),
        ("tiles=((8, 128), 2),{'m': 1, 'n': 2}", {"tiles": [((8, 128), 2), {"m": 1, "n": 2}]}, {}),
        ("names=['a', 'b'],'c,d'", {"names": [["a", "b"], "c,d"]}, {}),
        ("scale=1e-3,None,True", {"scale": [1e-3, None, True]}, {}),
        ("option=--xla_flag=true,2", {}, {"xla_flag": ["true", "2"]}),
        ("libtpu=a,b/bin/python", {}, {}),
    ],
)
def test_what_is_typed(text, called, options):
    found = combinations([text])
    for of, wanted in ((keywords_of, called), (options_of, options)):
        assert {name: [of(one)[name] for one in found] for name in of(found[0])} == wanted


@pytest.mark.parametrize("text", ["", "batch", "batch=", "=8", "option=8", "option=xla=", "a b=1"])
def test_what_is_no_try(text):
    with pytest.raises(QuestionError, match="is not a name with values to try"):
        parse_try(text)


def test_every_combination_stands_once():
    found = combinations(["a=1,2,2", "option=b=x,y"])
    assert [[*one.values()] for one in found] == [
        ["1", "x"],
        ["1", "y"],
        ["2", "x"],
        ["2", "y"],
    ]
    with pytest.raises(QuestionError, match="names a twice"):
        combinations(["a=1", "a=2"])
    with pytest.raises(QuestionError, match="these are 72 combinations; at most 64 are tried"):
        combinations(["a=1,2,3,4,5,6,7,8,9", "b=1,2,3,4,5,6,7,8"])


def answer(status: str, memory: int) -> TargetResult:
    return TargetResult("cpu", status, memory=MemoryReport("compiler", 0, 0, 0, 0, memory, None))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=8))
def test_the_best_are_those_that_nothing_beats(figures):
    trials = [Trial({}, answer("ok", memory), seconds=time) for time, memory in figures]
    assert not ranked([Trial({}, TargetResult("shardy", "ok"))])[0].is_best
    found = ranked([*trials, Trial({}, answer("error", 0))])
    assert found[-1].answer.status == "error"
    best = {
        (time, memory)
        for time, memory in figures
        if not any(a <= time and b <= memory and (a, b) != (time, memory) for a, b in figures)
    }
    assert all(one.is_best == ((one.seconds, one.answer.memory.peak_bytes) in best) for one in found)
