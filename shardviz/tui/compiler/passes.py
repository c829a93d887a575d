"""The passes of a target, one of them chosen, and what is known of them."""

from __future__ import annotations

from rich.text import Text

from shardviz.hlo.dumps import PassStage
from shardviz.planner.problem import Problem
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.passes_view import diff_lines, stage_list
from shardviz.render.programs.target_answers import error_lines
from shardviz.reports.target_result import PassTrace, without_answer
from shardviz.tui.compiler_queries import ShownReply
from shardviz.tui.targets_pane import reworded, state_words


class Passes:
    """The passes of one target. `back` counts stages from the program. `diffs` has
    the differences that were made so far, by stage. The stages of the previous problem stay until there are
    others."""

    def __init__(self) -> None:
        self.back = 0
        self.diffs: dict[int, tuple[str, ...]] = {}
        self._known: ShownReply[PassTrace] | None = None
        self._stages: tuple[PassStage, ...] = ()
        self._problem: Problem | None = None

    def follow(self, known: ShownReply[PassTrace], problem: Problem) -> None:
        """More may be known of the passes for the problem on screen."""
        self._known = known
        if known.state in ("answered", "failed"):
            stages = known.answer.stages if known.answer is not None else ()
            if stages is not self._stages:
                self._stages, self._problem, self.diffs = stages, problem, {}
            self.back = min(self.back, max(1, len(stages)))

    def move(self, step: int) -> None:
        """Some stages on; the first is as far back as it goes, which `follow` sees to once they are known."""
        self.back = max(0, self.back - step)
        if self._stages:
            self.back = min(self.back, len(self._stages))

    @property
    def stage(self) -> PassStage | None:
        """The stage that is chosen; None at the program, or while nothing is known."""
        return self._stages[-self.back] if self.back and self._stages else None

    @property
    def is_under_way(self) -> bool:
        return self._known is not None and self._known.state == "asked"

    def is_old(self, problem: Problem) -> bool:
        return bool(self._stages) and problem != self._problem

    def words(self, problem: Problem) -> str:
        """The state of stages that are not those of the problem on screen, or not there yet."""
        said = ["of the previous problem"] if self.is_old(problem) else []
        if self._known is not None and (state := state_words(self._known)):
            said.append(state)
        return "; ".join(said)

    def lines(self, with_diff: bool, width: int, palette: Palette) -> tuple[list[Text], range]:
        """The stages, one in full, and which lines are its; or why there are none."""
        if self.stage is None or self._problem is None:
            return self._silence(width), range(0)
        diff: list[Text] = []
        if with_diff:
            made = self.diffs.get(id(self.stage))
            diff = [Text("    comparing…", "dim")] if made is None else diff_lines(made, width)
        chosen = len(self._stages) - self.back
        return stage_list(self._stages, chosen, self._problem, width, palette, diff)

    def _silence(self, width: int) -> list[Text]:
        known = self._known
        if known is None:
            return []
        if known.error is not None:
            return error_lines(reworded(without_answer(known.target.name, known.error)), width, 0)
        if known.answer is not None and known.answer.compiled.status != "ok":
            return error_lines(reworded(known.answer.compiled), width, 0)
        if known.answer is not None:
            return sentence("No passes to follow: the program has one device.", width)
        return sentence("Compiling again to record each pass.", width, style="dim")
