"""Reading the scheduler's simulation: what is there, what is damaged, and what it never tells."""

from __future__ import annotations

import pytest

from shardviz.errors import NotationError
from shardviz.timeline.scheduler import CompilerSchedule, is_dummy, read_schedule
from tests.timeline.schedules import computation, instruction, module, simulated

HOME = 3 << 32
TEXT = module(
    "main",
    computation(5, "fused", instruction(5 << 32, "x.1", "parameter")),
    computation(
        3,
        "main",
        instruction(HOME, "x", "parameter"),
        instruction(HOME | 1, "ag", "all-gather-start", operands=(HOME,)),
        instruction(HOME | 2, "agd", "all-gather-done", operands=(HOME | 1,)),
        instruction(HOME | 3, "f", "fusion", operands=(HOME | 2, HOME), calls=(5,)),
    ),
) + simulated(
    3,
    (HOME, 0, 1),
    (HOME | 1, 1, 2),
    (HOME | 2, 5000.5, 5001.5),
    (HOME | 3, 5001.5, 9001.5),
    total=9001.5,
    wasted=4998.5,
)


def test_names_and_times():
    found = read_schedule(TEXT)
    (main,) = found.computations
    assert (found.entry, found.cycles_per_microsecond, found.is_complete) == ("main", 1000, True)
    assert [(each.name, each.opcode, each.start, each.end) for each in main.instructions] == [
        ("x", "parameter", 0, 1),
        ("ag", "all-gather-start", 1, 2),
        ("agd", "all-gather-done", 5000.5, 5001.5),
        ("f", "fusion", 5001.5, 9001.5),
    ]
    assert main.instructions[2].operands == (HOME | 1,)
    assert {each.memory for each in main.instructions} == {4096}
    assert (main.name, main.cycles, main.busy_cycles) == ("main", 9001.5, 9001.5 - 4998.5)
    assert found.seconds(main.cycles) == pytest.approx(9.0015e-6)


def test_every_beginning_of_it_gives_what_is_complete():
    begin = TEXT.index("computation_schedules {") + len("computation_schedules {")
    counts = []
    for end in range(begin, len(TEXT)):
        found = read_schedule(TEXT[:end])
        assert isinstance(found, CompilerSchedule)
        counts.append(sum(len(each.instructions) for each in found.computations))
        assert found.is_complete == (TEXT[:end].count("{") == TEXT[:end].count("}"))
    assert counts == sorted(counts)
    assert counts[-1] == 4


def test_the_module_may_be_missing():
    found = read_schedule(TEXT[TEXT.index("computation_schedules {") :])
    assert [each.name for each in found.computations[0].instructions] == ["0", "1", "2", "3"]
    assert found.entry == ""


@pytest.mark.parametrize(
    ("of", "to"),
    [
        ("cycles_per_microsecond: 1000", "cycles_per_microsecond: no number"),
        ("start_timestamp_cycles: 5000.5", "start_timestamp_cycles: nan"),
        ("end_timestamp_cycles: 9001.5", "end_timestamp_cycles: -inf"),
        ("memory_usage_after: 4096", "memory_usage_after: 1e400"),
        ("id: 12884901889", "id: 99999999999999999999999999"),
        ("    memory_pressure_peak", "    something_new { a: 1 b { c: 2 } }\n    memory_pressure_peak"),
        ("    all_gather_wasted", "    field_of_next_year: 7\n    all_gather_wasted"),
        ("  scheduler_statistics {", "}}}}}"),
    ],
)
def test_damage_gives_what_can_be_read(of, to):
    assert of in TEXT
    found = read_schedule(TEXT.replace(of, to))
    assert found.computations
    assert all(0 <= each.start <= each.end for one in found.computations for each in one.instructions)


def test_a_program_that_is_scheduled_again_counts_once():
    again = TEXT + simulated(3, (HOME, 0, 1), (HOME | 3, 1, 7))
    (main,) = read_schedule(again).computations
    assert main.cycles == 7


def test_another_text_is_refused():
    with pytest.raises(NotationError, match="not a schedule") as raised:
        read_schedule("HloModule jit_f, is_scheduled=true")
    assert "xla_dump_latency_hiding_schedule" in raised.value.hint


def test_a_gpu_without_figures_has_no_schedule():
    """XLA gives each operation of an A100 5,000 µs."""

    def gpu(*lengths):
        times, start = [], 0.0
        for number, length in enumerate(lengths):
            times.append((HOME | number, start, start + length))
            start += length
        text = simulated(3, *times).replace("cycles_per_microsecond: 1000", "cycles_per_microsecond: 1")
        return read_schedule(text)

    assert is_dummy(gpu(1, 5000, 5000, 1))
    assert not is_dummy(gpu(1, 5000, 45.7, 1))
    assert not is_dummy(gpu(1, 1))
    assert not is_dummy(read_schedule(TEXT))
