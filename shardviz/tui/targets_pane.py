"""A pane about one of the targets, and the lines about their answers: the tab and the heading of each, and
what stands in place of a program."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from shlex import join
from typing import Any

from rich.text import Text
from textual.events import Click
from textual.widgets import Static

from shardviz.errors import NoMachineError, ShardvizError, TargetError, plural
from shardviz.forms.command_line import to_arguments
from shardviz.forms.wording import as_sentence
from shardviz.lazy_names import LazyImports
from shardviz.render.lines import printable_line, sentence
from shardviz.render.programs.program_pages import ListedProgram
from shardviz.render.programs.target_answers import (
    TargetTab,
    Wait,
    error_lines,
    spinner,
    target_at,
    target_strip,
)
from shardviz.reports.target_result import TargetResult
from shardviz.tui.compiler_queries import ShownAnswer, ShownReply
from shardviz.tui.pane import Pane
from shardviz.units import human_bytes, seconds

with LazyImports():
    from shardviz.codegen import problem as problem_program


class TargetsPane(Pane):
    """Shows one of the targets, or of what else has a `_tab` among them: the first line names them all, and a
    key or a click chooses another. `draw_status` is called again and again while a target is asked."""

    _chosen: str = ""
    """The name of what is shown."""
    _wanted = ""
    """An instruction of that to go to, as soon as its program is here."""

    @property
    def _answers(self) -> Mapping[str, ShownAnswer]:
        return self.state.queries.answers

    @property
    def _names(self) -> list[str]:
        return [*self._answers]

    def _tab(self, name: str) -> TargetTab:
        answer = self._answers[name]
        if (compiled := answer.compiled) is not None:
            if compiled.status != "ok":
                return TargetTab(name, "✗")
            return TargetTab(name, "✓", seconds(compiled.elapsed_s) if compiled.elapsed_s else "")
        wait = wait_of(answer)
        if wait.seconds is not None:
            return TargetTab(name, spinner(wait.seconds, self.is_moving), f"{wait.seconds:.1f} s")
        return TargetTab(name, "·", "cancelled" if answer.state == "cancelled" else "waits")

    def draw_status(self) -> None:
        names, strip = self._names, Text()
        if self._chosen in names:
            strip = target_strip([*map(self._tab, names)], names.index(self._chosen), self.size.width)
        self.query_one("#targets", Static).update(strip, layout=False)

    def _choose(self, name: str) -> None:
        self._chosen, self._wanted = name, ""
        self.draw()

    def open_instruction(self, target: str, name: str) -> None:
        """Go to an instruction, now or as soon as its program is here."""
        self._chosen, self._wanted = target, name
        self.draw()

    def chosen_command(self, name: str, *flags: str) -> str:
        """The line of a command that asks the chosen target alone."""
        shown = self.state.resolved.shown
        if self._chosen in self._answers:
            shown = replace(shown, targets=self._chosen)
        _, *arguments = to_arguments(shown)
        return join(["shardviz", name, *arguments, *flags])

    def jax_code(self) -> str:
        answer = self._answers.get(self._chosen)
        if answer is None:
            return super().jax_code()
        compiled = answer.compiled
        if compiled is not None and compiled.status == "unavailable":
            raise TargetError(compiled.error, compiled.hint)
        return problem_program.problem_code(self.state.resolved.problem, answer.target)

    def on_click(self, event: Click) -> None:
        strip = self.query_one("#targets", Static)
        if event.widget is strip:
            self._choose(target_at(str(strip.content), self._names, event.x) or self._chosen)

    def action_target(self, step: int) -> None:
        names = self._names
        if names:
            index = names.index(self._chosen) + step if self._chosen in names else 0
            self._choose(names[index % len(names)])

    def action_ask(self) -> None:
        self.state.queries.ask_now(self._chosen if self._chosen in self._answers else "")


def wait_of(answer: ShownReply[Any]) -> Wait:
    name = answer.target.name
    if answer.state == "asked":
        return Wait(name, answer.stage or "asked", max(0.0, time.monotonic() - answer.since))
    if answer.state == "cancelled":
        return Wait(name, "cancelled; r recompiles")
    is_next = answer.target.process == "simulated"
    return Wait(name, "queued" if is_next else "waits for a pause in typing; r compiles now")


def reworded(compiled: TargetResult) -> TargetResult:
    """The same answer; why it is none is said in sentences that name the application's fields and keys."""
    if compiled.status == "ok":
        return compiled
    return replace(compiled, error=as_sentence(compiled.error), hint=as_sentence(compiled.hint))


def state_words(answer: ShownReply[Any]) -> str:
    """``compiling, 3.2 s``, ``cancelled; r recompiles``; empty where the answer is there."""
    if answer.state in ("answered", "failed"):
        return ""
    wait = wait_of(answer)
    return wait.stage if wait.seconds is None else f"{wait.stage}, {wait.seconds:.1f} s"


def program_heading(
    answer: ShownAnswer, program: ListedProgram | ShardvizError | None, folded: bool, width: int
) -> Text:
    """``cpu 1 collective 192 KiB sent on each device``; of the previous problem, how it is now. What does not
    fit is left out."""
    compiled = answer.compiled
    state = state_words(answer)
    if compiled is not None and compiled.status != "ok":
        return Text.assemble((answer.target.name, "bold"), "  no answer")
    if not isinstance(program, ListedProgram):
        return Text.assemble((answer.target.name, "bold"), f"  {state or 'reading…'}")
    if program.compiled is not compiled:
        return Text.assemble(("of the previous problem", "bold"), f"  {state or 'reading…'}")
    moving = [collective for collective in program.compiled.collectives if collective.op != "slice"]
    sent = sum(collective.wire_bytes * (collective.count or 1) for collective in moving)
    how = "on all devices at once" if answer.target.name == "shardy" else "on each device"
    facts = [plural(len(moving), "collective"), *[f"{human_bytes(sent)} sent"] * bool(moving)]
    facts.append(how if folded else "all of the text")
    text = Text.assemble((answer.target.name, "bold"))
    for fact in facts:
        if text.cell_len + 2 + len(fact) <= width:
            text.append(f"  {fact}", "dim")
    return text


def notice(answer: ShownAnswer | None, width: int) -> list[Text]:
    if answer is None:
        return sentence("No targets: add some to the problem, such as shardy,cpu.", width)
    if answer.compiled is not None and answer.compiled.status != "ok":
        return [printable_line(line) for line in error_lines(reworded(answer.compiled), width, 0)]
    return sentence(answer.target.description, width, style="dim")


def fault_lines(fault: ShardvizError, width: int) -> list[Text]:
    said, hint = as_sentence(fault.message), as_sentence(fault.hint)
    lead = "" if isinstance(fault, NoMachineError) else "✗ "
    lines = [*sentence(said, width, lead=lead), *sentence(hint, width, len(lead), style="dim")]
    return [printable_line(line) for line in lines]
