"""Measurements on eight simulated devices: the collective stands in the loop, and its result is exact."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from shardviz.compiler.child import measuring
from shardviz.compiler.child.measuring import passes
from shardviz.compiler.question import check_runs, target_mesh
from shardviz.compiler.reading import read_loop
from shardviz.devices.question import NoMeasurement, measure_question
from shardviz.errors import CompilerError, TargetError
from shardviz.hlo import read_hlo
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import TARGETS, parse_targets

# Raised within C++ it would end the process (jaxlib 0.12, Python 3.13).
pytestmark = pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning")
MESH = parse_mesh("X=2,Y=4")
COLLECTIVES = "all_gather,psum,psum_scatter,all_to_all,ppermute"
HLO = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}


def cases(operations, sizes="4KiB", dtype="f32", axes=()):
    return measure_question(operations, MESH, axes, sizes, dtype, 3).cases


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    monkeypatch.setattr(measuring, "RUN_S", 0.002)


def measured(case):
    """The child's own answer, in this process, which has eight simulated devices too."""
    return measuring.measure(print, target_mesh(TARGETS["real"], MESH), case, 3)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(COLLECTIVES), ids=lambda case: f"{case.op}-{'-'.join(case.axes)}")
def test_a_collective_is_in_the_loop_and_exact(case):
    row, text = measured(case)
    assert (row.wrong, row.clock) == (0, "wall")
    assert len(row.seconds) == 3
    assert min(row.seconds) > 0
    found = [each for each in read_hlo(text, MESH).collectives if each.op != "slice"]
    # Nobody but the run knows how often the loop runs: nothing of the collective is outside.
    assert [(each.op, each.axes, each.count) for each in found] == [(HLO[case.op], case.axes, None)]
    assert found[0].bytes == case.size
    assert read_loop((row, text), case, MESH).seconds == row.seconds


@pytest.mark.parametrize("case", cases("matmul,copy", "16KiB"), ids=lambda case: case.op)
def test_local_work_is_in_the_loop_and_exact(case):
    row, text = measured(case)
    assert row.wrong == 0
    opcode = {"matmul": "dot", "copy": "negate"}[case.op]
    places = re.findall(rf' {opcode}\(.*op_name="([^"]*)"', text)
    assert places
    assert all("while/body" in place for place in places)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64", "f8e4m3fn", "s8", "u32"])
@pytest.mark.parametrize("op", ["psum", "all_to_all", "matmul"])
def test_other_dtypes_are_exact(op, dtype):
    (case,) = cases(op, "1KiB", dtype, ("Y",) if op != "matmul" else ())
    row, _ = measured(case)
    assert row.wrong == 0


def test_a_dtype_that_is_moved_as_another_is_said():
    (case,) = cases("psum", "1KiB", "bf16", ("Y",))
    assert read_loop(measured(case), case, MESH).note in ("", "XLA moves bf16 as f32 here")


def test_the_result_is_checked_against_what_numpy_makes():
    """`_Loop`'s exact result by an independent way: the data of all devices, summed by numpy."""
    (case,) = cases("psum", "1KiB", "f32", ("Y",))
    loop = measuring._Loop(case, jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y")))
    data = np.asarray(loop._made(loop._operand)).reshape(2, 4, -1)
    assert len({shard.tobytes() for shard in data.reshape(8, -1)}) == 8
    exact = np.asarray(loop._made(loop._exact)).reshape(2, 4, -1)
    assert np.array_equal(exact, np.broadcast_to(data.sum(axis=1, keepdims=True), exact.shape))


@pytest.mark.parametrize("op", COLLECTIVES.split(","))
def test_wrong_elements_are_counted(op):
    (case,) = cases(op, "1KiB", "f32", ("Y",))
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))
    loop = measuring._Loop(case, mesh)
    right = np.asarray(loop._made(loop._exact))
    assert loop.wrong(jax.device_put(right, jax.sharding.NamedSharding(mesh, P(("X", "Y"))))) == 0
    wrong = right.copy()
    wrong[[3, -1]] += 1
    assert loop.wrong(jax.device_put(wrong, jax.sharding.NamedSharding(mesh, P(("X", "Y"))))) == 2


def test_sums_that_no_dtype_holds_exactly_are_not_checked():
    import jax.numpy as jnp

    assert measuring._modulus(jnp.bfloat16, 8) == 13
    assert measuring._modulus(jnp.bfloat16, 200) == 2
    assert measuring._modulus(jnp.bfloat16, 300) == 0
    assert measuring._modulus(jnp.int8, 100) == 2
    assert measuring._modulus(jnp.float32, 4096) == 13


def test_a_size_that_does_not_fit_is_no_measurement(monkeypatch):
    monkeypatch.setattr(measuring, "_free", lambda *_: 10_000)
    (case,) = cases("psum", "4KiB", "f32", ("Y",))
    found = read_loop(measured(case), case, MESH)
    assert isinstance(found, NoMeasurement)
    assert found.reason.startswith("psum of 4 KiB needs ")
    assert found.reason.endswith(" on each device, and 9.77 KiB are free")


def test_devices_that_are_not_there():
    mesh = parse_mesh("X=16")
    (case,) = measure_question("psum", mesh, (), "4KiB", "f32", 3).cases
    with pytest.raises(TargetError, match="the mesh has 16 devices but JAX finds 8 here"):
        measuring.measure(print, target_mesh(TARGETS["real"], mesh), case, 3)


def test_a_loop_from_which_the_collective_is_gone_is_an_error():
    (case,) = cases("psum", "4KiB", "f32", ("Y",))
    row, text = measured(case)
    without = text.replace(" all-reduce(", " negate(")
    with pytest.raises(CompilerError, match="XLA has removed psum from the timed loop"):
        read_loop((row, without), case, MESH)


def test_words_of_a_compiler_are_an_error(monkeypatch):
    def refuse(*_):
        raise ValueError("no such thing")

    monkeypatch.setattr(measuring._Loop, "compiled", refuse)
    (case,) = cases("psum", "4KiB", "f32", ("Y",))
    with pytest.raises(CompilerError, match="psum: ValueError: no such thing"):
        measured(case)


def test_words_of_a_compiler_reach_the_asker(worker):
    (case,) = measure_question("psum", parse_mesh("X=64"), (), "4KiB", "f32", 3).cases
    with pytest.raises(TargetError, match="the mesh has 64 devices but JAX finds"):
        worker.measure(case, parse_mesh("X=64"), TARGETS["real"], 3).result()


@pytest.mark.parametrize("name", ["shardy", "v5e:2x4"])
def test_targets_that_run_nothing(name):
    (target,) = parse_targets(name)
    with pytest.raises(TargetError, match="has no devices to run on"):
        check_runs(target, MESH)


def test_the_worker_measures_in_its_child(worker):
    (case,) = cases("all_gather", "4KiB", "f32", ("Y",))
    row = worker.measure(case, MESH, TARGETS["cpu"], 3).result()
    assert (row.wrong, len(row.seconds), row.device) == (0, 3, "cpu")


TEXT = """
  %all-reduce-start.1 = f32[8]{0} all-reduce-start(%x), to_apply=%add
  ROOT %all-reduce-done.1 = f32[8]{0} all-reduce-done(%all-reduce-start.1)
"""


def profile(planes):
    """A profile with the planes and lines that XLA's xplane_schema has for devices; events in ns."""
    text, names = "", []
    for plane, lines in planes.items():
        text += f'planes {{ name: "{plane}" '
        names = sorted({name for events in lines.values() for name, _, _, _ in events})
        for number, name in enumerate(names, 1):
            text += f"event_metadata {{ key: {number} value {{ id: {number} name: {name!r} }} }} "
        text += 'stat_metadata { key: 1 value { id: 1 name: "hlo_op" } } '
        for number, (line, events) in enumerate(lines.items(), 1):
            text += f'lines {{ id: {number} name: "{line}" '
            for name, start, length, op in events:
                stat = f'stats {{ metadata_id: 1 str_value: "{op}" }} ' if op else ""
                text += (
                    f"events {{ metadata_id: {names.index(name) + 1} offset_ps: {start * 1000} "
                    f"duration_ps: {length * 1000} {stat}}} "
                )
            text += "} "
        text += "} "
    return jax.profiler.ProfileData.from_text_proto(text)


def test_the_clock_of_tpus_counts_from_the_last_device_that_comes():
    def ops(begin):
        start, done = "%all-reduce-start.1 = f32[8] all-reduce-start()", "%all-reduce-done.1 = f32[8] x()"
        return [
            (start, begin, 10, ""),
            (done, 1000, 100, ""),
            (start, 2000 + begin, 10, ""),
            (done, 3000, 100, ""),
        ]

    planes = {f"/device:TPU:{n}": {"XLA Ops": ops(200 * n), "Steps": [("1", 0, 5000, "")]} for n in range(2)}
    found = passes(profile(planes), TEXT)
    assert found == pytest.approx([900e-9, 900e-9])


def test_the_clock_of_gpus_goes_by_the_names_of_hlo():
    kernels = [
        ("ncclKernel", 0, 700, "all-reduce-start.1"),
        ("loop_add", 800, 50, "fusion.1"),
        ("ncclKernel", 1000, 500, "all-reduce-start.1"),
    ]
    planes = {"/device:GPU:0": {"Stream #16(Compute)": kernels}}
    assert passes(profile(planes), TEXT) == pytest.approx([700e-9, 500e-9])
    # Of local work what takes longest of all.
    assert passes(profile(planes), "") == pytest.approx([700e-9, 500e-9])


@pytest.mark.parametrize(
    "planes",
    [
        {},
        {"/host:CPU": {"XLA Ops": [("%all-reduce-start.1", 0, 1, "")]}},
        {"/device:GPU:0": {"Stream #16": [("ncclKernel", 0, 700, "")]}},
        {
            "/device:GPU:0": {"Stream #16": [("k", 0, 7, "all-reduce-start.1")]},
            "/device:GPU:1": {"Stream #16": [("k", n, 1, "all-reduce-start.1") for n in (0, 8)]},
        },
    ],
)
def test_a_profile_that_tells_nothing_leaves_the_clock_of_the_wall(planes):
    assert passes(profile(planes), TEXT) == ()
