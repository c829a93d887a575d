"""The base of the workspace's sides, which have commands of their own, and of the panes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.message import Message

from shardviz.lazy_names import LazyImports
from shardviz.tui.registry import AREAS, COMMANDS, Command
from shardviz.tui.themes import Styled

with LazyImports():
    from shardviz.codegen import problem as problem_program
    from shardviz.documents import programs
    from shardviz.forms import command_line as command_lines
    from shardviz.planner.pricing import costs as pricing

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.state import EditorState


TICK_S = 0.1
"""Seconds between two pictures of something under way."""
BESIDE, GAP = 110, 3
"""From so many columns a pane has its second part beside the first, these columns apart; else below it."""


class Side(Styled, Vertical):
    """The left or the right of the workspace: the problem, a pane, or a lesson's widget in their place."""

    @property
    def commands(self) -> Sequence[Command]:
        """Those of the part's commands that do something now; after a change it calls `refresh_bindings`."""
        return ()

    @property
    def typing(self) -> Sequence[Command]:
        """The commands that work while text is typed in the part, when every other key is text."""
        return ()

    def is_beside(self, part: str) -> bool:
        """Return whether a part is on screen as well, and what it says need not be said twice."""
        return any(widget.display for widget in self.screen.query(part))


class Pane(Side):
    """One of the screens. `area` is its name in the registry.

    `show_problem` is called when the pane comes on screen, and, while it is there, for each change of the
    problem or the lens; `draw` where answers of targets have changed; `show_lens` where nothing but the lens
    has. What is exported is the problem of `state`, unless the pane shows something else."""

    area: ClassVar[str]

    @dataclass
    class StepOpened(Message):
        """A step of the plan is to be played, by its number."""

        number: int

    @dataclass
    class InstructionOpened(Message):
        """An instruction of a target's program is to be shown on the screen of that area."""

        area: str
        target: str
        name: str

    def __init__(self, state: EditorState) -> None:
        super().__init__(id=self.area)
        self.border_title = AREAS[self.area]
        self.state = state

    @property
    def is_moving(self) -> bool:
        """True where something under way may turn."""
        return self.app.animation_level != "none"

    def keep_time(self, is_under_way: bool = False) -> None:
        """Call `draw_status` again and again while a target is asked, or something else is under way."""
        is_asked = any(answer.state == "asked" for answer in self.state.queries.answers.values())
        pause_s = (TICK_S if self.is_moving else 1.0) if is_under_way or is_asked else None
        if pause_s != self.auto_refresh:
            self.auto_refresh = pause_s

    def automatic_refresh(self) -> None:
        if self.display:
            self.draw_status()
        else:
            self.auto_refresh = None

    def draw_status(self) -> None:
        """Draw what changes while a target is asked."""
        self.draw()

    def draw(self) -> None:
        """Draw what the state says now, and have worked out what that needs."""

    def on_show(self) -> None:
        self.draw()

    def action_ask_now(self) -> None:
        self.state.queries.ask_now()
        self.draw()

    def show_problem(self) -> None:
        self.draw()

    def show_step(self) -> None:
        """Put the cursor on the plan's step of `state.step_number`, or on what it makes."""

    def show_lens(self) -> None:
        """Mark the device of `state.lens`, or none: draw only what looks different now."""
        self.draw()

    def begin(self, place: AnswerLocation) -> None:
        """Begin at the location of a lesson's answer."""

    @property
    def idle(self) -> Collection[str]:
        """Actions of the pane that do nothing now, such as "round"."""
        return ()

    @property
    def commands(self) -> Sequence[Command]:
        idle = self.idle
        return [each for each in COMMANDS if each.area == self.area and each.action not in idle]

    def command_line(self) -> str:
        return command_lines.to_command_line(self.state.resolved.shown, "explain")

    def jax_code(self) -> str:
        """The JAX program of what the pane shows. Raises `ShardvizError` where it would not run."""
        return problem_program.problem_code(self.state.resolved.problem)

    def exported(self) -> Problem | Plan | CollectiveRun:
        """The subject of a page or a notebook of the pane."""
        return self.state.resolved.problem

    @property
    def timelines(self) -> Sequence[ProgramTimeline]:
        """The timelines on screen, of which there are pages and traces."""
        return ()

    def document(self) -> Document:
        """The JSON document of what the pane shows. Raises `ShardvizError` for one that would be too long."""
        resolved = self.state.resolved
        answers = self.state.queries.answers.values()
        return programs.explain_document(
            pricing.price(resolved.plan, resolved.placed),
            [answer.compiled for answer in answers if answer.compiled is not None],
            [difference for answer in answers for difference in answer.differences],
        )
