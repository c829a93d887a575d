"""The lists of what one can begin with: examples, and the lessons of the course."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import ShardvizError
from shardviz.forms.examples import Example, examples
from shardviz.forms.form import ProblemForm
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.registry import AREAS

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.progress import LessonProgress


class ExamplesDialog(FilteredList):
    """Leaves with an example."""

    title_text = "Examples"
    nothing = "No example has these words; take some away."

    def on_mount(self) -> None:
        self.show_rows([_example_row(example) for example in examples()])

    def about(self, row: ListRow) -> Text:
        example: Example = row.value
        line, place = problem_line(example.draft), AREAS[example.screen]
        return Text.assemble((f"{line}\n", "bold"), f"{example.look}", (f"\nOpens {place}.", "dim"))


def _example_row(example: Example) -> ListRow:
    words = f"{example.document} {example.title} {example.look}"
    return ListRow(Text(f"  {example.title}"), words, example, Text(example.document, "bold"))


def problem_line(draft: ProblemForm) -> str:
    """The problem in a line: the collective, or einsum and specs; then the mesh."""
    mesh = draft.mesh.replace(",", " ")
    if draft.collective is not None:
        return f"{draft.collective.op}   {mesh}"
    return f"{draft.einsum}   {', '.join(draft.specs[:-1])} -> {draft.specs[-1]}   {mesh}"


class LessonsDialog(FilteredList):
    """Leaves with a lesson. First is `open_now`, or the first that is not solved."""

    title_text = "Lessons"
    nothing = "No lesson has these words; take some away."
    DEFAULT_CSS = """
    LessonsDialog.-broad.-high OptionList { width: 60; }
    """

    def __init__(self, progress: LessonProgress, open_now: Lesson | None) -> None:
        super().__init__()
        self._progress, self._open_now = progress, open_now

    async def on_mount(self) -> None:
        from shardviz.lessons.course import course
        from shardviz.render.lesson_view import course_line

        try:
            lessons = course()
        except ShardvizError as error:
            self.describe(Text(error_words(error)))
            return
        rows = []
        unsolved = None
        for lesson, entry in zip(lessons, await self._progress.entries(lessons), strict=True):
            line = course_line(entry)
            rows.append(ListRow(line, f"{lesson.number} {line.plain} {lesson.goal.text}", lesson))
            if unsolved is None and entry.state != "solved":
                unsolved = lesson
        self.show_rows(rows, self._open_now if self._open_now in lessons else unsolved)
        self._progress.report(self.app)

    def about(self, row: ListRow) -> Text:
        lesson: Lesson = row.value
        return Text.assemble((f"{lesson.title}\n", "bold"), lesson.goal.text)
