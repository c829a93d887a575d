"""The plan as a list to choose from."""

from __future__ import annotations

import pytest

from shardviz.notation import parse_mesh
from shardviz.planner import plan, problem_from_text
from shardviz.render.palette import PLAIN
from shardviz.render.plans.steps_picture import MARK, MORE, StepsPicture
from shardviz.stepping.plan_step import StepCost


@pytest.fixture
def four_steps():
    mesh = parse_mesh("X=4,Y=4")
    return plan(problem_from_text("bd,df->bf", specs="XY,YX->XY", mesh=mesh))


@pytest.mark.parametrize("width", [30, 40, 80, 200])
@pytest.mark.parametrize("height", [None, 12])
def test_every_line_fits_and_the_place_is_that_of_the_chosen_step(four_steps, width, height):
    picture = StepsPicture(four_steps, width, PLAIN)
    costs = {1: StepCost("ring", 3, 786_432, 2, 786_432)}
    for chosen in range(1, 5):
        lines, place = picture.lines(chosen, costs, height)
        assert max(line.cell_len for line in lines) <= width
        marked = [number for number, line in enumerate(lines) if line.plain.startswith(MARK)]
        assert marked == [*place]
        assert lines[place.start].plain.startswith(f"{MARK} {chosen}  {four_steps.steps[chosen - 1].op}")


def test_where_there_is_room_every_reason_is_told_and_else_that_of_the_chosen_step(four_steps):
    picture = StepsPicture(four_steps, 80, PLAIN)
    reasons = [step.reason.split()[-1] for step in four_steps.steps]

    def ends(height):
        lines, _ = picture.lines(2, {}, height)
        return [any(line.plain.endswith(word) for line in lines) for word in reasons], [
            line.plain.endswith(MORE) for line in lines
        ].count(True)

    assert ends(None) == ([True, True, True, True], 0)
    assert ends(12) == ([False, True, False, False], 3)


def test_costs_stand_with_their_steps_and_in_all(four_steps):
    picture = StepsPicture(four_steps, 100, PLAIN)
    costs = {
        1: StepCost("ring", 3, 786_432, 2, 786_432),
        3: StepCost("ring", 3, 3_145_728, 2, 3_145_728),
        4: StepCost("direct", 1, 1_048_576, 1, 1_048_576),
    }
    text = [line.plain.strip(f"{MARK} ") for line in picture.lines(1, costs)[0]]
    assert "by ring: 768 KiB sent in 3 rounds; the least: 768 KiB, 2 rounds" in text
    assert text[-2:] == [
        "3 collectives; each device sends 4,980,736 bytes (4.75 MiB)",
        "by ring, direct: 4.75 MiB sent in 7 rounds; the least: 4.75 MiB, 5 rounds",
    ]
    assert len(picture.lines(1, {1: costs[1]})[0]) == len(text) - 3


def test_a_case_alone_has_its_meaning_beside_it():
    mesh = parse_mesh("X=2,Y=4")
    lines, _ = StepsPicture(
        plan(problem_from_text("bd,df->bf", specs="X_,_Y->XY", mesh=mesh)), 80, PLAIN
    ).lines(1, {})
    assert lines[0].plain == "case 1  no axis splits a summed dimension; textbook: multiply"
    assert lines[-1].plain == "no collective: nothing is sent"
