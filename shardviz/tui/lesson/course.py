"""The list of lessons: what is solved, what was begun, and a word on each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from shardviz.drafts.wording import error_words
from shardviz.errors import ShardvizError
from shardviz.lessons.course import course
from shardviz.render.lessons.course import course_line
from shardviz.tui.dialogs.dialog import CLOSE
from shardviz.tui.dialogs.list_dialog import ListDialog
from shardviz.tui.registry import Command

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson
    from shardviz.lessons.progress import CourseEntry
    from shardviz.tui.lesson.progress import LessonProgress

OPEN = Command("dialog", "open", ("enter",), "Open", "Go on with the lesson.", "open")
CHOOSE = Command("dialog", "choose", (), "Choose", "From lesson to lesson.", "choose", "↑↓")


class LessonsDialog(ListDialog):
    """Arrows choose, `enter` leaves with the lesson."""

    title_text = "Lessons"
    commands = (OPEN, CHOOSE, CLOSE)
    DEFAULT_CSS = """
    LessonsDialog #about { max-height: 4; }
    LessonsDialog.-low #about { max-height: 3; }
    LessonsDialog.-broad.-high OptionList { width: 60; }
    LessonsDialog.-broad.-high #about { max-height: 100%; }
    """

    def __init__(self, progress: LessonProgress, open_now: Lesson | None) -> None:
        super().__init__()
        self._progress, self._open_now = progress, open_now
        self._lessons: tuple[Lesson, ...] = ()

    def content(self) -> Sequence[Widget]:
        return [
            Vertical(OptionList(markup=False, compact=True), Static(id="about", markup=False), id="choice")
        ]

    async def on_mount(self) -> None:
        choices = self.query_one(OptionList)
        choices.focus()
        try:
            self._lessons = course()
        except ShardvizError as error:
            self.query_one("#about", Static).update(Text(error_words(error)))
            return
        entries = await self._progress.entries(self._lessons)
        choices.add_options([Option(_one_line(entry)) for entry in entries])
        unsolved = (place for place, entry in enumerate(entries) if entry.state != "solved")
        first = self._lessons.index(self._open_now) if self._open_now in self._lessons else next(unsolved, 0)
        choices.highlighted = first
        self._progress.report(self.app)

    @on(OptionList.OptionHighlighted)
    def _describe(self, event: OptionList.OptionHighlighted) -> None:
        lesson = self._lessons[event.option_index]
        text = Text.assemble((f"{lesson.title}\n", "bold"), lesson.goal.text)
        self.query_one("#about", Static).update(text)

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._lessons[event.option_index])


def _one_line(entry: CourseEntry) -> Text:
    line = course_line(entry)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line
