"""Collectives that JAX runs in the child: every operation, meshes with an order of devices, and refusals."""

from __future__ import annotations

import os
import signal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, PartitionSpec as P

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.frames import Frames
from shardviz.collectives.operations import (
    AllGather,
    AllToAll,
    PBroadcast,
    PMax,
    PMean,
    PMin,
    PPermute,
    PSum,
    PSumScatter,
    RaggedAllToAll,
)
from shardviz.collectives.values import numpy_dtype
from shardviz.collectives.verification import verify
from shardviz.compiler import Worker
from shardviz.compiler.child.collective import collective_program
from shardviz.compiler.question import run_call
from shardviz.errors import CompilerError, QuestionError, TargetError
from shardviz.sharding import Mesh
from shardviz.targets import TARGETS

CPU, REAL = TARGETS["cpu"], TARGETS["real"]
LINE = Mesh(("i",), (4,))
PLANE = Mesh(("X", "Y"), (2, 4), (3, 1, 0, 2, 7, 6, 5, 4))
SIZES = ((1, 1, 0, 0), (0, 0, 0, 2), (1, 1, 1, 1), (2, 0, 0, 0))
ALL_GATHERED = "JAX has no {} on CPU: an equal program with all_gather ran in its place"

RUNS = [
    (AllGather(("i",)), LINE, "jax.lax.all_gather(x, 'i', axis=0, tiled=True)"),
    (
        AllGather(("Y", "X"), -1, tiled=False),
        PLANE,
        "jax.lax.all_gather(x, ('Y', 'X'), axis=-1, tiled=False)",
    ),
    (PSum(("i",)), LINE, "jax.lax.psum(x, 'i')"),
    (PSum(("X", "Y")), PLANE, "jax.lax.psum(x, ('X', 'Y'))"),
    (PMean(("Y",)), PLANE, "jax.lax.pmean(x, 'Y')"),
    (PMax(("X",)), PLANE, "jax.lax.pmax(x, 'X')"),
    (PMin(("i",)), LINE, "jax.lax.pmin(x, 'i')"),
    (
        PSumScatter(("Y", "X"), -1),
        PLANE,
        "jax.lax.psum_scatter(x, ('Y', 'X'), scatter_dimension=1, tiled=True)",
    ),
    (
        PSumScatter(("i",), 0, tiled=False),
        LINE,
        "jax.lax.psum_scatter(x, 'i', scatter_dimension=0, tiled=False)",
    ),
    (
        AllToAll(("Y",), -1, -2),
        PLANE,
        "jax.lax.all_to_all(x, 'Y', split_axis=1, concat_axis=0, tiled=True)",
    ),
    (
        AllToAll(("i",), 0, 1, tiled=False),
        LINE,
        "jax.lax.all_to_all(x, 'i', split_axis=0, concat_axis=1, tiled=False)",
    ),
    (
        PPermute(("X", "Y"), ((0, 1), (7, 0))),
        PLANE,
        "jax.lax.ppermute(x, ('X', 'Y'), perm=((0, 1), (7, 0)))",
    ),
    (PPermute(("i",), ((0, 1),)), LINE, "jax.lax.ppermute(x, 'i', perm=((0, 1),))"),
    (PBroadcast(("Y", "X"), 3), PLANE, "jax.lax.all_gather(x, ('Y', 'X'))[3]"),
    (RaggedAllToAll(("Y",), SIZES), PLANE, "jax.lax.all_gather(x, 'Y')[rows]"),
    (RaggedAllToAll(("i",), SIZES), LINE, "jax.lax.all_gather(x, 'i')[rows]"),
]


def numbered(mesh, shape, dtype="f32"):
    """Different numbers everywhere, small enough for every sum to be exact."""
    return np.arange(mesh.size * int(np.prod(shape))).reshape(mesh.size, *shape).astype(numpy_dtype(dtype))


@pytest.mark.parametrize(("operation", "mesh", "program"), RUNS, ids=lambda each: str(each)[:60])
def test_every_operation_runs_and_all_algorithms_agree(worker, operation, mesh, program):
    shards = numbered(mesh, (4, 8))
    ran = worker.run(operation, mesh, shards, CPU).result()
    assert (ran.status, ran.error, ran.target) == ("ok", "", "cpu")
    assert ran.program == program
    stands_in = operation.name in ("pbroadcast", "ragged_all_to_all")
    assert ran.note == (ALL_GATHERED.format(operation.name) if stands_in else "")
    assert ran.elapsed_s > 0
    assert dict(ran.versions)["jax"] == jax.__version__
    for schedule in schedules_for(operation.pattern(operation.dims(mesh))):
        ours = Frames(schedule, operation, mesh, shards).after
        verification = verify(operation, mesh, shards, ours, ran.shards)
        assert verification.verdict == "equal", (schedule.algorithm, verification)


@pytest.mark.parametrize("dtype", ["pred", "s4", "u8", "s64", "f64", "c128", "bf16", "f8e4m3fn", "f4e2m1fn"])
def test_every_width_goes_there_and_back(worker, dtype):
    shards = (numbered(LINE, (3,), "s32") % 2).astype(numpy_dtype(dtype))
    ran = worker.run(AllGather(("i",)), LINE, shards, CPU).result()
    assert ran.shards.dtype == shards.dtype
    assert (ran.shards == shards.reshape(-1)).all()
    assert ran.shards.shape == (4, 12)


def test_sums_of_64_bits_are_not_narrowed(worker):
    shards = np.array([[2**40], [1], [1], [1]])
    assert worker.run(PSum(("i",)), LINE, shards, CPU).result().shards.tolist() == [[2**40 + 3]] * 4
    mean = worker.run(PMean(("i",)), LINE, shards, CPU).result().shards
    assert (mean.dtype, mean[0, 0]) == (np.float64, (2**40 + 3) / 4)
    narrow = worker.run(PMean(("i",)), LINE, shards.astype(np.int8), CPU).result().shards
    assert narrow.dtype == np.float32


def test_scalars_and_empty_shards(worker):
    scalars = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    assert worker.run(PSum(("i",)), LINE, scalars, CPU).result().shards.tolist() == [10.0] * 4
    gathered = worker.run(AllGather(("i",), 0, tiled=False), LINE, scalars, CPU).result().shards
    assert gathered.tolist() == [[1.0, 2.0, 3.0, 4.0]] * 4
    empty = np.zeros((4, 0, 3), np.float32)
    assert worker.run(PSum(("i",)), LINE, empty, CPU).result().shards.shape == (4, 0, 3)


def test_one_child_serves_problems_and_collectives(worker, matmul):
    shards = numbered(LINE, (2,))
    before = worker.pids()
    assert worker.run(PSum(("i",)), LINE, shards, CPU).result().status == "ok"
    assert worker.ask(matmul("XY,Y_->X_"), CPU).status == "ok"
    larger = Mesh(("X",), (12,))
    assert (worker.run(PSum(("X",)), larger, numbered(larger, (1,)), CPU).result().shards == 66).all()
    assert worker.pids() == before


def test_stages_are_told_in_order(worker):
    stages: list[str] = []
    worker.run(PSum(("i",)), LINE, numbered(LINE, (2,)), CPU, stages.append).result()
    assert stages[-2:] == ["starting devices", "running"]


def test_real_devices_that_are_too_few_are_unavailable(worker):
    """Eight CPU devices are what JAX finds in these tests."""
    ran = worker.run(PSum(("i",)), LINE, numbered(LINE, (2,)), REAL).result()
    assert ran.shards.tolist() == [[12.0, 16.0]] * 4
    mesh = Mesh(("i",), (16,))
    ran = worker.run(PSum(("i",)), mesh, numbered(mesh, (2,)), REAL).result()
    assert (ran.status, ran.shards) == ("unavailable", None)
    assert ran.error == "the mesh has 16 devices but JAX finds 8 here"
    assert ran.hint == "use cpu, the simulated devices"


class Unchecked(PMax):
    """As `PSum`, but XLA has to refuse by itself."""

    def check(self, shape, dtype, group_size):
        pass


def test_what_xla_refuses_is_an_answer_in_its_words(worker):
    ran = worker.run(Unchecked(("i",)), LINE, np.ones((4, 2), np.complex64), CPU).result()
    assert (ran.status, ran.shards) == ("error", None)
    assert ran.error.startswith("UNIMPLEMENTED: Unsupported reduction computation")


@pytest.mark.parametrize("dtype", ["s2", "u2"])
def test_what_xla_for_cpu_mixes_up_is_refused(worker, dtype):
    with pytest.raises(TargetError, match=f"XLA for CPU does not move {dtype} reliably"):
        worker.run(AllGather(("i",)), LINE, np.ones((4, 2), numpy_dtype(dtype)), CPU)


class Misnamed(PSum):
    name = "psumm"


def test_what_jax_does_not_have_is_an_answer_too(worker):
    ran = worker.run(Misnamed(("i",)), LINE, numbered(LINE, (2,)), CPU).result()
    assert ran.status == "error"
    assert ran.error.startswith("AttributeError: ")
    assert "psumm" in ran.error


def test_a_child_that_dies_under_a_collective_is_an_error_and_the_next_one_runs():
    """As XLA for CPU aborts over some all-gathers of two bits (jaxlib 0.10 and 0.12)."""
    with Worker() as worker:
        worker.run(PSum(("i",)), LINE, numbered(LINE, (2,)), CPU).result()

        def abort(stage):
            if stage == "running":
                os.kill(*worker.pids(), signal.SIGABRT)

        def until_it_dies():
            while True:  # a child may have answered before it is killed
                worker.run(AllGather(("i",)), LINE, numbered(LINE, (9,)), CPU, abort).result(60)

        with pytest.raises(CompilerError) as caught:
            until_it_dies()
        assert caught.value.message == "all_gather on cpu devices was killed by SIGABRT while running"
        assert caught.value.hint == "ask again to start it anew"
        assert worker.run(PSum(("i",)), LINE, numbered(LINE, (2,)), CPU).result().status == "ok"


def test_a_collective_over_the_time_limit_says_what_would_help():
    with Worker(time_limit=0.05) as impatient:
        with pytest.raises(CompilerError) as caught:
            impatient.run(PSum(("i",)), LINE, numbered(LINE, (2,)), CPU).result()
        assert "psum on cpu devices took longer than 0.05 s" in caught.value.message
        assert caught.value.hint == "give it longer with a larger --timeout"


@pytest.mark.parametrize(
    ("operation", "mesh", "count", "target", "error", "message"),
    [
        (PSum(("i",)), LINE, 4, "shardy", TargetError, "target shardy has no devices to run on"),
        (
            PSum(("i",)),
            Mesh(("i",), (4096,)),
            4096,
            "cpu",
            TargetError,
            "the mesh i=4096 has 4,096 devices but cpu has at most 2,048",
        ),
        (PSum(("i",)), LINE, 5, "cpu", QuestionError, "5 shards for the 4 devices of the mesh i=4"),
        (PSum(("j",)), LINE, 4, "cpu", QuestionError, "unknown mesh axis 'j'"),
        (
            PSumScatter(("i",)),
            LINE,
            4,
            "cpu",
            QuestionError,
            "dimension 0 of a shard has 1 element, which 4 devices do not divide",
        ),
        (PBroadcast(("i",), 4), LINE, 4, "cpu", QuestionError, "there is no device 4 in a group of 4"),
    ],
)
def test_what_cannot_run_never_reaches_the_child(worker, operation, mesh, count, target, error, message):
    with pytest.raises(error) as caught:
        worker.run(operation, mesh, np.ones((count, 1), np.float32), TARGETS[target])
    assert caught.value.message == message
    assert caught.value.hint


@pytest.mark.parametrize("devices", [256, pytest.param(2048, marks=pytest.mark.slow)])
def test_two_thousand_devices(devices):
    mesh = Mesh(("i",), (devices,))
    with Worker() as own:  # the others need not share so many devices
        ran = own.run(PSum(("i",)), mesh, np.ones((devices, 1), np.int32), CPU).result()
    assert (ran.shards == devices).all()


def native(operation, platform):
    """The program for a platform that has every collective, and the function of one shard."""
    call = run_call(operation, LINE, numbered(LINE, (4, 2)), CPU)
    function, *told = collective_program(call.arguments[1], platform)
    mesh = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    mapped = jax.shard_map(function, mesh=mesh, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    return told, jax.jit(mapped)


@pytest.mark.parametrize(
    ("operation", "program", "text"),
    [
        (PBroadcast(("i",), 2), "jax.lax.pbroadcast(x, 'i', source=2)", "collective_broadcast"),
        (
            RaggedAllToAll(("i",), SIZES),
            "jax.lax.ragged_all_to_all(x, output, input_offsets, send_sizes, output_offsets, recv_sizes, "
            "axis_name='i')",
            "ragged_all_to_all",
        ),
    ],
)
def test_where_a_platform_has_the_collective_it_runs(operation, program, text):
    told, mapped = native(operation, "gpu")
    assert told == [program, ""]
    traced = mapped.trace(jax.ShapeDtypeStruct((16, 2), jnp.float32))
    assert text in traced.lower(lowering_platforms=("cuda",)).as_text()
    (_, note), mapped = native(operation, "tpu")
    traced = mapped.trace(jax.ShapeDtypeStruct((16, 2), jnp.float32))
    lowered = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert (text in lowered) == (note == "") == (operation.name == "ragged_all_to_all")


def documented_ragged_all_to_all(
    operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name
):
    """As the documentation of JAX describes `ragged_all_to_all`, with one slice a device."""
    me = jax.lax.axis_index(axis_name)
    gathered = [
        jax.lax.all_gather(each, axis_name) for each in (operand, input_offsets, send_sizes, output_offsets)
    ]
    result = output
    row = jnp.arange(output.shape[0])
    for data, first, sizes, target in zip(*gathered, strict=True):
        within = (target[me] <= row) & (row < target[me] + sizes[me])
        taken = data[jnp.clip(row - target[me] + first[me], 0, data.shape[0] - 1)]
        result = jnp.where(within[:, None], taken, result)
    incoming = gathered[2][:, me]
    # A receiver that expected other sizes would be no legal call.
    return jnp.where((incoming == recv_sizes).all(), result, jnp.nan)


def test_the_offsets_of_the_ragged_call_are_those_of_the_documentation(monkeypatch):
    monkeypatch.setattr(jax.lax, "ragged_all_to_all", documented_ragged_all_to_all)
    operation = RaggedAllToAll(("i",), SIZES)
    shards = numbered(LINE, (4, 2)) + 1
    _, mapped = native(operation, "tpu")
    theirs = np.asarray(mapped(shards.reshape(16, 2))).reshape(4, -1, 2)
    (ours, *_) = (
        Frames(schedule, operation, LINE, shards).after for schedule in schedules_for(operation.pattern((4,)))
    )
    np.testing.assert_array_equal(ours, theirs)
