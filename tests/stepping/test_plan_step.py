"""A step of a plan as a collective: it leaves every device what the plan's next layout says."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.frames import Frames
from shardviz.collectives.operations.several_dims import AllToAllOfSeveral, PSumScatterOfSeveral
from shardviz.errors import QuestionError
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.hardware.timelines import Timeline
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.plan import Plan
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import Training
from shardviz.planner.training import with_backward
from shardviz.sharding import Layout, PartitionSpec
from shardviz.stepping.collective_matmul import matmul_of_step
from shardviz.stepping.collective_run import compare_with_jax, run_on
from shardviz.stepping.plan_step import collective_steps, question_of_step
from shardviz.stepping.question import counted
from shardviz.targets import TARGETS
from tests.conftest import MATRIX_SPECS


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


def test_every_step_keeps_the_array() -> None:
    seen = set()
    followed = gathered = 0
    for left in MATRIX_SPECS:
        for right in ("X_", "_Y", "YX", "(XY)_", "_(YX)"):
            made = planned(f"{left},{right}->_(YX)")
            for number in collective_steps(made):
                step = made.steps[number - 1]
                seen.add(step.op)
                question = question_of_step(made, number)
                frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
                if frames.after.ndim > question.shards.ndim:
                    # Every device has the pieces of its group, one after the other.
                    for group in question.layout.mesh.groups(step.axes):
                        pieces = question.shards[list(group)]
                        assert all((frames.after[position] == pieces).all() for position in group)
                    assert question.final_spec == ""
                    gathered += 1
                    continue
                followed += 1
                after = Layout(question.layout.array.with_spec(step.to_spec), question.layout.mesh)
                before = whole(question.layout, question.shards)
                assert (whole(after, frames.after) == before).all(), (made, number)
    assert "all_gather" in seen
    assert followed > gathered


def test_a_halo_is_sent_as_a_vector_over_its_axes():
    program = "Y = conv(X[b,t,d], W[k,d], t)"
    mesh, specs, sizes = parse_mesh("data=2,seq=4"), "X=data seq _, Y=data seq _", "b=8,t=64,d=8,k=4"
    made = plan(problem_from_text(program, mesh=mesh, specs=specs, sizes=sizes))
    question = question_of_step(made, 1)
    assert question.layout.array.shape == (4 * 4 * 3 * 8,)
    assert question.spec == "P('seq')"


def test_what_rows_weigh_is_scattered_as_a_vector_of_sums():
    """In the backward pass each of 4 devices has a part of the sum of each of 4 × 2 × 16 rows."""
    program = "O = attention(Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h])"
    specs, sizes = "K=_ Y _ _,V=_ Y _ _,O=_ _ _ _", "b=2,t=1,s=8192,n=16,h=128"
    forward = problem_from_text(program, mesh=parse_mesh("Y=4"), specs=specs, sizes=sizes)
    made = plan(with_backward(forward, Training("none")))
    number, step = next(each for each in enumerate(made.steps, 1) if each[1].op == "psum_scatter")
    question = question_of_step(made, number)
    assert (step.array, question.layout.array.shape) == ("dQ", (4 * 2 * 16,))
    assert question.spec == "P(None, unreduced={'Y'})"
    frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
    assert question.operation.name == "psum_scatter"
    assert {frames.after.shape[-1]} == {2 * 16}


@pytest.mark.parametrize(
    ("einsum", "specs", "mesh", "op", "kind"),
    [
        ("bd,df->bf", "_(YX),(XY)_->XY", "X=2,Y=4", "psum_scatter", PSumScatterOfSeveral),
        ("bd,df->bf", "_(XY),(XY)_->YX", "X=2,Y=4", "psum_scatter", PSumScatterOfSeveral),
        ("bde,bde->bde", "XYZ,___->(XYZ)__", "X=2,Y=2,Z=2", "all_to_all", AllToAllOfSeveral),
        ("bde,bde->bde", "_(XY)Z,___->(XYZ)__", "X=2,Y=2,Z=2", "all_to_all", AllToAllOfSeveral),
        ("bde,bde->bde", "_XY,___->(XY)__", "X=2,Y=4", "all_to_all", AllToAllOfSeveral),
        ("bde,bde->bde", "(YX)__,___->_XY", "X=2,Y=4", "all_to_all", AllToAllOfSeveral),
        ("bde,bde->bde", "X__,___->_(X:(2)2)(X:(1)2)", "X=4", "all_to_all", AllToAllOfSeveral),
    ],
)
def test_jax_does_the_same(einsum, specs, mesh, op, kind, worker):
    sizes = ",".join(f"{dim}=8" for dim in sorted(set(einsum) - set(",->")))
    made = plan(problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes, dtype="s32"))
    number, step = next(each for each in enumerate(made.steps, 1) if each[1].op == op)
    question = question_of_step(made, number)
    assert isinstance(question.operation, kind)
    frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
    ran = worker.run(*question.for_jax(), TARGETS["cpu"]).result()
    verdict = compare_with_jax(question, frames, ran)
    assert verdict.verification.verdict == "equal"
    after = Layout(question.layout.array.with_spec(step.to_spec), made.problem.mesh)
    if op == "mask":
        assert (whole(after, frames.after) == question.shards[0]).all()
        assert question.schedule.rounds == 0
    else:
        assert (whole(after, frames.after) == whole(question.layout, question.shards)).all()


def test_addends_of_a_pending_sum_differ() -> None:
    made = planned("XY,Y_->X_")
    number = next(place for place, step in enumerate(made.steps, 1) if step.op == "psum")
    question = question_of_step(made, number)
    assert question.layout.spec == PartitionSpec((("X",), ()), ("Y",))
    assert len({shard.tobytes() for shard in question.shards}) == 8


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "no step of the plan is named"),
        (3, "step 3 does not exist"),
        (1, "step 1 is einsum, which sends nothing"),
    ],
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


@pytest.mark.parametrize(
    ("machine", "algorithm"),
    [("", "bidirectional-ring"), ("v5e:2x4", "bidirectional-ring"), ("v5e:1x8", "ring"), ("h100:8", "ring")],
)
def test_a_step_over_links_that_close_to_a_ring_goes_both_ways(machine, algorithm):
    resolved = resolve(ProblemForm(machine=machine, targets="none"))
    question = question_of_step(resolved.plan, 2, None, resolved.placed)
    assert question.schedule.algorithm == algorithm


@pytest.mark.parametrize("specs", ["XY,Y_->X_", "XY,_Y->XY"])
def test_a_step_over_gpus_takes_what_its_plan_says(specs):
    """NCCL starts, and reaches a part of the links: the rounds of a ring take the price of the plan."""
    mesh = parse_mesh("X=2,Y=4")
    placed = place_mesh(named_machine("h100:8"), mesh)
    found = plan(problem_from_text("bd,df->bf", mesh=mesh, specs=specs), placed)
    (number,) = collective_steps(found)
    run = run_on(question_of_step(found, number, placed=placed), placed)
    (priced,) = (step for step in price(found, placed).steps if step.is_collective)
    assert run.timeline.seconds == pytest.approx(priced.seconds, rel=1e-6)
    assert min(row.seconds for row in run.rows if isinstance(row, Timeline)) == pytest.approx(priced.seconds)
    matmul = matmul_of_step(found, placed, number, run)
    assert matmul.apart_seconds == pytest.approx(price(found, placed).serial_seconds)
    assert matmul.seconds > priced.seconds


def test_a_step_over_tpus_has_the_start_of_its_collective():
    mesh = parse_mesh("X=2,Y=4")
    placed = place_mesh(named_machine("v5e:2x4"), mesh)
    found = plan(problem_from_text("bd,df->bf", mesh=mesh, specs="XY,_Y->XY"), placed)
    run = run_on(question_of_step(found, 1, placed=placed), placed)
    rounds = sum(load.seconds for load in run.timeline)
    assert run.timeline.seconds == pytest.approx(rounds + 3e-6)
    assert run.cost.seconds(run.schedule.rounds) == pytest.approx(run.timeline.seconds)
    assert all(row.start == 3e-6 for row in run.rows if isinstance(row, Timeline))
