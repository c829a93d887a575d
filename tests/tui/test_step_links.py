"""Whose links the player takes."""

from __future__ import annotations

from dataclasses import replace

from shardviz.compiler import TargetResult, parse_targets
from shardviz.drafts.enter import enter
from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.tui.target_answers import ShownAnswer
from tests.tui.test_step_pane import SMALL, play


def test_the_links_of_a_target_stay_while_it_is_asked_again():
    (target,) = parse_targets("v5e:2x4")
    places = tuple(DeviceCoords((i // 4, i % 4)) for i in range(8))
    compiled = TargetResult(
        target.name, "ok", placement=Placement(tuple(range(8)), places, (2, 4), (False,) * 2)
    )

    def check(pane):
        assert pane.chosen.links_of == ""
        pane.show_answers({target.name: ShownAnswer(target, "answered", compiled=compiled)})
        assert (pane.chosen.links_of, str(pane.chosen.links.topology)) == (target.name, "line of 4")
        pane.state.edit(enter(draft, "dtype", "f32"))
        pane.show_answers({target.name: ShownAnswer(target, "asked")})
        assert pane.chosen.links_of == target.name
        pane.state.edit(enter(draft, "mesh", "X=4,Y=2"))
        assert pane.chosen.links_of == ""

    draft = replace(SMALL, targets=target.name)
    play([], check, draft)
