"""Small traces of the shape of real ones, `offload_plane` and `rocm_planes`, as `ProfileData` counts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from jax.profiler import ProfileData

from shardviz.hardware.machine_file import named_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.profiles.device_trace import ProgramRecord, TraceReading
from shardviz.profiles.profile import Profile, profile_of
from shardviz.profiles.trace_files import read_trace
from shardviz.profiles.xplane import device_ids, xplane_events
from shardviz.render.exports import Subject
from shardviz.render.exports.pictures import svg
from shardviz.render.palette import PLAIN
from shardviz.render.profile_view import profile_view
from tests.profiles.traces import (
    OFFLOAD,
    OFFLOAD_TEXT,
    PAIRS,
    PSUM_TEXT,
    Event,
    Lines,
    offload_plane,
    rocm_planes,
    xspace,
)

pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
"""jaxlib's own types say so on Python 3.13, and end the process where that is an error."""

MICRO = 1e-6
BYTES = 1024 * 1280 * 4


def offload(
    folder: Path, devices: Sequence[int] = range(4, 8), late: float = 0.0, **options: object
) -> Profile:
    """The profile of the devices with these numbers; those from 4 on arrive `late` µs later at sums."""
    numbers = {f"/device:TPU:{place}": device for place, device in enumerate(devices)}
    planes = {name: offload_plane(int(name[-1]), late * (number > 3)) for name, number in numbers.items()}
    return of_planes(folder, planes, numbers, **options)


def of_planes(folder: Path, planes: dict[str, Lines], numbers: dict[str, int], **options: object) -> Profile:
    (folder / "vm.xplane.pb").write_bytes(xspace(planes, core_ids=numbers))
    records = [
        ProgramRecord(name, number, b"", (tuple(range(8)),))
        for name, number in (("jit_psum", 8), ("jit_f", 9))
    ]
    files = replace(read_trace(str(folder)), programs=tuple(records))
    texts = {("jit_psum", 8): PSUM_TEXT, ("jit_f", 9): OFFLOAD_TEXT}
    return profile_of(files, texts, **options)  # type: ignore[arg-type]


def busy(folder: Path, is_counted: Callable[[str], bool]) -> dict[str, float]:
    """Seconds in which something that counts runs, by the planes' devices, as `ProfileData` has events: of
    lines on which a device itself waits."""
    found = {}
    for plane in ProfileData.from_file(str(folder / "vm.xplane.pb")).planes:
        lines = [each for each in plane.lines if each.name == "XLA Ops" or each.name.startswith("Stream")]
        events = [event for line in lines for event in line.events if is_counted(event.name)]
        if plane.name.startswith("/device:") and lines:
            covered = {
                time
                for each in events
                for time in range(round(each.start_ns), round(each.start_ns + each.duration_ns))
            }
            found[plane.name.removeprefix("/device:").replace(":", " ")] = len(covered) * 1e-9
    return found


def test_a_device_that_waits_for_copies_is_not_idle(tmp_path: Path) -> None:
    found = offload(tmp_path)
    activity = {each.device: each for each in found.devices}
    assert {name: each.busy for name, each in activity.items()} == pytest.approx(busy(tmp_path, bool))
    computed = busy(tmp_path, lambda name: name.startswith("%fusion"))
    assert {name: each.compute for name, each in activity.items()} == pytest.approx(computed)
    for each in activity.values():
        assert each.exposed_copies > 10 * each.compute
        assert each.compute + each.exposed + each.exposed_copies + each.idle == pytest.approx(each.seconds)
    # Each transfer ends in the run that began it, also where its done is written before its start.
    assert [step.seconds for step in found.steps] == pytest.approx([390 * MICRO] * 2)
    assert all(each.seconds < 391 * MICRO for step in found.steps for each in step.devices)


@pytest.mark.parametrize("numbers", [range(8), (0, 4, 1, 5, 2, 6, 3, 7)])
def test_runs_are_joined_by_their_order_and_not_by_numbers_that_count_per_device(
    numbers: Sequence[int], tmp_path: Path
) -> None:
    found = offload(tmp_path, numbers, late=10.0)
    (reduction,) = found.collectives
    assert (reduction.runs, reduction.groups) == (3 * 4, 4)
    assert reduction.waited == pytest.approx(10 / 2 * MICRO)
    assert reduction.seconds == pytest.approx(110 * MICRO)
    assert {each.device for each in found.stragglers} == {
        f"TPU {place}" for place, number in enumerate(numbers) if number > 3
    }
    assert {(each.times, round(each.seconds / MICRO)) for each in found.stragglers} == {(3, 30)}


def test_a_profile_that_begins_in_a_run_of_some_devices(tmp_path: Path) -> None:
    planes = {f"/device:TPU:{number}": dict(offload_plane(number, number / 1000)) for number in range(8)}
    for line in ("XLA Modules", "XLA Ops"):
        # The first sum of the device 5, and the second of two runs of the other program on the device 6.
        planes["/device:TPU:5"][line] = planes["/device:TPU:5"][line][1:]
        planes["/device:TPU:6"][line] = [each for each in planes["/device:TPU:6"][line] if each.start < 1300]
    found = of_planes(tmp_path, planes, {name: int(name[-1]) for name in planes})
    (reduction,) = found.collectives
    assert reduction.runs == 3 * 4
    assert reduction.waited is not None
    assert reduction.waited < 0.01 * MICRO
    assert [len(step.devices) for step in found.steps] == [8, 7]
    assert [step.seconds for step in found.steps] == pytest.approx([390 * MICRO] * 2)


def test_groups_are_those_of_the_event_where_the_stored_text_has_lost_them(tmp_path: Path) -> None:
    found = offload(tmp_path, mesh=parse_mesh("data=2,model=4"))
    (reduction,) = found.collectives
    assert reduction.collective is not None
    assert reduction.collective.groups == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert (reduction.axes, reduction.groups, reduction.runs) == (("data",), 4, 12)
    # Among two the bus's bandwidth is the algorithm's.
    assert reduction.busbw == reduction.algbw == pytest.approx(BYTES / (120 * MICRO))
    # The other one of each pair is on another host.
    assert reduction.waited is None
    assert found.stragglers == ()
    assert "the profile has 4 of the 8 devices that ran" in found.notes[-1]
    page = [line.plain for line in profile_view(found, 120, PLAIN, verbose=True)]
    # The steps are runs of jit_f, in which there is no collective.
    assert any(line.split()[:3] == ["all-reduce", "in", "jit_psum"] and " 3 × 4 " in line for line in page)


def test_groups_that_nobody_knows_give_no_bandwidth(tmp_path: Path) -> None:
    planes = {f"/device:TPU:{number}": offload_plane(number) for number in range(4)}
    bare = OFFLOAD["all-reduce"].replace(f"replica_groups={PAIRS}, ", "")
    for lines in planes.values():
        lines["XLA Ops"][:] = [
            each._replace(name=each.name.replace(OFFLOAD["all-reduce"], bare)) for each in lines["XLA Ops"]
        ]  # type: ignore[index]
    found = of_planes(tmp_path, planes, {name: 4 + int(name[-1]) for name in planes})
    (reduction,) = found.collectives
    assert (reduction.busbw, reduction.axes, reduction.waited) == (None, (), None)
    assert reduction.seconds == pytest.approx(120 * MICRO)
    assert any("lacks the groups of 1 collective, such as all-reduce" in note for note in found.notes)


def test_devices_have_their_own_numbers() -> None:
    numbers = {"/device:TPU:0": 0, "/device:TPU:1": 5}
    data = xspace({name: offload_plane(0) for name in numbers}, core_ids=numbers)
    assert device_ids(data) == numbers
    assert device_ids(xspace({"/device:TPU:0": offload_plane(0)})) == {}


def test_a_marked_step_has_the_runs_that_the_device_of_that_number_began() -> None:
    """A TPU's runtime tells a run's number and its device where it begins the run, and where it ends it."""

    def launch(number: int, run_id: int, at: float) -> Event:
        return Event("DoEnqueueProgram", at, at + 1, {"run_id": run_id, "device_ordinal": number})

    marks = [Event("train", 990, 1100, {"step_num": 7}), Event("train", 1380, 1500, {"step_num": 8})]
    # The first device has run a program more before than the other.
    launches = [launch(0, 5, 1000), launch(1, 4, 1001), launch(0, 6, 1390), launch(1, 5, 1391)]
    ended = Event("CompleteCallbacks", 1395, 1396, {"run_id": 5, "device_ordinal": 0})
    planes = {f"/device:TPU:{number}": offload_plane(number) for number in range(2)}
    planes["/host:CPU"] = {"main/1": marks, "EventFDAsyncWorker/2": launches, "other/3": [ended]}
    reading = TraceReading(xplane_events(xspace(planes), lambda _: None))
    for device in reading.devices(""):
        steps = {
            (device.run_table[run].program[0], device.run_table[run].run_id): step
            for run, step in device.steps_of_runs.items()
        }
        assert steps == {("jit_f", 0): 7, ("jit_f", 1): 8}


def test_a_prediction_without_its_largest_part_is_not_told_as_whole(tmp_path: Path) -> None:
    machine, mesh = named_machine("v6e:2x4"), parse_mesh("data=2,model=4")
    whole = offload(tmp_path, machine=machine, mesh=mesh).predicted
    assert whole is not None
    assert not whole.unknown
    found = offload(tmp_path, machine=replace(machine, device=replace(machine.device, host=None)), mesh=mesh)
    assert found.predicted is not None
    assert whole.seconds > found.predicted.seconds
    assert found.predicted.unknown == ("copy-start", "copy-start.1")
    assert {lane.name for each in found.timelines for lane in each.lanes} == {"compute", "host"}
    page = "\n".join(line.plain for line in profile_view(found, 100, PLAIN, verbose=True))
    (row,) = (line for line in page.splitlines() if line.startswith("  predicted on v6e:2x4 "))
    assert row.split(" + ")[1].startswith("? ")
    assert "the prediction is incomplete: no estimate (?) for 2 operations" in page
    assert "2 operations without an estimate" in svg(Subject(found.timelines, "a step"))
    heads = next(line.split() for line in page.splitlines() if "exposed" in line and "total" in line)
    assert heads == ["device", "total", "compute", "communication", "exposed", "copies", "idle"]
    assert "HBM copies" not in page
    narrow = [line.plain.split() for line in profile_view(found, 80, PLAIN, verbose=True)]
    assert ["device", "total", "compute", "exposed", "copies", "idle"] in narrow


def test_calls_that_launch_kernels_are_no_device_and_copies_no_compute(tmp_path: Path) -> None:
    (tmp_path / "vm.xplane.pb").write_bytes(xspace(rocm_planes()))
    found = profile_of(read_trace(str(tmp_path)), {})
    activity = {each.device: each for each in found.devices}
    assert [*activity] == ["GPU 0", "GPU 1"]
    computed = busy(tmp_path, lambda name: "copy" not in name.lower())
    assert {name: each.compute for name, each in activity.items()} == pytest.approx(computed)
    copied = busy(tmp_path, lambda name: "copy" in name.lower())
    assert {name: each.copies for name, each in activity.items()} == pytest.approx(copied)
    # Of 30 µs of copies 10 are beside a kernel.
    assert activity["GPU 1"].exposed_copies == pytest.approx(20 * MICRO)
    assert not any(".xplane.pb" in note for note in found.notes)
    assert found.notes[0].startswith("the profile does not separate the runs of jit_conv")
