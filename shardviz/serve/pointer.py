"""A teacher's pointer: the device, the step of the plan and the round at which a page looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.tui.app import ShardvizApp


@dataclass(frozen=True)
class PagePointer:
    """`lens` is the position in the mesh of the device that is marked, None where none is. `step` is that of
    the plan under the cursor or played, from 1, `round` the one that is shown; 0 where there is none."""

    lens: int | None = None
    step: int = 0
    round: int = 0


def pointer_in(said: object) -> PagePointer:
    """The pointer in a message; one that points at nothing where it has none."""
    match said:
        case {"lens": int() | None as lens, "step": int(step), "round": int(round)}:
            return PagePointer(lens, step, round)
    return PagePointer()


def pointer_of(app: ShardvizApp) -> PagePointer:
    """The pointer of a page."""
    panes = app.workspace.shown
    step = next((pane.step_shown for pane in panes if pane.step_shown), 0)
    return PagePointer(app.state.lens, step, max((pane.round_shown for pane in panes), default=0))


def follow_pointer(app: ShardvizApp, to: PagePointer) -> None:
    """Look where a pointer does, as far as the page shows the like."""
    if to.lens is None or 0 <= to.lens < app.state.resolved.problem.mesh.size:
        app.state.set_lens(to.lens)
    for pane in app.workspace.shown:
        if to.step > 0:
            pane.show_step(to.step)
        pane.show_round(to.round)
