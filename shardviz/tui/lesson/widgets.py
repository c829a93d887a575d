"""The widgets of a lesson: its line, the goal, its words, the pane that hides an answer, the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import App, ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from shardviz.forms.wording import as_sentence
from shardviz.render.lesson_view import Inks, bar, guide_page, strip_lines
from shardviz.render.page import highlighted
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Side
from shardviz.tui.themes import code_style_of

if TYPE_CHECKING:
    from shardviz.tui.lesson.controller import LessonController

HIDDEN = "Predict first: the answer shows here."
HIDDEN_FROM_CLASS = "The answer shows here."
LOW, TALL = 20, 30
"""Lines of the terminal from which on there is room for the tabs, and for a long goal with its hint."""


class LessonBar(Widget):
    """``3  Rows, columns, replicas      ●●◉○○○○○  Predict``."""

    DEFAULT_CSS = """
    LessonBar { height: 1; padding: 0 1 0 2; background: $panel; color: $primary; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__()
        self.controller = controller

    def render(self) -> Text:
        return bar(self.controller.attempt, self.content_size.width)


class GoalStrip(Static):
    """The goal above the sandbox, what is still different, and a hint."""

    DEFAULT_CSS = """
    GoalStrip { height: auto; padding: 0 1 0 2; background: $surface; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__(markup=False)
        self.controller = controller

    def draw(self) -> None:
        """For the terminal's size; its own is not known before it is drawn."""
        controller, height = self.controller, self.app.size.height
        most = 8 if height >= TALL else 5
        difference = controller.difference and as_sentence(controller.difference)
        width = self.app.size.width - 3
        lines = strip_lines(
            controller.attempt,
            difference,
            controller.hint,
            controller.is_hint_new,
            width,
            most,
            inks_of(self.app),
        )
        self.update(Text("\n").join(lines))


def inks_of(app: App[object]) -> Inks:
    """The theme's colours for headings and for what is right; bold alone where there are no colours."""
    if app.no_color:
        return Inks()
    colours = app.theme_variables
    return Inks(*(f"bold {rich_colour(colours[name])}" for name in ("primary", "success")))


def rich_colour(name: str) -> str:
    """A colour of a theme as Rich calls it: ``ansi_green`` is its ``green``."""
    return name.removeprefix("ansi_")


class Guide(Side):
    """The words beside the picture."""

    DEFAULT_CSS = """
    Guide { padding: 0 0 0 2; }
    Guide.presented { padding: 1 2 0 3; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__(classes="presented" if controller.is_presented else "")
        self.controller = controller

    def compose(self) -> ComposeResult:
        yield LinesView()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        """The words of the stage; of a page that does not fit, the part that matters."""
        view, controller = self.query_one(LinesView), self.controller
        width, height = self.content_size
        if width < 2:
            return
        inks = inks_of(self.app)
        page = guide_page(controller.attempt, controller.told, width, height, inks, controller.is_presented)
        is_long = len(page.lines) > height
        if is_long:  # the last column is the scrollbar's
            page = guide_page(
                controller.attempt, controller.told, width - 1, height, inks, controller.is_presented
            )
        view.show(TextLines(page.lines))
        view.scroll_to(y=page.at if is_long else 0, animate=False, force=True)


class HiddenPane(Side):
    """Hides what would give the answer away; shows a chain of einsums, which the line above cuts."""

    DEFAULT_CSS = """
    HiddenPane { align: center middle; background: $surface; }
    HiddenPane Static { width: auto; max-width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, is_presented: bool) -> None:
        super().__init__()
        self._words = Text(HIDDEN_FROM_CLASS if is_presented else HIDDEN, "dim")

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
