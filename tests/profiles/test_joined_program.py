"""Instructions as a trace names them, and what they are: by the text, by the trace, by their names."""

from __future__ import annotations

import pytest

from shardviz.profiles.device_trace import HBM_COPY, HOST_COPY, PEER_COPY, SOME_COPY, TracedInstruction
from shardviz.profiles.joined_program import facts_of, join_program, with_groups
from shardviz.profiles.xplane import with_devices
from tests.profiles.traces import TPU_TEXT


@pytest.mark.parametrize(
    ("name", "opcode", "expected"),
    [
        ("all-reduce.4", "", ("all-reduce", "axis", "work")),
        ("psum.7", "", ("all-reduce", "axis", "work")),
        ("ppermute", "", ("collective-permute", "axis", "work")),
        ("all-gather-start.3", "", ("all-gather", "axis", "begins")),
        ("copy-start.1", "", ("copy", "copy", "begins")),
        ("fusion.5", "", ("fusion", "compute", "work")),
        ("while.14", "", ("while", "compute", "frame")),
        ("fusion.9", "nccl", ("nccl", "axis", "work")),
        ("name.of.mine", "convolution fusion", ("matmul", "compute", "work")),
        ("psumming.7", "fusion", ("fusion", "compute", "work")),
        ("async-start.2", "async-start", ("async", "axis", "begins")),
        ("async-done.2", "async-done", ("async", "axis", "ends")),
        ("async-collective-done.3", "fusion", ("async-collective", "axis", "ends")),
        ("MemcpyD2D", HBM_COPY, ("memcpy", "copy", "work")),
        ("CopyDeviceToDevice", SOME_COPY, ("memcpy", "copy", "work")),
        ("MemcpyH2D", HOST_COPY, ("memcpy", "host", "work")),
        ("MemcpyP2P", PEER_COPY, ("memcpy", "axis", "work")),
        ("outfeed.1", "", ("outfeed", "host", "work")),
    ],
)
def test_without_a_text_the_name_and_the_opcode_tell(
    name: str, opcode: str, expected: tuple[str, str, str]
) -> None:
    found = facts_of(TracedInstruction(name, ("jit_f", 1), opcode), None)
    assert (found.op, found.lane.kind, found.role) == expected


def test_the_text_goes_before_the_name() -> None:
    text = TPU_TEXT.replace("%all-reduce.3", "%fusion.77").replace("%fusion.1 ", "%all-gather.8 ")
    program = join_program(text, None, None)
    moved, computed = (
        facts_of(TracedInstruction(name, ("jit_step", 5)), program) for name in ("fusion.77", "all-gather.8")
    )
    assert (moved.op, moved.lane.kind, moved.is_communication) == ("all-reduce", "axis", True)
    assert moved.collective is not None
    assert moved.collective.source.endswith("step.py:15")
    assert (computed.op, computed.lane.kind, computed.is_communication) == ("fusion", "compute", False)


def test_a_copy_on_a_gpus_stream_is_one_whatever_the_text_calls_it() -> None:
    program = join_program(TPU_TEXT, None, None)
    found = facts_of(TracedInstruction("fusion.1", ("jit_step", 5), HBM_COPY), program)
    assert (found.op, found.lane.kind, found.timed) == ("memcpy", "copy", program.ops["fusion.1"])


def test_groups_are_read_back_from_the_events() -> None:
    lost = TPU_TEXT.replace("replica_groups=[1,4]<=[4]", "replica_groups={}")
    assert with_groups(lost, {"all-reduce.3": "[1,4]<=[4]", "all-gather-start.1": "[1,4]<=[4]"}) == (
        TPU_TEXT,
        frozenset(),
    )
    other, unknown = with_groups(lost, {"all-reduce.3": "{{0,1},{2,3}}"})
    assert unknown == {"all-gather-start.1"}
    (reduction,) = join_program(other, None, None).module.collectives
    assert reduction.groups == ((0, 1), (2, 3))


def test_a_text_whose_groups_are_there_stays_as_it_is() -> None:
    assert with_groups(TPU_TEXT, {}) == (TPU_TEXT, frozenset())
    # Without global ids {} is one group of all.
    all_of_them = TPU_TEXT.replace("replica_groups=[1,4]<=[4]", "replica_groups={}").replace(
        ", use_global_device_ids=true", ""
    )
    assert with_groups(all_of_them, {}) == (all_of_them, frozenset())


def test_what_ends_is_known_by_what_it_waits_for() -> None:
    program = join_program(TPU_TEXT, None, None)
    names = ("all-gather-start.1", "all-gather-done.1")
    begins, ends = (facts_of(TracedInstruction(name, ("jit_step", 5)), program) for name in names)
    assert (begins.role, ends.role, ends.awaited) == ("begins", "ends", "all-gather-start.1")
    assert begins.collective == ends.collective
    assert begins.lane == ends.lane


def test_matmuls_are_told_from_other_compute() -> None:
    program = join_program(TPU_TEXT, None, None)
    assert facts_of(TracedInstruction("convolution.2", ("jit_step", 5)), program).op == "matmul"


@pytest.mark.parametrize(
    ("device_ids", "added"),
    [
        ((), ""),
        (((0,),), ""),
        (((0, 1, 2, 3),), ", num_partitions=4"),
        (((0,), (1,)), ", replica_count=2"),
        (((0, 1), (2, 3)), ", replica_count=2, num_partitions=2"),
    ],
)
def test_the_header_gets_the_number_of_devices(device_ids: tuple[tuple[int, ...], ...], added: str) -> None:
    assert with_devices("HloModule jit_f, is_scheduled=true\n\nENTRY", device_ids) == (
        f"HloModule jit_f, is_scheduled=true{added}\n\nENTRY"
    )
    assert with_devices(TPU_TEXT, ((0, 1, 2, 3),)) == TPU_TEXT
