"""Steps: those of the device's own line, those that the program marks, and runs."""

from __future__ import annotations

from dataclasses import replace

from shardviz.profiles.device_operations import DeviceOperations
from shardviz.profiles.device_trace import NO_RUN, DeviceTrace
from shardviz.profiles.joined_program import facts_of
from shardviz.profiles.profile import runs_in_order
from shardviz.profiles.trace_files import ProfileFiles
from tests.profiles.hand_made import device

RUNS = device([("dot.1", 30, 40, 1), ("dot.1", 10, 20, 0), ("dot.1", 50, 60, 2)])


def steps(trace: DeviceTrace, runs: dict[int, int] | None) -> dict[int, list[int]]:
    """When the operations of each step start."""
    found = DeviceOperations(trace, lambda each: facts_of(each, None)).by_step(runs)
    return {step: [trace.starts[place] for place in part.computed] for step, part in found.items()}


def test_the_main_program_is_the_one_that_runs_longest() -> None:
    table = [*RUNS.instruction_table, RUNS.instruction_table[0]._replace(program=("jit_g", 2))]
    other = replace(RUNS, instruction_table=table, instructions=[1, 1, 0])
    assert ProfileFiles((RUNS,), (), ()).main == ("jit_f", 1)
    assert ProfileFiles((other,), (), ()).main == ("jit_g", 2)
    nameless = [each._replace(program=("", 1)) for each in RUNS.instruction_table]
    assert ProfileFiles((replace(RUNS, instruction_table=nameless),), (), ()).main is None


def test_without_marks_each_run_is_a_step_in_the_order_in_which_they_begin() -> None:
    runs = runs_in_order([RUNS], ("jit_f", 1))
    assert steps(RUNS, runs[""]) == {0: [10], 1: [30], 2: [50]}
    outside = replace(RUNS, runs=[NO_RUN, 0, 2])
    assert steps(outside, runs[""]) == {0: [10], 2: [50]}
    assert steps(outside, None) == {0: [10, 30, 50]}


def test_a_device_that_lacks_the_first_run_has_the_numbers_of_the_others() -> None:
    late = device([("dot.1", 31, 41, 1), ("dot.1", 51, 61, 2)], number=1)
    assert runs_in_order([late, RUNS], ("jit_f", 1)) == {"": {0: 0, 1: 1, 2: 2}}


def test_marked_steps_have_the_runs_that_they_began() -> None:
    marked = replace(RUNS, steps_of_runs={0: 7, 2: 8})
    assert steps(marked, marked.steps_of_runs) == {7: [10], 8: [50]}


def test_a_line_of_steps_goes_by_time() -> None:
    trace = device([("dot.1", time, time + 1, 0) for time in (4, 5, 24, 25, 44, 45)])
    trace = replace(trace, step_spans=((3, 5, 25), (4, 25, 45)), steps_of_runs={0: 9})
    assert steps(trace, trace.steps_of_runs) == {3: [5, 24], 4: [25, 44]}
