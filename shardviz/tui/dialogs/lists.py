"""The dialogs to choose from a list: examples, found by typing, and the lessons of the course."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from shardviz.errors import ShardvizError
from shardviz.forms.examples import Example, examples
from shardviz.forms.form import ProblemForm
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.dialog import CLOSE, Dialog
from shardviz.tui.registry import AREAS, bindings, commands_of

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.progress import LessonProgress

TYPING = commands_of(
    "dialog",
    ("list('cursor_down')", "down", "Down", "The next example.", "choose", "↑↓"),
    ("list('cursor_up')", "up", "Up", "The example before."),
    ("list('page_down')", "pagedown", "Page down", "A page down."),
    ("list('page_up')", "pageup", "Page up", "A page up."),
    ("close", "escape", "Close", "Back to the screen.", "close", "esc"),
)
"""While the keys go to a field above the list."""
OPEN, CHOOSE = commands_of(
    "dialog",
    ("open", "enter", "Open", "Leave with what is chosen.", "open"),
    ("choose", "", "Choose", "From line to line.", "choose", "↑↓"),
)
"""The list's own keys."""


class ListDialog(Dialog):
    """A list, and beside it in a broad window, else below it, a description of the line under the cursor."""

    DEFAULT_CSS = """
    ListDialog OptionList { border: none; padding: 0; background: transparent; height: 1fr; }
    ListDialog OptionList { scrollbar-size: 1 1; }
    ListDialog #about { height: auto; padding-top: 1; }
    ListDialog.-low #about { padding-top: 0; }
    ListDialog #choice { height: 1fr; layout: vertical; }
    ListDialog.-broad.-high #choice { layout: horizontal; }
    ListDialog.-broad.-high OptionList { height: 100%; }
    ListDialog.-broad.-high #about { width: 1fr; padding: 0 0 0 3; max-height: 100%; }
    """

    def content(self) -> Sequence[Widget]:
        about = Static(id="about", markup=False)
        return [Vertical(OptionList(markup=False, compact=True), about, id="choice")]

    @property
    def choices(self) -> OptionList:
        return self.query_one(OptionList)

    def describe(self, text: Text) -> None:
        """Show a description."""
        self.query_one("#about", Static).update(text)


class ExamplesDialog(ListDialog):
    """Letters narrow the list, arrows choose, `enter` leaves with the example."""

    title_text = "Examples"
    commands = (OPEN, TYPING[0], TYPING[-1])
    BINDINGS = bindings(TYPING)
    DEFAULT_CSS = """
    ExamplesDialog Input { border: none; height: 1; padding: 0; background: $panel; }
    ExamplesDialog.-high Input { margin-bottom: 1; }
    ExamplesDialog OptionList > .option-list--option-disabled { color: $primary; text-style: bold; }
    ExamplesDialog #about { max-height: 5; }
    ExamplesDialog.-low #about { max-height: 4; }
    ExamplesDialog.-broad.-high OptionList { width: 46; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Example] = []

    def content(self) -> Sequence[Widget]:
        return [Input(placeholder="type to find", select_on_focus=False, compact=True), *super().content()]

    def on_mount(self) -> None:
        self.choices.can_focus = False
        self._list("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        words = typed.lower().split()
        self._shown = [example for example in examples() if _fits(example, words)]
        options: list[Option] = []
        document = ""
        for example in self._shown:
            if example.document != document:
                document = example.document
                options.append(Option(Text(document, "bold"), disabled=True))
            options.append(Option(Text(f"  {example.title}"), id=example.title))
        choices = self.choices
        choices.clear_options()
        choices.add_options(options)
        choices.highlighted = 1 if options else None
        choices.scroll_home(animate=False)
        self._describe()

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        example = self._chosen()
        if example is None:
            self.describe(Text("No example has these words; take some away."))
            return
        line, place = problem_line(example.draft), AREAS[example.screen]
        self.describe(Text.assemble((f"{line}\n", "bold"), f"{example.look}", (f"\nOpens {place}.", "dim")))

    def _chosen(self) -> Example | None:
        choices = self.choices
        if choices.highlighted is None or not self._shown:
            return None
        wanted = choices.get_option_at_index(choices.highlighted).id
        return next((example for example in self._shown if example.title == wanted), None)

    async def action_list(self, move: str) -> None:
        """Do in the list what the key would do if the list had the focus."""
        await self.choices.run_action(move)

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def _open(self) -> None:
        example = self._chosen()
        if example is not None:
            self.dismiss(example)


def problem_line(draft: ProblemForm) -> str:
    """The problem in a line: the collective, or einsum and specs; then the mesh."""
    mesh = draft.mesh.replace(",", " ")
    if draft.collective is not None:
        return f"{draft.collective.op}   {mesh}"
    return f"{draft.einsum}   {', '.join(draft.specs[:-1])} -> {draft.specs[-1]}   {mesh}"


def _fits(example: Example, words: Sequence[str]) -> bool:
    """True where every word occurs in the example's texts."""
    texts = f"{example.document} {example.title} {example.look}".lower()
    return all(word in texts for word in words)


class LessonsDialog(ListDialog):
    """Arrows choose, `enter` leaves with the lesson. First is `open_now`, or the first that is not solved."""

    title_text = "Lessons"
    commands = (OPEN, CHOOSE, CLOSE)
    DEFAULT_CSS = """
    LessonsDialog #about { max-height: 4; }
    LessonsDialog.-low #about { max-height: 3; }
    LessonsDialog.-broad.-high OptionList { width: 60; }
    """

    def __init__(self, progress: LessonProgress, open_now: Lesson | None) -> None:
        super().__init__()
        self._progress, self._open_now = progress, open_now
        self._lessons: tuple[Lesson, ...] = ()

    async def on_mount(self) -> None:
        from shardviz.lessons.course import course
        from shardviz.render.lesson_view import course_line

        self.choices.focus()
        try:
            self._lessons = course()
        except ShardvizError as error:
            self.describe(Text(error_words(error)))
            return
        entries = await self._progress.entries(self._lessons)
        for entry in entries:
            line = course_line(entry)
            line.no_wrap, line.overflow = True, "ellipsis"
            self.choices.add_option(Option(line))
        unsolved = (place for place, entry in enumerate(entries) if entry.state != "solved")
        is_known = self._open_now in self._lessons
        self.choices.highlighted = self._lessons.index(self._open_now) if is_known else next(unsolved, 0)
        self._progress.report(self.app)

    @on(OptionList.OptionHighlighted)
    def _describe(self, event: OptionList.OptionHighlighted) -> None:
        lesson = self._lessons[event.option_index]
        self.describe(Text.assemble((f"{lesson.title}\n", "bold"), lesson.goal.text))

    @on(OptionList.OptionSelected)
    def _open(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._lessons[event.option_index])
