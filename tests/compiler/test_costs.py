"""Answers with the compiler's own schedule and its account of memory: asked for, kept, cleaned up after."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from shardviz.compiler import Worker
from shardviz.compiler.messages import MemoryTexts, Output
from shardviz.compiler.reading import read_output
from shardviz.errors import CompilerError
from shardviz.hardware.placement import DeviceCoords
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.reports.program_report import target_times
from shardviz.reports.target_result import TargetResult
from shardviz.targets import EXTRAS, TARGETS, parse_targets
from shardviz.timeline.compiler_memory import does_not_fit
from shardviz.timeline.scheduler import NO_ESTIMATES, NO_SCHEDULER, NOT_SIMULATED
from tests.timeline.schedules import computation, instruction, module, simulated

CPU = TARGETS["cpu"]
HAS_TPU = pytest.mark.skipif(not EXTRAS["tpu"].installable, reason="libtpu is for Linux on x86-64")
GATHER = {"specs": "X_,X_->X_", "mesh": "X=4", "sizes": "b=1024,d=4096,f=8192"}
"""Weights of 4096 × 8192, of which each device has a quarter."""


def folder_of(request):
    return Path(request.call.arguments[0].folder)


@pytest.fixture(scope="module")
def costs(worker):
    """Asks a TPU target once, with costs."""
    known = {}

    def ask(name, specs=GATHER["specs"], mesh=GATHER["mesh"], sizes=GATHER["sizes"]):
        key = (name, specs, mesh, sizes)
        if key not in known:
            (target,) = parse_targets(name)
            problem = problem_from_text("bd,df->bf", mesh=parse_mesh(mesh), specs=specs, sizes=sizes)
            known[key] = problem, target, worker.ask(problem, target, with_costs=True)
        return known[key]

    return ask


@HAS_TPU
def test_a_tpu_tells_its_memory(costs):
    _, target, found = costs("v5e:2x2")
    assert (found.status, found.error) == ("ok", "")
    memory = found.memory
    a, w, out = 1024 // 4 * 4096 * 2, 4096 // 4 * 8192 * 2, 1024 // 4 * 8192 * 2
    assert (memory.by, memory.argument_bytes, memory.output_bytes) == ("compiler", a + w, out)
    assert memory.limit_bytes == target.machine.device.usable_bytes
    # The gathered weights lie in on-chip memory, not in HBM.
    assert a + w + out <= memory.peak_bytes < a + w + out + 4096 * 8192
    sizes = {each.name: (each.kind, each.bytes, each.shape) for each in memory.buffers}
    assert sizes["A"] == ("argument", a, "bf16[256,4096]")
    assert sizes["W"] == ("argument", w, "bf16[1024,8192]")
    assert max((live for _, live in memory.order), default=0) <= memory.peak_bytes


@HAS_TPU
@pytest.mark.since_jax("0.10", "its libtpu leaves no schedule")
def test_both_tellers_of_a_gather_that_the_scheduler_had_asynchronous(costs):
    problem, target, found = costs("v5e:2x2")
    times = target_times(found, target.machine, problem.mesh)
    assert times.note == ""
    assert times.model.memory.curve
    gather = next(op for op in times.scheduler.ops if op.op == "all-gather")
    assert times.scheduler.lanes[gather.lane].name == "X"
    assert gather.exposed == pytest.approx(gather.seconds, rel=0.01)
    # It counts all of V over two links of 46.65 GB/s, see the page on accuracy.
    assert gather.seconds == pytest.approx(4096 * 8192 * 2 / (2 * 46.65e9), rel=0.01)
    matmul = next(op for op in times.scheduler.ops if op.op == "matmul")
    assert times.scheduler.seconds == pytest.approx(gather.seconds + matmul.seconds, rel=0.01)


@HAS_TPU
def test_a_program_without_asynchronous_operations_has_one_teller(costs):
    problem, target, found = costs("v4:2x2x1")
    assert (found.status, found.schedule) == ("ok", None)
    times = target_times(found, target.machine, problem.mesh)
    assert (times.scheduler, times.note) == (None, NOT_SIMULATED)
    assert times.model.seconds > 0
    assert found.memory.limit_bytes == target.machine.device.usable_bytes


GPU_TEXT = """HloModule jit_program, is_scheduled=true, num_partitions=8

ENTRY %main (W: bf16[1024,8192], A: bf16[1024,8192]) -> bf16[1024,8192] {
  %W = bf16[1024,8192]{1,0} parameter(0), metadata={op_name="W"}
  %A = bf16[1024,8192]{1,0} parameter(1), metadata={op_name="A"}
  %all-gather-start = (bf16[1024,8192]{1,0}, bf16[8192,8192]{1,0}) all-gather-start(%W), channel_id=1, \
replica_groups=[1,8]<=[8], dimensions={0}, use_global_device_ids=true
  %all-gather-done = bf16[8192,8192]{1,0} all-gather-done(%all-gather-start)
  ROOT %gemm = bf16[1024,8192]{1,0} custom-call(%A, %all-gather-done), \
custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":\
{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}},"reification_cost":[\
{"end_to_end_cycles":34452000,"exec_time_us":17400.5,"compute_time_us":1,"memory_access_time_us":2,"name":""},\
{"end_to_end_cycles":346500,"exec_time_us":175.5,"compute_time_us":140,"memory_access_time_us":60,"name":"sol"}]}
}
"""
GPU_SCHEDULE = module(
    "main",
    computation(
        1,
        "main",
        instruction(1 << 32 | 1, "all-gather-start", "all-gather-start"),
        instruction(1 << 32 | 2, "all-gather-done", "all-gather-done", operands=(1 << 32 | 1,)),
        instruction(1 << 32 | 3, "gemm", "custom-call"),
    ),
) + simulated(1, (1 << 32 | 1, 0, 1), (1 << 32 | 2, 427, 428), (1 << 32 | 3, 428, 603.5)).replace(
    "cycles_per_microsecond: 1000", "cycles_per_microsecond: 1"
)
GPU_MEMORY = MemoryTexts(
    (
        ("argument", 2 * 2**24),
        ("output", 2**24),
        ("alias", 0),
        ("temporary", 2**27),
        ("peak", 3 * 2**24 + 2**27),
    ),
    "BufferAssignment:\nallocation 0: size 134217728, preallocated-temp:\n"
    " value: <1 all-gather-start{1} @0> (size=134217728,offset=0): bf16[8192,8192]{1,0}\n",
)


def gpu(schedule=GPU_SCHEDULE, memory=GPU_MEMORY, name="h100:8"):
    """A GPU's answer, of texts as its compiler writes them; it is not installed everywhere."""
    (target,) = parse_targets(name)
    problem = problem_from_text(
        "bd,df->bf", mesh=parse_mesh("X=8"), specs="X_,X_->X_", sizes="b=8192,d=8192,f=8192"
    )
    places = tuple(DeviceCoords((), number, 0) for number in range(8))
    placement = target.machine.family.placement(tuple(range(8)), places)
    result = TargetResult(target.name, "ok", text=GPU_TEXT, placement=placement)
    output = Output(result, schedule=schedule, memory=memory)
    return problem, target, read_output(output, problem, target, ())


def test_a_gpu_tells_microseconds_and_the_speed_of_light():
    problem, target, found = gpu()
    times = target_times(found, target.machine, problem.mesh)
    told = {op.name: op for op in times.scheduler.ops}
    assert told["all-gather-start"].seconds == pytest.approx(426e-6)
    assert told["all-gather-start"].exposed == pytest.approx(426e-6)
    assert times.scheduler.seconds == pytest.approx(603.5e-6)
    matmul = next(op for op in times.model.ops if op.op == "matmul")
    assert (matmul.seconds, matmul.estimate) == (pytest.approx(175.5e-6), "compiler")


def test_what_is_too_large_for_a_gpu_is_said_though_its_compiler_does_not_refuse_it():
    """XLA:GPU warns on stderr alone; what it allocates is held against the memory of the chip."""
    large = replace(
        GPU_MEMORY,
        sizes=(*GPU_MEMORY.sizes[:3], ("temporary", 90 * 10**9), ("peak", 3 * 2**24 + 90 * 10**9)),
        assignment=GPU_MEMORY.assignment.replace("134217728", str(90 * 10**9)),
    )
    _, target, found = gpu(memory=large)
    assert found.status == "ok"
    assert found.memory.limit_bytes == target.machine.device.hbm_bytes
    assert found.memory.over_bytes == 10 * 10**9
    assert does_not_fit(found.memory).startswith("does not fit: 9.313 GiB over 74.51 GiB")


def test_an_a100_has_no_estimates():
    dummy = GPU_SCHEDULE.replace("end_timestamp_cycles: 603.5", "end_timestamp_cycles: 5428")
    problem, target, found = gpu(schedule=dummy, name="a100:8")
    times = target_times(found, target.machine, problem.mesh)
    assert (times.scheduler, times.note) == (None, NO_ESTIMATES)


def test_a_schedule_that_cannot_be_read_costs_no_answer():
    assert gpu(schedule="not what it was")[2].schedule is None


def test_xla_for_cpu_tells_its_memory_and_no_schedule(worker, matmul):
    found = worker.ask(matmul("X_,X_", mesh="X=4", sizes="b=64,d=64,f=64"), CPU, with_costs=True)
    assert (found.status, found.schedule) == ("ok", None)
    on_v5e = target_times(found, parse_targets("v5e:2x2")[0].machine, parse_mesh("X=4"))
    assert on_v5e.note == NO_SCHEDULER
    assert on_v5e.model.seconds > 0
    assert found.memory.argument_bytes == 2 * 64 * 64 // 4 * 2
    assert found.memory.limit_bytes is None
    assert {each.kind for each in found.memory.buffers} >= {"argument", "temporary"}


def test_an_answer_without_costs_has_none(worker, matmul):
    found = worker.ask(matmul("X_,X_", mesh="X=4", sizes="b=64,d=64,f=128"), CPU)
    assert (found.schedule, found.memory) == (None, None)


def test_the_richer_answer_serves_the_poorer_question(worker, matmul):
    problem = matmul("X_,X_", mesh="X=4", sizes="b=64,d=128,f=64")
    poor = worker.ask(problem, CPU)
    rich = worker.ask(problem, CPU, with_costs=True)
    assert (poor.memory is None, rich.memory is None) == (True, False)
    assert worker.ask(problem, CPU) is rich
    assert worker.ask(problem, CPU, with_costs=True) is rich
    assert (poor.text, poor.collectives) == (rich.text, rich.collectives)


def test_shardy_has_no_costs_to_ask_for(worker, matmul):
    problem = matmul("X_,X_", mesh="X=4", sizes="b=64,d=128,f=128")
    answer = worker.ask(problem, TARGETS["shardy"])
    assert worker.ask(problem, TARGETS["shardy"], with_costs=True) is answer


def test_nothing_stays_behind_after_an_answer_or_a_death(matmul):
    with Worker() as own:
        answered = own.submit(matmul("X_,X_", mesh="X=4", sizes="b=8,d=64,f=64"), CPU, with_costs=True)
        assert answered.result().status == "ok"
        assert not folder_of(answered).exists()

        def strike(stage):
            if stage == "compiling":
                os.kill(own.pids()[0], signal.SIGKILL)

        dead = own.submit(matmul("X_,X_", mesh="X=4", sizes="b=16,d=64,f=64"), CPU, strike, with_costs=True)
        with pytest.raises(CompilerError, match="SIGKILL"):
            dead.result()
        assert not folder_of(dead).exists()
        root = folder_of(dead).parent
        assert root.exists()
    assert not root.exists()


def test_what_the_user_has_no_room_for_is_said(matmul, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with Worker() as own, pytest.raises(CompilerError, match="no folder to write to"):
        own.submit(matmul("X_,X_", mesh="X=4", sizes="b=8,d=64,f=64"), CPU, with_costs=True)
