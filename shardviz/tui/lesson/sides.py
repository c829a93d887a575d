"""The widgets of a lesson, in the places of the problem and of the pane, and above them."""

from __future__ import annotations

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from shardviz.forms.wording import as_sentence
from shardviz.render.lesson_view import bar, guide_page, strip_lines
from shardviz.render.lines import highlighted
from shardviz.tui.lesson.controller import LessonController
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Side
from shardviz.tui.themes import Styled, code_style_of

TALL = 30
"""From so many lines of the terminal there is room for a long goal with its hint."""


class LessonBar(Styled, Widget):
    """``3  Rows, columns, replicas      ●●◉○○○○○  Predict``."""

    controller: LessonController

    def render(self) -> Text:
        return bar(self.controller.attempt, self.content_size.width)


class GoalStrip(Styled, Static):
    """The goal above the sandbox, what is still different, and a hint."""

    controller: LessonController

    def draw(self) -> None:
        """For the terminal's size; its own is not known before it is drawn."""
        now, (width, height) = self.controller, self.app.size
        difference = now.difference and as_sentence(now.difference)
        most = 8 if height >= TALL else 5
        lines = strip_lines(now.attempt, difference, now.hint, now.is_hint_new, width - 3, most)
        self.update(Text("\n").join(lines))


class Guide(Side):
    """The words beside the picture."""

    controller: LessonController

    def compose(self) -> ComposeResult:
        yield LinesView()

    @on(events.Resize)
    def draw(self) -> None:
        """The words of the stage; of a page that does not fit, the part that matters."""
        view, controller = self.query_one(LinesView), self.controller
        width, height = self.content_size
        if width < 2:
            return
        for columns in (width, width - 1):  # the last column may be the scrollbar's
            lines, seen = guide_page(
                controller.attempt, controller.told, columns, height, controller.is_presented
            )
            is_long = len(lines) > height
            if not is_long:
                break
        view.show(TextLines(lines))
        view.scroll_to(y=seen if is_long else 0, animate=False, force=True)


class HiddenPane(Side):
    """Hides what would give the answer away; shows a chain of einsums, which the line above cuts."""

    def __init__(self, is_presented: bool) -> None:
        super().__init__()
        words = "The answer shows here." if is_presented else "Predict first: the answer shows here."
        self._words = Text(words, "dim")

    def compose(self) -> ComposeResult:
        yield Static()

    def show(self, chain: list[Text]) -> None:
        self.query_one(Static).update(Text("\n").join([*chain, *[Text()] * bool(chain), self._words]))


class CodePage(Side):
    """The JAX code of what was made, in the place of the screen."""

    def compose(self) -> ComposeResult:
        yield LinesView()

    def show(self, code: str) -> None:
        self.query_one(LinesView).show(TextLines(highlighted(code, code_style_of(self.app))))
