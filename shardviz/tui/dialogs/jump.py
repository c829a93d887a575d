"""The line in which one types where to go: a device, a collective, an instruction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widgets import Input

from shardviz.errors import ShardvizError
from shardviz.forms.jumps import DeviceJump, InstructionJump, StepJump, device_at, instruction_names
from shardviz.forms.wording import error_words
from shardviz.render.caption import coordinates
from shardviz.stepping.plan_step import collective_steps
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.render.palette import Palette
    from shardviz.tui.target_answers import ShownAnswer

LISTED = 64
"""Devices that are listed; any other is found by its number or its coordinates."""


class JumpDialog(FilteredList):
    """Leaves with a `Jump`."""

    title_text = "Go to"
    placeholder = "a device: 5 or X=1,Y=2; a collective; an instruction"
    DEFAULT_CSS = """
    JumpDialog #choice, JumpDialog.-broad.-high #choice { height: auto; layout: vertical; }
    JumpDialog OptionList, JumpDialog.-broad.-high OptionList { width: 1fr; height: auto; max-height: 20; }
    JumpDialog #about, JumpDialog.-broad.-high #about { width: 1fr; padding: 0; }
    JumpDialog #about { display: none; }
    JumpDialog.nothing #about { display: block; }
    """

    def __init__(
        self, resolved: ResolvedProblem, answers: Mapping[str, ShownAnswer], palette: Palette
    ) -> None:
        super().__init__(classes="fitted")
        self._resolved, self._answers, self._palette = resolved, answers, palette

    def on_mount(self) -> None:
        self.show_rows([*self._devices(), *self._steps(), *self._instructions()])

    @property
    def nothing(self) -> str:  # type: ignore[override]
        """Why nothing is found."""
        try:
            device_at(self.query_one(Input).value, self._resolved.problem.mesh)
        except ShardvizError as error:
            return error_words(error)
        return "No device, collective or instruction is called so."

    def row_of(self, typed: str) -> ListRow | None:
        try:
            device = device_at(typed, self._resolved.problem.mesh)
        except ShardvizError:
            return None
        return None if device is None else self._device(device.position)

    def _narrow(self, first: Any) -> None:
        super()._narrow(first)
        self.set_class(self.chosen is None, "nothing")

    def _devices(self) -> Iterator[ListRow]:
        for position in range(min(self._resolved.problem.mesh.size, LISTED)):
            yield self._device(position)

    def _device(self, position: int) -> ListRow:
        mesh = self._resolved.problem.mesh
        words = coordinates(mesh, position, self._palette)
        line = Text.assemble(f"  device {mesh.device_id(position)}  ", words)
        return ListRow(line, line.plain, DeviceJump(position), Text(f"devices of {mesh}", "bold"))

    def _steps(self) -> Iterator[ListRow]:
        steps = self._resolved.plan.steps
        for number in collective_steps(self._resolved.plan):
            step = steps[number - 1]
            line = f"  {number}  {step.op} {step.array} over {','.join(step.axes)}"
            yield ListRow(Text(line), line, StepJump(number), Text("collectives of the plan", "bold"))

    def _instructions(self) -> Iterator[ListRow]:
        """Of each target's program the collectives, then all other instructions."""
        for name, answer in self._answers.items():
            compiled = answer.compiled
            if compiled is None or compiled.status != "ok":
                continue
            heading = Text(f"instructions of {name}'s program", "bold")
            over = {each.name: f"  {each.op} over {','.join(each.axes)}" for each in compiled.collectives}
            names = instruction_names(compiled.text)
            for instruction in sorted(names, key=lambda each: each not in over):
                line = Text.assemble(f"  {instruction}", (over.get(instruction, ""), "dim"))
                yield ListRow(line, line.plain, InstructionJump(name, instruction), heading)
