"""What a walk works out, and what it leaves alone until somebody looks."""

from __future__ import annotations

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.machine import Machine, assumed_machine, place_mesh
from shardviz.hardware.machine_file import named_machine, read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.stepping.collective_run import CollectiveRun, run_on, small_example
from shardviz.stepping.plan_step import question_of_step
from shardviz.stepping.question import question_from_options

NOTHING = dict.fromkeys(
    (
        *("gather_dimension", "scatter_dimension", "split_axis", "concat_axis"),
        *("untiled", "perm", "source", "send_sizes"),
    )
)


def walk(name: str, mesh: str, machine: Machine | None = None, **texts: object) -> CollectiveRun:
    options = dict.fromkeys(("axis", "data", "shape", "spec", "dtype", "algorithm", "pieces"))
    given = {**NOTHING, **{key: texts.pop(key) for key in [*texts] if key in NOTHING}}
    question = question_from_options(name, given, mesh=parse_mesh(mesh), **{**options, **texts})
    return run_on(question, place_mesh(machine or assumed_machine(), question.layout.mesh))


@pytest.mark.parametrize(
    ("name", "mesh", "texts", "algorithm", "bytes_"),
    [
        ("all_gather", "i=4", {"data": "3,9,5,2"}, "ring", 16),
        ("psum", "X=2,Y=4", {}, "torus", 32),
        ("psum", "X=2,Y=4", {"axis": "Y"}, "ring", 16),
        ("psum", "X=1,Y=4", {}, "ring", 16),
        # A shard of fewer elements than devices would leave most chunks of a ring empty.
        ("psum", "i=4", {"data": "3,9,5,2"}, "recursive-doubling", 4),
        ("pmax", "i=5", {"data": "3,9,5,2,7"}, "binomial-tree", 4),
        ("pmean", "X=2,Y=4", {"shape": "56"}, "recursive-doubling", 28),
        ("pmin", "X=2,Y=4", {"shape": "64"}, "torus", 32),
        ("psum", "X=2,Y=3", {"shape": "()"}, "binomial-tree", 4),
        ("psum", "i=4", {"data": "3,9,5,2", "algorithm": "ring"}, "ring", 4),
        ("psum", "i=1", {"data": "3"}, "ring", 4),
        ("psum", "i=4", {"dtype": "pred", "shape": "16"}, "ring", 16),
        ("all_to_all", "i=4", {"dtype": "bf16"}, "pairwise", 8),
        ("ppermute", "i=4", {"perm": "(0,1)"}, "direct", 4),
        ("pbroadcast", "i=4", {}, "binomial-tree", 4),
        ("ragged_all_to_all", "i=2", {"send_sizes": "1,2;0,3"}, "pairwise", 20),
    ],
)
def test_defaults(name: str, mesh: str, texts: dict[str, str], algorithm: str, bytes_: int) -> None:
    made = walk(name, mesh, **texts)
    assert made.schedule.algorithm == algorithm
    assert made.bytes == bytes_
    assert made.frames.after is not None
    assert made.timeline.device_bytes >= made.bound.wire_bytes
    assert algorithm in [row.algorithm for row in made.rows]


def test_a_comparison_runs_nothing() -> None:
    made = walk("psum", "i=8", shape="4194304", dtype="bf16")
    assert made.rows
    assert "frames" not in vars(made)


def test_what_is_followed() -> None:
    assert walk("psum", "i=2048").followed
    assert not walk("psum", "i=65536").followed


def test_comparing_stops_where_it_would_take_minutes() -> None:
    with pytest.raises(QuestionError, match="algorithms are compared over up to 65,536 devices"):
        _ = walk("psum", "i=131072").rows


def test_the_result_of_a_reduction_is_one_copy() -> None:
    made = walk("psum", "X=2,Y=2", axis="Y", data="1,2,3,4,5,6,7,8")
    assert made.question.final_spec == "P('X')"
    assert made.final is not None
    assert made.final.tolist() == [4, 6, 12, 14]


@pytest.mark.parametrize("size", [1, 3, 4, 7, 12])
def test_no_round_of_a_reduction_moves_an_empty_chunk(size: int) -> None:
    for elements in (1, 2, 3, 5, 8, 11):
        for frame in walk("psum", f"i={size}", shape=str(size * elements)).frames:
            for member in range(size):
                assert all(len(piece.values) for piece in frame.pieces(member))


def test_numbers_that_nobody_gave_are_examples() -> None:
    assert walk("psum", "i=4").question.counted
    assert not walk("psum", "i=4", data="0,1,2,3").question.counted
    assert not walk("psum", "i=4", shape="16384x16384").question.counted


PROBLEMS = [
    ("bd,df->bf", "X=2,Y=4", "XY,Y_->X_"),
    ("bd,df->bf", "X=2,Y=4", "XY,Y_->XY"),
    ("bd,df->bf", "X=2,Y=4", "XY,_Y->X_"),
    ("bd,df->bf", "X=2,Y=3", "X_,Y_->_X"),
    ("bsd,df->bsf", "X=2,Y=2,Z=2", "X_Y,YZ->X_Z"),
]


def collectives(einsum, mesh, specs, sizes=""):
    made = plan(problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes))
    numbers = [place for place, step in enumerate(made.steps, 1) if step.op not in ("einsum", "slice")]
    return [question_of_step(made, number) for number in numbers]


@pytest.mark.parametrize(("einsum", "mesh", "specs"), PROBLEMS)
def test_the_rounds_stay_and_no_chunk_is_empty(einsum, mesh, specs):
    dims = {letter for letter in einsum if letter.isalpha()}
    sizes = ",".join(f"{dim}=6144" for dim in sorted(dims))
    questions = collectives(einsum, mesh, specs, sizes)
    assert questions
    for question in questions:
        small = small_example(question)
        assert small is not None
        assert small.schedule is question.schedule
        assert small.layout.spec == question.layout.spec
        walk = run_on(small, place_mesh(assumed_machine(), small.layout.mesh))
        assert walk.frames.after is not None
        assert walk.chunk_bytes == 2


def test_numbers_that_are_few_need_no_others():
    (question,) = collectives("bd,df->bf", "X=2,Y=4", "XY,Y_->X_", "b=8,d=8,f=8")
    assert question.shards is not None
    assert small_example(question) is None


def test_many_devices_have_none():
    (question,) = collectives("bd,df->bf", "X=32,Y=32", "XY,Y_->X_", "b=4096,d=4096,f=4096")
    assert small_example(question) is None


PAIRS = "(0,1),(1,0),(2,3),(3,2),(4,5),(5,4),(6,7),(7,6)"


@pytest.mark.parametrize("perm", ["(0,7),(1,6),(2,5)", "(0,1),(2,3)", "(0,1),(1,0),(2,3)"])
def test_any_permute_through_a_switch_takes_the_time_of_a_shift(perm):
    """Measured on H100: 1 KiB in 11.3 µs."""
    h100 = named_machine("h100:8")
    run = walk("ppermute", "X=8", h100, shape="2048", dtype="f32", perm=perm)
    shift = walk("ppermute", "X=8", h100, shape="2048", dtype="f32", perm="(0,1),(1,2),(2,3)")
    assert run.timeline.seconds == pytest.approx(shift.timeline.seconds)
    assert run.timeline.seconds == pytest.approx(11.8e-6, rel=0.02)


def test_pairs_that_swap_take_what_was_measured_of_such():
    """Measured on H100: 16 MiB in 163 µs, and 238 µs round a ring."""
    h100 = named_machine("h100:8")
    swap, ring = (
        walk("ppermute", "X=8", h100, shape=str(2**25), dtype="f32", perm=perm)
        for perm in (PAIRS, ",".join(f"({n},{(n + 1) % 8})" for n in range(8)))
    )
    assert swap.timeline.seconds == pytest.approx(163e-6, rel=0.1)
    assert ring.timeline.seconds == pytest.approx(238e-6, rel=0.1)


def test_pairs_that_swap_on_a_torus_have_a_start():
    v5e = named_machine("v5e:1x8")
    run = walk("ppermute", "X=8", v5e, shape="2048", dtype="f32", perm=PAIRS)
    assert run.timeline.seconds == pytest.approx(3e-6 + 1e-6 + 1024 / 4.5e10)
    assert run.closed_form.seconds == pytest.approx(run.timeline.seconds)


def test_unequal_parts_start_like_equal_ones():
    h100 = named_machine("h100:8")
    sizes = ";".join([",".join(["4"] * 8)] * 8)
    ragged = walk("ragged_all_to_all", "X=8", h100, shape="256x1024", dtype="f32", send_sizes=sizes)
    equal = walk("all_to_all", "X=8", h100, shape="256x1024", dtype="f32")
    assert ragged.closed_form.seconds == equal.closed_form.seconds > 30e-6
    assert ragged.timeline.seconds == pytest.approx(equal.timeline.seconds)
    assert ragged.closed_form.convention.endswith("as if all parts were equal")


def test_rounds_take_as_long_as_was_measured():
    points = (
        '[{size = "64KiB", time = "17us"}, {size = "1MiB", time = "22us"}, {size = "64MiB", time = "190us"}]'
    )
    text = f'base = "h100:8"\n[[measured]]\nop = "all_gather"\nmesh = "X=8"\naxes = "X"\npoints = {points}\n'
    run = walk("all_gather", "X=8", read_machine(text), shape="262144", dtype="f32", algorithm="ring")
    assert run.closed_form.seconds == pytest.approx(22e-6)
    assert run.timeline.seconds == pytest.approx(22e-6, rel=0.02)


def test_the_network_between_nodes_keeps_its_bandwidth():
    run = walk("psum", "X=16", named_machine("h100:2x8"), shape="16x1048576", dtype="f32")
    assert run.used_links.topology.levels[0].spec.bandwidth == 5e10
    assert run.used_links.topology.levels[1].spec.bandwidth < 4.5e11 * 0.6
