"""TPU targets: libtpu really compiles, without a TPU. It is in the `test` extra, so here it must be there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from shardviz.compare import differences
from shardviz.compiler.messages import Output
from shardviz.compiler.reading import read_output
from shardviz.forms.examples import examples
from shardviz.forms.resolve import resolve
from shardviz.hardware.placement import AxisRun, axis_runs
from shardviz.hlo.collective import MatmulOrder
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.reports.target_result import TargetResult
from shardviz.targets import EXTRAS, parse_targets

pytestmark = pytest.mark.skipif(not EXTRAS["tpu"].installable, reason="libtpu is for Linux on x86-64")

SCHEDULE_ORDER = Path(__file__).parents[1] / "benchmarks" / "schedule_order.py"
BOOK = "b=1024,d=2048,f=8192"
"""A[1024_X, 2048_Y] · W[2048, 8192_Y], the collective matmul of the scaling book."""


@pytest.fixture(scope="session")
def answer(worker):
    """Asks a target once: `answer('v5e:2x4', 'XY,_Y->XY')`."""
    known = {}

    def ask(target, specs, mesh="X=2,Y=4", sizes=BOOK, einsum="bd,df->bf", order=None):
        key = (target, specs, mesh, sizes, einsum, order)
        if key not in known:
            (asked,) = parse_targets(target)
            problem = problem_from_text(einsum, mesh=parse_mesh(mesh, order), specs=specs, sizes=sizes)
            known[key] = worker.ask(problem, asked)
        return known[key]

    return ask


@pytest.mark.parametrize(
    ("target", "ids", "torus", "ops"),
    [
        # JAX's ring of a tray, its documentation of make_mesh has it.
        ("v2:2x2", (0, 1, 2, 3, 6, 7, 4, 5), (2, 2), {"all-gather"}),
        ("tpu7x:2x2x1", (0, 1, 2, 3, 6, 7, 4, 5), (2, 2, 1), {"all-gather"}),
        ("v5e:2x4", (0, 1, 2, 3, 7, 6, 5, 4), (2, 4), {"collective-permute"}),
    ],
)
def test_the_collective_matmul_of_the_book(answer, target, ids, torus, ops):
    found = answer(target, "XY,_Y->XY")
    assert (found.status, found.error) == ("ok", "")
    assert {each.op for each in found.collectives} == ops
    assert all(each.axes == ("Y",) for each in found.collectives)
    # bf16 stays bf16: a device gathers 512 rows of 2048.
    assert sum(each.bytes for each in found.collectives if each.op == "all-gather") in (0, 512 * 2048 * 2)
    assert (found.placement.ids, found.placement.torus) == (ids, torus)
    assert found.partitioned
    assert dict(found.versions)["libtpu"]


def test_groups_are_device_ids_in_the_order_of_the_mesh(answer):
    gather = answer("v2:2x2", "XY,_Y->XY").collectives[0]
    assert gather.groups == ((0, 1, 2, 3), (6, 7, 4, 5))
    permute = answer("v5e:2x4", "XY,_Y->XY").collectives[0]
    assert {id_ for group in permute.groups for id_ in group} == set(range(8))
    assert not any((a < 4) != (b < 4) for a, b in permute.groups)


def test_where_the_axes_lie(answer):
    mesh = parse_mesh("X=2,Y=4")
    found = answer("v2:2x2", "XY,_Y->XY")
    assert [place.coords for place in found.placement.places[::2]] == [(0, 0), (1, 0), (1, 1), (0, 1)]
    assert axis_runs(found.placement, mesh)[1] == AxisRun("Y", ("x", "core"), 1, True)


def test_the_layer_stack_of_the_multi_chip_document(answer):
    """Four all-gathers of the weights, one a layer; the document's 16384 is 1024 here."""
    found = answer(
        "v4:2x2x1",
        ";".join(["X_,_X->X_"] * 4),
        mesh="X=4",
        sizes="b=1024,e=1024,f=1024,g=1024,h=1024,i=1024",
        einsum="be,ef->bf;bf,fg->bg;bg,gh->bh;bh,hi->bi",
    )
    assert (found.status, found.error) == ("ok", "")
    gathers = [(each.op, each.bytes, each.axes) for each in found.collectives]
    assert gathers == [("all-gather", 1024 * 1024 * 2, ("X",))] * 4
    # Two layers are one instruction, which begins when the weights of both are there.
    assert [each.matmul_order for each in found.collectives] == [
        MatmulOrder(before, 4) for before in (0, 0, 2, 2)
    ]
    assert sorted(found.placement.ids) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("title", "waiting", "taken_apart"),
    [
        ("A stack of four layers", {"v4:2x2x1": 4, "v5e:2x2": 0}, {"v4:2x2x1": 0, "v5e:2x2": 4}),
        ("Collective matmul, all-gather", {"v5e:2x4": 0, "v2:2x2": 1}, {"v5e:2x4": 1, "v2:2x2": 0}),
    ],
)
def test_what_examples_say_of_a_tpu(worker, title, waiting, taken_apart):
    """As they are, in full size: who waits for its gathers, and who multiplies while the pieces come."""
    example = next(each for each in examples() if each.title == title)
    scene = resolve(example.draft)
    asked = [each for each in scene.targets if each.machine is not None]
    assert {each.name for each in asked} <= set(waiting)
    for target in parse_targets(",".join(waiting)):
        found = worker.ask(scene.problem, target)
        assert (found.status, found.error) == ("ok", "")
        gathers = [each for each in found.collectives if each.op == "all-gather"]
        assert len(gathers) == waiting[target.name]
        assert not any(each.is_async for each in gathers)
        assert len(found.collective_matmuls) == taken_apart[target.name]


def test_a_reduction_across_slices(answer):
    found = answer("2*v5e:4x4", "_X,XY->_Y", mesh="X=2,Y=16")
    assert (found.status, found.error) == ("ok", "")
    (reduced,) = found.collectives
    assert (reduced.op, reduced.axes, reduced.between_slices) == ("all-reduce", ("X",), True)
    assert reduced.groups[0] == (0, 16)
    assert [place.slice for place in found.placement.places] == [0] * 16 + [1] * 16
    assert axis_runs(found.placement, parse_mesh("X=2,Y=16"))[0].along == ("slice",)


def test_slices_may_lie_across_an_inner_axis(answer):
    found = answer("3*v5e:2x2", "_Y,Y_->__", mesh="X=2,Y=6", sizes="b=96,d=96,f=96")
    assert (found.status, found.error) == ("ok", "")
    slices = [place.slice for place in found.placement.places]
    assert slices == [0, 0, 1, 1, 2, 2] * 2
    assert any(each.between_slices for each in found.collectives)
    homes = dict(zip(found.placement.ids, slices, strict=True))
    for each in found.collectives:
        for group in each.groups:
            assert len({homes[id_] for id_ in group}) == (len(group) if each.between_slices else 1)


def test_a_mesh_that_jax_does_not_place(answer):
    found = answer("v5p:4x4x4", "_X,X_->__", mesh="X=8,Y=8")
    assert found.status == "unavailable"
    assert found.error.startswith("jax.make_mesh does not place a mesh of 8x8 on v5p:4x4x4")
    assert "--device-order row-major" in found.hint
    assert "X=4,Y=16" in found.hint
    assert "X=2,Y=32" not in found.hint


@pytest.mark.parametrize(
    ("order", "ids"), [("row-major", (0, 1, 2, 3)), ("3,2,1,0", (3, 2, 1, 0)), (None, (0, 1, 3, 2))]
)
def test_the_order_of_the_devices_may_be_given(answer, order, ids):
    found = answer("v5e:2x2", "X_,_Y->XY", mesh="X=2,Y=2", sizes="b=8,d=128,f=128", order=order)
    assert (found.status, found.error) == ("ok", "")
    assert found.placement.ids == ids
    assert found.collectives == ()


def test_one_device_has_nothing_to_send(answer):
    found = answer("v6e:1x1", "__,__", mesh="X=1", sizes="b=8,d=128,f=128")
    assert (found.status, found.collectives, found.partitioned) == ("ok", (), ())


@pytest.mark.since_jax("0.10", "its libtpu does not check for room")
def test_no_room_on_a_device_says_what_would_help(answer):
    found = answer("v2:2x2", "XY,Y_->X_", sizes="b=65536,d=65536,f=131072")
    assert found.status == "error"
    assert found.error.startswith("does not fit: ")
    assert "over 7.48 GiB of HBM" in found.error
    assert "smaller --sizes" in found.hint
    memory = found.memory
    assert memory.limit_bytes is not None
    assert memory.peak_bytes - memory.over_bytes == memory.limit_bytes
    # What is there before anything runs, and what is allocated for it.
    a, w = 65536 // 2 * 65536 // 4 * 2, 65536 // 4 * 131072 * 2
    assert memory.argument_bytes == a + w
    assert {each.name for each in memory.buffers} > {"A", "W"}
    assert memory.buffers[0].bytes == max(each.bytes for each in memory.buffers)


def test_a_failure_inside_the_compiler_is_an_answer_with_a_hint(matmul):
    """libtpu 0.0.52 ends so at times for chips with SparseCores."""
    said = "INTERNAL: async-update instruction should have 1 operands but sees 2"
    (target,) = parse_targets("v6e:2x4")
    found = read_output(
        Output(TargetResult(target.name, "error", error=said)), matmul("XY,Y_->X_"), target, ()
    )
    assert (found.status, found.error, found.collectives) == ("error", said, ())
    assert "another chip" in found.hint


@pytest.mark.parametrize(("dtype", "packed"), [("s8", "4 s8"), ("f16", "2 f16")])
def test_narrow_numbers_are_packed_and_as_many_bytes(worker, matmul, dtype, packed):
    problem = matmul("XY,Y_->X_", dtype=dtype)
    (target,) = parse_targets("v5e:2x4")
    found = differences(plan(problem), worker.ask(problem, target))
    assert [(each.code, packed in each.message) for each in found] == [("packed_dtype", True)]


def test_operands_of_f32_are_moved_as_bf16(worker, matmul):
    problem = matmul("Y_,_Y->_Y", sizes="b=512,d=1024,f=2048", dtype="f32")
    (target,) = parse_targets("v2:2x2")
    (found,) = differences(plan(problem), worker.ask(problem, target))
    assert found.code == "narrowed_dtype"
    assert "carries 1,048,576 bytes instead of 2,097,152" in found.message


@pytest.mark.slow
def test_the_first_meshes_of_a_search_are_faster_than_the_last_by_the_schedule():
    """As docs/search.md has it of five programs."""
    namespace = runpy.run_path(str(SCHEDULE_ORDER))
    rows = namespace["ordered"](namespace["PROBLEMS"][0])
    assert len({row.mesh for row in rows}) == 6
    assert max(row.compiled for row in rows[:3]) < min(row.compiled for row in rows[3:])
