"""A profile's numbers, against counts that are made another way."""

from __future__ import annotations

import re
import tracemalloc
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from jax.profiler import ProfileData

from shardviz.compiler import Worker
from shardviz.errors import QuestionError
from shardviz.hardware.machine_file import named_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.profiles.profile import Profile, profile_of, programs_that_ran
from shardviz.profiles.trace_files import ProfileFiles, read_trace
from tests.profiles.traces import TPU_TEXT, gpu_plane, tpu_plane, xspace

pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
"""jaxlib's own types say so on Python 3.13, and end the process where that is an error."""

MICRO = 1e-6
OPCODE = re.compile(r"^ *(?:ROOT )?%?(\S+) = .*? ([a-z][a-z-]*)\(", re.MULTILINE)
MOVING = {"all-gather", "all-reduce", "reduce-scatter", "all-to-all", "collective-permute"}


def text_of(folder: Path) -> str:
    return (folder / "step.txt").read_text(encoding="utf-8")


def exposed_by_hand(folder: Path) -> dict[str, float]:
    """Nanoseconds of exposed communication by device: between any two moments at which something begins or
    ends, what runs there is looked at."""
    (file,) = folder.rglob("*.xplane.pb")
    opcodes = dict(OPCODE.findall(text_of(folder)))
    running: defaultdict[str, list[tuple[float, float, str]]] = defaultdict(list)
    begun, ended = [], {}
    profile = ProfileData.from_file(str(file))
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    begun.append((stats, event.start_ns, event.end_ns))
                elif event.name.startswith("end: "):
                    ended[stats["_c"]] = event.end_ns
    for stats, start, end in begun:
        opcode = opcodes.get(stats["hlo_op"], "")
        if opcode != "while":
            kind = "moves" if opcode in MOVING else "computes"
            last = max(end, ended.get(stats["_p"], 0.0))
            running[f"CPU {stats['device_ordinal']}"].append((start, last, kind))
    found = {}
    for device, events in running.items():
        moments = sorted({time for start, end, _ in events for time in (start, end)})
        found[device] = 0.0
        for one, other in pairwise(moments):
            kinds = {kind for start, end, kind in events if start <= one and other <= end}
            found[device] += (other - one) * (kinds == {"moves"})
    return found


def test_exposed_communication_is_that_of_an_independent_count(profiled_folder: Path) -> None:
    found = profile_of(read_trace(str(profiled_folder)), {}, hlo=text_of(profiled_folder))
    ours = {each.device: each.exposed * 1e9 for each in found.devices}
    expected = exposed_by_hand(profiled_folder)
    assert len(expected) == 8
    assert min(expected.values()) > 0
    assert ours == pytest.approx(expected, abs=1)


def test_the_profile_brings_its_own_program(profiled_folder: Path, worker: Worker) -> None:
    files = read_trace(str(profiled_folder))
    records = programs_that_ran(files)
    texts = worker.module_texts([each.proto for each in records]).result()
    own = {(each.name, each.program_id): text for each, text in zip(records, texts, strict=True)}
    brought = profile_of(files, own, mesh=parse_mesh("X=2,Y=4"))
    given = profile_of(files, {}, hlo=text_of(profiled_folder), mesh=parse_mesh("X=2,Y=4"))
    assert [(each.name, each.axes, each.seconds, each.algbw) for each in brought.collectives] == [
        (each.name, each.axes, each.seconds, each.algbw) for each in given.collectives
    ]
    assert {each.axes for each in brought.collectives} == {("Y",)}
    sources = [
        [each.collective and each.collective.source for each in of.collectives] for of in (brought, given)
    ]
    assert sources[0] == sources[1]
    assert any("profiled_program.py" in str(source) for source in sources[0])


def test_steps_collectives_and_loops_are_counted(profiled_folder: Path) -> None:
    found = profile_of(read_trace(str(profiled_folder)), {}, hlo=text_of(profiled_folder))
    assert found.program == "jit_step"
    assert found.steps_are_marked
    assert [each.number for each in found.steps] == [7, 8]
    assert all(len(each.devices) == 8 for each in found.steps)
    # Two groups, two steps, and a loop of three.
    in_loop = [each for each in found.collectives if each.op == "all-reduce"]
    assert [(each.runs, each.groups) for each in in_loop] == [(12, 2)] * len(in_loop)
    for each in found.collectives:
        assert 0 < each.least <= each.seconds <= each.most
        assert each.algbw == pytest.approx(128 * 256 // 2 * 4 / each.seconds)


def of_tpus(tmp_path: Path, **options: object) -> Profile:
    return profile_of(tpu_files(tmp_path), {}, hlo=TPU_TEXT, **options)  # type: ignore[arg-type]


def tpu_files(tmp_path: Path) -> ProfileFiles:
    planes = {f"/device:TPU:{number}": tpu_plane(late=5.0 * number) for number in range(4)}
    (tmp_path / "vm.xplane.pb").write_bytes(xspace(planes))
    return read_trace(str(tmp_path))


def test_a_tpu_by_hand(tmp_path: Path) -> None:
    found = of_tpus(tmp_path)
    step = found.steps[0]
    assert step.seconds == pytest.approx(150 * MICRO)
    # Of 50 µs of gathering 20 are beside the fusion, and of the reduction none.
    for number, each in enumerate(step.devices):
        late = 5 * number
        assert each.compute == pytest.approx((20 + 40 + late) * MICRO)
        assert each.communication == pytest.approx((50 + 30 - late) * MICRO)
        assert each.exposed == pytest.approx((30 + 30 - late) * MICRO)
        assert each.idle == pytest.approx(30 * MICRO)
    gather, reduction = found.collectives
    assert (gather.name, reduction.name) == ("all-gather-start.1", "all-reduce.3")
    assert gather.seconds == pytest.approx(50 * MICRO)
    # The last arrives at 115, all end at 130; the others have waited 15, 10 and 5.
    assert reduction.seconds == pytest.approx(15 * MICRO)
    assert reduction.waited == pytest.approx(30 / 4 * MICRO)
    size = 64 * 512 * 2
    assert reduction.algbw == pytest.approx(size / (15 * MICRO))
    assert reduction.busbw == pytest.approx(2 * 3 / 4 * size / (15 * MICRO))
    assert gather.busbw == pytest.approx(3 / 4 * size / (50 * MICRO))
    assert (reduction.last, reduction.last_share) == ("TPU 3", 1.0)
    (straggler,) = found.stragglers
    assert (straggler.device, straggler.collective, straggler.times) == ("TPU 3", "all-reduce.3", 2)
    assert straggler.seconds == pytest.approx(2 * 30 * MICRO)


def test_the_figures_of_many_steps_fit_beside_the_operations(tmp_path: Path) -> None:
    planes = {f"/device:TPU:{number}": tpu_plane(late=5.0 * number, runs=300) for number in range(4)}
    (tmp_path / "vm.xplane.pb").write_bytes(xspace(planes))
    files = read_trace(str(tmp_path))
    tracemalloc.start()
    assert len(profile_of(files, {}, hlo=TPU_TEXT).steps) == 300
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # An operation has some 180 bytes in a file, its event and the one of its end.
    assert peak / sum(len(each.starts) for each in files.devices) < 400


def test_gpus_by_hand(tmp_path: Path) -> None:
    planes = {f"/device:GPU:{number}": gpu_plane(late=5.0 * number) for number in range(4)}
    (tmp_path / "vm.xplane.pb").write_bytes(xspace(planes))
    found = profile_of(read_trace(str(tmp_path)), {})
    assert not found.steps_are_marked
    for number, each in enumerate(found.steps[0].devices):
        assert each.exposed == pytest.approx((60 - 5 * number) * MICRO)
    assert {each.name: each.seconds for each in found.collectives} == pytest.approx(
        {"all-gather-start.1": 50 * MICRO, "all-reduce.3": 15 * MICRO}
    )
    assert "add --hlo FILE" in found.notes[-1]


def test_without_a_text_a_tpu_tells_as_much_of_times(tmp_path: Path) -> None:
    files = tpu_files(tmp_path)
    bare, joined = profile_of(files, {}), profile_of(files, {}, hlo=TPU_TEXT)
    assert bare.devices == joined.devices
    assert [each.seconds for each in bare.collectives] == [each.seconds for each in joined.collectives]
    assert all(each.algbw is None for each in bare.collectives)


def test_a_prediction_stands_beside_it_where_a_machine_is_named(tmp_path: Path) -> None:
    found = of_tpus(tmp_path, machine=named_machine("v5e:2x2"), mesh=parse_mesh("data=4"))
    assert found.predicted is not None
    assert [each.machine for each in found.timelines] == ["TPU 0", "v5e:2x2"]
    predicted = {op.name: op.seconds for op in found.predicted.ops}
    assert [each.predicted for each in found.collectives] == [
        predicted[each.name] for each in found.collectives
    ]
    assert {each.axes for each in found.collectives} == {("data",)}
    assert of_tpus(tmp_path).predicted is None


def test_hosts_are_told_apart_and_their_clocks_not_compared(tmp_path: Path) -> None:
    for host, late in (("a", 0.0), ("b", 90.0)):
        plane = tpu_plane()
        if late:
            plane = {
                line: [each._replace(start=each.start + late, end=each.end + late) for each in events]
                for line, events in plane.items()
            }
        (tmp_path / f"{host}.xplane.pb").write_bytes(xspace({"/device:TPU:0": plane}, host=host))
    found = profile_of(read_trace(str(tmp_path)), {})
    assert [each.device for each in found.devices] == ["a TPU 0", "b TPU 0"]
    assert not found.stragglers
    assert [each.seconds for each in found.steps] == pytest.approx([150 * MICRO] * 2)
    assert "clock of its own" in found.notes[0]
    with pytest.raises(QuestionError, match="'0' is more than one device of step 0") as refused:
        profile_of(read_trace(str(tmp_path)), {}, device="0")
    assert refused.value.hint == "its devices: a TPU 0, b TPU 0"


@pytest.mark.parametrize(
    ("options", "words", "hint"),
    [
        ({"step": 9}, "has no step 9", "2 steps: 0 to 1"),
        ({"device": "TPU 9"}, "'TPU 9' is not a device of step 0", "TPU 0, TPU 1"),
        ({"mesh": parse_mesh("X=3")}, "has 3 devices, and what ran had 4", "4 devices"),
        (
            {
                "hlo": TPU_TEXT.replace(".1", ".11")
                .replace(".2", ".22")
                .replace(".3", ".33")
                .replace("%p", "%q")
            },
            "'jit_step' is not the program that ran",
            "the profile is of",
        ),
    ],
)
def test_a_question_that_the_profile_cannot_answer(
    options: dict[str, object], words: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(QuestionError) as refused:
        profile_of(tpu_files(tmp_path), {}, **{"hlo": TPU_TEXT, **options})  # type: ignore[arg-type]
    assert words in refused.value.message
    assert hint in refused.value.hint


def test_a_text_that_has_a_name_in_common_is_not_the_program(tmp_path: Path) -> None:
    foreign = TPU_TEXT.replace("HloModule jit_step", "HloModule jit_other").replace(".2", ".22")
    foreign = foreign.replace(".3", ".33").replace("fusion.1", "fusion.11")
    with pytest.raises(QuestionError, match="not the program that ran: it has 2 of the 5 instruction names"):
        profile_of(tpu_files(tmp_path), {}, hlo=foreign)


def test_the_device_is_named_by_its_name_or_number(tmp_path: Path) -> None:
    named = [of_tpus(tmp_path, device=name, step=1).timeline for name in ("TPU 2", "2")]
    assert [(each.machine, each.title) for each in named] == [("TPU 2", "step 1 of jit_step")] * 2
