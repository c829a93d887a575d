"""A step of a plan as a collective: it leaves every device what the plan's next layout says."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives import Frames
from shardviz.errors import QuestionError
from shardviz.notation import parse_mesh
from shardviz.planner import Plan, plan, problem_from_text
from shardviz.planner.plan import LOCAL_OPS
from shardviz.sharding import Layout, PartitionSpec
from shardviz.stepping.plan_step import StepCost, question_of_step, step_cost
from shardviz.stepping.question import counted

MATRIX_SPECS = ("__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)")


def planned(specs: str, sizes: str = "b=8,d=8,f=8", mesh: str = "X=2,Y=4") -> Plan:
    problem = problem_from_text(
        "bd,df->bf", mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype="s32", axis_types="auto"
    )
    return plan(problem)


def whole(layout: Layout, shards: np.ndarray) -> np.ndarray:
    """The array that the shards are, addends of a pending sum added; fails where copies differ."""
    total = np.zeros(layout.array.shape, dtype=shards.dtype)
    seen: dict[tuple[int, int], np.ndarray] = {}
    for position, (device, shard) in enumerate(zip(layout, shards, strict=True)):
        key = (device.shard, layout.partial(position))
        if key in seen:
            assert (seen[key] == shard).all()
            continue
        seen[key] = shard
        total[tuple(slice(start, stop) for start, stop in device.slices)] += shard
    return total


@pytest.mark.parametrize("result", ["__", "XY", "YX", "(XY)_", "_(YX)"])
def test_every_step_keeps_the_array(result: str) -> None:
    seen = set()
    refused = followed = 0
    for left in MATRIX_SPECS:
        for right in ("X_", "_Y", "YX", "(XY)_", "_(YX)"):
            made = planned(f"{left},{right}->{result}")
            for number, step in enumerate(made.steps, 1):
                if step.op in LOCAL_OPS:
                    continue
                seen.add(step.op)
                try:
                    question = question_of_step(made, number)
                except QuestionError:
                    # It moves axes between several dimensions at once.
                    refused += 1
                    continue
                frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
                if frames.after.ndim > question.shards.ndim:
                    # Every device has the pieces of its group, one after the other.
                    for group in question.layout.mesh.groups(step.axes):
                        pieces = question.shards[list(group)]
                        assert all((frames.after[position] == pieces).all() for position in group)
                    assert question.final_spec == ""
                    continue
                followed += 1
                after = Layout(question.layout.array.with_spec(step.to_spec), question.layout.mesh)
                before = whole(question.layout, question.shards)
                assert (whole(after, frames.after) == before).all(), (made, number)
    assert "all_gather" in seen
    assert followed > refused


def test_addends_of_a_pending_sum_differ() -> None:
    made = planned("XY,Y_->X_")
    number = next(place for place, step in enumerate(made.steps, 1) if step.op == "psum")
    question = question_of_step(made, number)
    assert question.layout.spec == PartitionSpec((("X",), ()), ("Y",))
    assert len({shard.tobytes() for shard in question.shards}) == 8


@pytest.mark.parametrize(
    ("number", "message"),
    [(0, "the plan has no step 0: it has 2"), (3, "no step 3"), (1, "step 1 is einsum, which sends nothing")],
)
def test_steps_that_are_no_collectives(number: int, message: str) -> None:
    with pytest.raises(QuestionError, match=message) as caught:
        question_of_step(planned("XY,Y_->X_"), number)
    assert caught.value.hint == "its collective is step 2 (psum)"


def test_a_large_array_is_followed_without_numbers() -> None:
    made = planned("XY,Y_->X_", "b=1024,d=2048,f=8192")
    assert question_of_step(made, 2).shards is None


@pytest.mark.parametrize(
    ("dtype", "last"),
    [("pred", 1), ("s8", 127), ("u8", 255), ("bf16", 255), ("f8e4m3fn", 15), ("s32", 999), ("u64", 999)],
)
def test_numbers_start_over_where_the_dtype_cannot_tell_them_apart(dtype: str, last: int) -> None:
    values = counted(1000, dtype).astype(np.float64)
    assert values.max() == last
    assert (values == np.arange(1000) % (last + 1)).all()


def test_several_collectives_are_named() -> None:
    made = planned("XY,YX->__")
    places = [place for place, step in enumerate(made.steps, 1) if step.op not in ("einsum", "slice")]
    assert len(places) > 1
    with pytest.raises(QuestionError) as caught:
        question_of_step(made, 99)
    named = [f"{place} ({made.steps[place - 1].op})" for place in places]
    assert caught.value.hint == f"its collectives are steps {', '.join(named[:-1])} and {named[-1]}"


def test_an_algorithm_may_be_chosen_and_a_small_sum_moves_whole() -> None:
    assert question_of_step(planned("XY,Y_->X_"), 2).schedule.algorithm == "ring"
    assert question_of_step(planned("XY,Y_->X_"), 2, "direct").schedule.algorithm == "direct"
    small = planned("XY,Y_->X_", "b=2,d=4,f=2")
    assert question_of_step(small, 2).schedule.algorithm == "recursive-doubling"
    assert question_of_step(small, 2, "ring").schedule.algorithm == "ring"


def of_usual_sizes(specs, mesh):
    return plan(problem_from_text("bd,df->bf", specs=specs, mesh=parse_mesh(mesh)))


def test_usual_algorithms_send_the_least_in_more_rounds_than_the_fewest():
    four = of_usual_sizes("XY,YX->XY", "X=4,Y=8")
    assert step_cost(four, 1) == StepCost("torus", 10, 4_063_232, 5, 4_063_232)
    assert step_cost(four, 2) == StepCost("pairwise", 3, 786_432, 2, 786_432)
    assert step_cost(four, 5) == StepCost("pairwise", 3, 393_216, 2, 393_216)


@pytest.mark.parametrize("specs", ["_X,X_->__", "X_,__->__", "_X,X_->X_", "X_,__->_X"])
def test_the_least_bytes_are_those_of_the_plan(specs):
    found = of_usual_sizes(specs, "X=8")
    for number, step in enumerate(found.steps, 1):
        if step.wire_bytes:
            assert step_cost(found, number).least_wire_bytes == step.wire_bytes


def test_what_sends_nothing_costs_nothing():
    with pytest.raises(QuestionError, match="sends nothing"):
        step_cost(of_usual_sizes("XY,Y_->X_", "X=2,Y=4"), 1)
