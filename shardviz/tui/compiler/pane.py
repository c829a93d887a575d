"""The compiler screen: a target's program, and how its compiler got there."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.widgets import Static

from shardviz.errors import ShardvizError
from shardviz.hlo.dumps import PassStage
from shardviz.lessons.measures import AnswerLocation
from shardviz.planner.problem import Problem
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.passes_view import diff_lines, stage_list
from shardviz.render.programs.program_pages import ListedProgram, read_program
from shardviz.render.programs.target_answers import error_lines
from shardviz.reports.target_result import PassTrace, TargetResult, without_answer
from shardviz.tui.compiler.program_box import ProgramBox
from shardviz.tui.compiler_queries import ShownReply
from shardviz.tui.registry import COMPILER, SEARCHING, Command, bindings
from shardviz.tui.state import EditorState
from shardviz.tui.targets_pane import TargetsPane, fault_lines, notice, program_heading, reworded, state_words


class Passes:
    """The passes of one target. `back` counts stages from the program. `diffs` has the differences that were
    made so far, by stage. The stages of the previous problem stay until there are others."""

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


class CompilerPane(TargetsPane):
    """The targets, and below them what they choose: a program, or a stage of the passes. An answer
    to the problem before stays, dim, until there is one to the problem on screen."""

    area = "compiler"
    BINDINGS = bindings(COMPILER)

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self._programs: dict[str, ListedProgram | ShardvizError] = {}
        self._reading: TargetResult | None = None
        self._passes: dict[str, Passes] = {}
        self._with_diff = False
        self.box = ProgramBox()

    def compose(self) -> ComposeResult:
        yield Static(id="targets")
        yield self.box

    @property
    def passes(self) -> Passes:
        return self._passes.setdefault(self._chosen, Passes())

    @property
    def idle(self) -> Collection[str]:
        idle = set() if self._answers else {"stage", "diff", "ask"}
        if len(self._answers) < 2:
            idle.add("target")
        if not self.program_text():
            idle |= {"collective", "search", "open_time"}
        return idle

    @property
    def typing(self) -> Sequence[Command]:
        return SEARCHING if self.box.is_searching else ()

    def program_text(self) -> str:
        program = self._programs.get(self._chosen)
        return program.compiled.text if isinstance(program, ListedProgram) else ""

    def command_line(self) -> str:
        if not self._chosen:
            return super().command_line()
        return self.chosen_command("passes") if self.passes.back else self.chosen_command("explain", "--hlo")

    def open_instruction(self, target: str, name: str) -> None:
        self._passes.setdefault(target, Passes()).back = 0
        super().open_instruction(target, name)

    def begin(self, _place: AnswerLocation) -> None:
        self._with_diff = False
        self._passes.clear()
        self.draw()

    def show_lens(self) -> None:
        self.box.mark_device(self.state.lens)

    def on_program_view_resized(self) -> None:
        self.draw()

    def draw(self) -> None:
        if not self.size.width:
            return
        answers = self._answers
        if self._chosen not in answers:
            compilers = [name for name in answers if name != "shardy"]
            self._chosen, self._wanted = next(iter(compilers or answers), ""), ""
        self._programs = {name: program for name, program in self._programs.items() if name in answers}
        self._passes = {name: passes for name, passes in self._passes.items() if name in answers}
        if self._chosen in answers and self.passes.back:
            self.passes.follow(self.state.queries.traced(self._chosen), self.state.resolved.problem)
        self._read_what_is_new()
        self.box.mark_device(self.state.lens)
        self.draw_status()
        self.refresh_bindings()
        self.keep_time(self.passes.is_under_way)

    def draw_status(self) -> None:
        super().draw_status()
        self.box.title(self._heading())
        self._draw_box()

    def _heading(self) -> Text:
        """The subject of the page below, and what is not yet there."""
        answer = self._answers.get(self._chosen)
        if answer is None:
            return Text()
        if self.passes.back:
            words = self.passes.words(self.state.resolved.problem)
            return Text.assemble((f"the passes of {self._chosen}", "bold"), ("  " + words, "dim"))
        return program_heading(answer, self._programs.get(self._chosen), self.box.folded, self.size.width)

    def _draw_box(self) -> None:
        box, width, palette, problem = self.box, self.box.view.room, self.palette, self.state.resolved.problem
        answer = self._answers.get(self._chosen)
        if self.passes.back:
            stage = self.passes.stage
            if self._with_diff and stage is not None and id(stage) not in self.passes.diffs:
                self._compare(self.passes, stage)
            lines, pointed = self.passes.lines(self._with_diff, width, palette)
            is_old = self.passes.is_old(problem)
            box.show_lines(lines, (self._chosen, self.passes.back, len(pointed)), pointed, is_old)
            return
        program = self._programs.get(self._chosen)
        failed = answer is not None and answer.compiled is not None and answer.compiled.status != "ok"
        if answer is None or failed or program is None:
            box.show_lines(notice(answer, width), ("notice", self._chosen))
        elif isinstance(program, ListedProgram):
            box.show_program(program, palette, program.compiled is not answer.compiled)
            if self._wanted and program.compiled is answer.compiled:
                box.to_instruction(self._wanted)
                self._wanted = ""
        else:
            box.show_lines(fault_lines(program, width), ("fault", self._chosen))

    def _read_what_is_new(self) -> None:
        """Have the chosen target's program read, where that is not done or under way."""
        answer, program = self._answers.get(self._chosen), self._programs.get(self._chosen)
        compiled = answer.compiled if answer is not None else None
        if compiled is None or compiled.status != "ok":
            return
        known = program.compiled if isinstance(program, ListedProgram) else None
        if compiled is not known and compiled is not self._reading:
            self._reading = compiled
            self._read(compiled, self.state.resolved.problem)

    @work(thread=True, exclusive=True, group="read")
    def _read(self, compiled: TargetResult, problem: Problem) -> None:
        try:
            program: ListedProgram | ShardvizError = read_program(compiled, problem.mesh)
        except ShardvizError as error:
            program = error

        def take() -> None:
            if compiled is self._reading:
                self._programs[compiled.target] = program
                if isinstance(program, ListedProgram):
                    self._reading = None
                self.draw()

        self.call_later(take)

    @work(thread=True, exclusive=True, group="compare")
    def _compare(self, passes: Passes, stage: PassStage) -> None:
        diff = stage.diff()

        def take() -> None:
            passes.diffs[id(stage)] = diff
            self.draw()

        self.call_later(take)

    def action_stage(self, step: int) -> None:
        self.passes.move(step)
        self.draw()

    def action_diff(self) -> None:
        self._with_diff = not self._with_diff
        self.draw()

    def action_open_time(self) -> None:
        if self.to_program():
            self.post_message(self.InstructionOpened("time", self._chosen, self.box.instruction))

    def to_program(self) -> bool:
        """Show the program in place of a stage; False where there is none."""
        if self.passes.back:
            self.passes.back = 0
            self.draw()
        return self.box.is_program

    def action_view(self, what: str, *places: int) -> None:
        getattr(self.box.view, what)(*places)

    def action_collective(self, step: int) -> None:
        if self.to_program():
            self.box.to_collective(step)

    def action_search(self) -> None:
        if self.to_program():
            self.box.open_search()

    def action_fold(self) -> None:
        self.to_program()
        self.box.folded = not self.box.folded
        self.draw()
