"""The lists of what can be put on screen: examples, lessons, places to go to, questions, and shardings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.widgets import Input

from shardviz.errors import ShardvizError
from shardviz.forms.examples import Example, examples
from shardviz.forms.jumps import DeviceJump, InstructionJump, StepJump, device_at, instruction_names
from shardviz.forms.options import with_shardings
from shardviz.forms.summary import is_same_question, what_differs
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import collectives_text, coordinates
from shardviz.render.cost_view import comparison_words, machine_words, total_words
from shardviz.render.lines import READABLE, sentence
from shardviz.render.plans_compared import ranking_rows, versus_table
from shardviz.render.questions_view import question_rows
from shardviz.stepping.plan_step import collective_steps
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import AREAS, TABLES

with LazyImports():
    from shardviz.answers import search
    from shardviz.hardware import machine as machines
    from shardviz.lessons import course
    from shardviz.planner import ranking
    from shardviz.planner.pricing import costs as pricing
    from shardviz.planner.problem import reading
    from shardviz.planner.search import mesh_ranking
    from shardviz.render import lesson_view, search_view

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.lesson import Lesson
    from shardviz.planner.ranking import Candidate
    from shardviz.planner.search.mesh_ranking import MeshRanking
    from shardviz.render.palette import Palette
    from shardviz.tui.lesson.progress import LessonProgress
    from shardviz.tui.state import EditorState


class ExamplesDialog(FilteredList):
    """Leaves with an example."""

    title_text = "Examples"
    nothing = "No example matches; remove some words."

    def on_mount(self) -> None:
        rows = []
        for example in examples():
            words = f"{example.document} {example.title} {example.look}"
            rows.append(ListRow(Text(f"  {example.title}"), words, example, Text(example.document, "bold")))
        self.show_rows(rows)

    def about(self, row: ListRow) -> Text:
        example: Example = row.value
        draft, place = example.draft, AREAS[example.screen]
        what = f"{draft.einsum}   {', '.join(draft.specs[:-1])} -> {draft.specs[-1]}"
        if draft.collective is not None:
            what = draft.collective.op
        line = f"{what}   {draft.mesh.replace(',', ' ')}\n"
        return Text.assemble((line, "bold"), f"{example.look}", (f"\nOpens {place}.", "dim"))


class LessonsDialog(FilteredList):
    """Leaves with a lesson. First is `open_now`, or the first that is not solved."""

    title_text = "Lessons"
    nothing = "No lesson matches; remove some words."
    DEFAULT_CSS = """
    LessonsDialog.-broad.-high OptionList { width: 60; }
    """

    def __init__(self, progress: LessonProgress, open_now: Lesson | None) -> None:
        super().__init__()
        self._progress, self._open_now = progress, open_now

    async def on_mount(self) -> None:
        try:
            lessons = course.course()
        except ShardvizError as error:
            self.describe(Text(error_words(error)))
            return
        rows = []
        unsolved = None
        for lesson, entry in zip(lessons, await self._progress.entries(lessons), strict=True):
            line = lesson_view.course_line(entry)
            rows.append(ListRow(line, f"{lesson.number} {line.plain} {lesson.goal.text}", lesson))
            if unsolved is None and entry.state != "solved":
                unsolved = lesson
        self.show_rows(rows, self._open_now if self._open_now in lessons else unsolved)
        self._progress.report(self.app)

    def about(self, row: ListRow) -> Text:
        lesson: Lesson = row.value
        return Text.assemble((f"{lesson.title}\n", "bold"), lesson.goal.text)


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

    def __init__(self, state: EditorState, palette: Palette) -> None:
        super().__init__(classes="fitted")
        self._resolved, self._answers, self._palette = state.resolved, state.queries.answers, palette

    def on_mount(self) -> None:
        self.show_rows([*self._devices(), *self._steps(), *self._instructions()])

    @property
    def nothing(self) -> str:  # type: ignore[override]
        """Why nothing is found."""
        try:
            device_at(self.query_one(Input).value, self._resolved.problem.mesh)
        except ShardvizError as error:
            return error_words(error)
        return "No device, collective or instruction has this name."

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
            over = {
                collective.name: f"  {collective.op} over {','.join(collective.axes)}"
                for collective in compiled.collectives
            }
            names = instruction_names(compiled.text)
            for instruction in sorted(names, key=lambda each: each not in over):
                line = Text.assemble(f"  {names[instruction]}", (over.get(instruction, ""), "dim"))
                yield ListRow(line, line.plain, InstructionJump(name, instruction), heading)


(COMPARE,) = TABLES["QUESTIONS"]


class QuestionsDialog(FilteredList):
    """`=` puts the line beside the question that is shown, or no longer, `enter` leaves with its form."""

    title_text = "Questions"
    nothing = "No question matches; remove some words."
    commands = (OPEN, MOVES[0], COMPARE, CLOSE)
    taken = (COMPARE,)
    is_table = True
    DEFAULT_CSS = """
    QuestionsDialog #about, QuestionsDialog.-broad.-high #about { max-height: 60%; }
    QuestionsDialog.comparing #about, QuestionsDialog.comparing.-broad.-high #about { max-height: 75%; }
    """

    def __init__(self, state: EditorState, palette: Palette) -> None:
        super().__init__()
        self._asked, self._now = state.questions, state.resolved
        self._palette = palette
        self._compares = False

    def on_mount(self) -> None:
        self.describe(Text("No question has been answered yet."))
        self.call_after_refresh(self._list)

    def _list(self) -> None:
        """The questions, the cursor where it is, or on the newest that is not shown now."""
        questions = self._asked.newest_first
        if not questions or not self.is_attached:
            return
        width = self.choices.content_size.width - 2
        first = next((question for question in questions if not is_same_question(question, self._now)), None)
        if self.chosen is not None:
            first = self.chosen.value
        self.show_table(question_rows(questions, self._now, width, self._palette), questions, first)

    def about(self, row: ListRow) -> Text:
        chosen: ResolvedProblem = row.value
        width = min(self.query_one("#choice").content_size.width, READABLE)
        if self._compares and is_same_question(chosen, self._now):
            lines = sentence("This question is on screen: choose another to compare with it.", width)
        elif self._compares:
            names = [
                "  ".join(part.text for part in what_differs(*pair))
                for pair in ((chosen, self._now), (self._now, chosen))
            ]
            lines = versus_table(chosen.cost, self._now.cost, width, (names[0], names[1]))
        else:
            lines = sentence(machine_words(chosen.cost), width, lead="time  ")
            lines += [line for words in total_words(chosen.cost) for line in sentence(words, width, 1)]
        return Text("\n").join(lines)

    def action_compare(self) -> None:
        self._compares = not self._compares
        self.set_class(self._compares, "comparing")
        self.describe_chosen()

    def leave_with(self, row: ListRow) -> None:
        self.dismiss(row.value.draft)


HIGH = 20
"""Lines of a window that has room for the figures that the table leaves out."""


class ShardingsDialog(FilteredList):
    """Leaves with the form of a line."""

    title_text = "Meshes and their best shardings"
    nothing = "No mesh matches; remove some words."
    is_table = True

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette
        self._answer: MeshRanking | None = None
        self._columns: int | None = None

    def on_mount(self) -> None:
        self.describe(Text("searching the meshes …", "dim"))
        self.beside(self._search)

    def _search(self) -> Iterator[Callable[[], object]]:
        """The problem with all shardings open, on any mesh with its axes of the same machine."""
        form, mesh, machine = self._resolved.shown, self._resolved.problem.mesh, self._resolved.machine
        if machine.assumed:
            machine = machines.assumed_machine(machine.chip, mesh.size)
        question = search.search_question(
            form.einsum,
            machine,
            ",".join(mesh.axis_names),
            sizes=form.sizes,
            dtype=form.dtype,
            backward=form.backward == "yes",
            remat=form.remat,
            optimizer=form.optimizer,
        )
        for answer in mesh_ranking.search_meshes(question):
            words = f"{answer.looked_at:,} of {answer.meshes:,} meshes …"
            yield partial(self.describe, Text(words, "dim"))
            if answer.is_complete:
                yield partial(self._show, mesh_ranking.with_smallest_machine(answer))

    def _show(self, answer: MeshRanking) -> None:
        self._answer = answer
        if not answer.found:
            self.describe(
                Text(
                    f"{search_view.infeasible_words(answer)}\n{search_view.larger_machine_words(answer)}".strip()
                )
            )
            return
        room = self.size.width - 8
        lines, columns = search_view.found_rows(answer.found, room, self._palette)
        if self.size.height >= HIGH:
            self._columns = columns
        self.show_table(lines, answer.found)

    def about(self, row: ListRow) -> Text:
        assert self._answer is not None
        width = min(self.query_one("#choice").content_size.width, READABLE)
        lines = search_view.sharding_lines(self._answer, row.value, width, self._palette, self._columns)
        return Text("\n").join(lines)

    def leave_with(self, row: ListRow) -> None:
        assert self._answer is not None
        mesh = mesh_ranking.shown_mesh(self._answer.question, row.value)
        self.dismiss(with_shardings(self._resolved.shown, mesh, dict(row.value.specs)))


class RankingDialog(FilteredList):
    """Leaves with the form of a sharding. A train step is ranked by its forward pass."""

    title_text = "Shardings over this mesh, fastest first"
    nothing = "No sharding matches; remove some words."
    is_table = True

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette

    def on_mount(self) -> None:
        self.describe(Text("planning each sharding …", "dim"))
        self.beside(self._rank)

    def _rank(self) -> Iterator[Callable[[], object]]:
        form, problem = self._resolved.shown, self._resolved.problem
        question = reading.problem_from_text(
            form.einsum, mesh=problem.mesh, sizes=form.sizes, dtype=form.dtype, ranked=True
        )
        candidates = ranking.rank(question, self._resolved.placed)
        lines = ranking_rows(candidates, self.size.width - 8, self._palette)
        yield partial(self.show_table, lines, candidates)

    def about(self, row: ListRow) -> Text:
        candidate: Candidate = row.value
        beside = comparison_words(candidate.cost, pricing.price(self._resolved.plan, self._resolved.placed))
        moves = collectives_text(candidate.plan, self._palette)
        return Text.assemble("collectives: ", moves, f"\nbeside the plan on screen: {beside}")

    def leave_with(self, row: ListRow) -> None:
        plan = row.value.plan
        specs = {array.name: array.spec for array in plan.problem.arguments if array.spec is not None}
        self.dismiss(with_shardings(self._resolved.shown, plan.problem.mesh, specs))
