"""The second line: where one is, and the keys that lead elsewhere."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.widget import Widget

from shardviz.tui.registry import APP

PROBLEM = "problem"
SCREENS = ("layout", "plan", "step", "compiler")
WIDE = 80
"""Columns from which on the problem stands beside the screen; on fewer it takes its place."""
PROBLEM_WIDTH = 37
"""Columns of the problem beside a screen, with the gap between them."""
ROOMY, SHORT = 60, 44
"""Columns from which on there is room for blanks between the tabs, and for the problem's name."""


class ScreenTabs(Widget):
    """``p Problem   1 Layout  2 Plan  3 Step  4 Compiler``: what is shown stands out, a click leads there."""

    DEFAULT_CSS = """
    ScreenTabs { height: 1; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._area = SCREENS[0]
        self._left = "Problem"
        self._at_left = False
        self._places: list[tuple[int, int, str]] = []

    def show(self, area: str, at_left: bool, left: str) -> None:
        """Mark the screen that is shown, and, if the keys go there, what is on the left, of that title."""
        self._area, self._at_left, self._left = area, at_left, left
        self.refresh()

    def render(self) -> Text:
        width = self.size.width
        line = Text()
        self._places = []
        for area in (PROBLEM, *SCREENS):
            action = PROBLEM if area == PROBLEM else f"show('{area}')"
            command = next(each for each in APP if each.name == action)
            title = command.title if area != PROBLEM else self._left if width >= SHORT else ""
            text = f"{command.key_text} {title}".rstrip()
            text = f" {text} " if width >= ROOMY else text
            is_shown = self._at_left if area == PROBLEM else area == self._area
            start = line.cell_len
            shown = "bold reverse" if width >= ROOMY else "bold underline"
            line.append(text, shown if is_shown else "dim")
            self._places.append((start, line.cell_len, action))
            beside = area == PROBLEM and width >= WIDE
            line.append(" " * (PROBLEM_WIDTH - line.cell_len) if beside else " ")
        return line

    async def on_click(self, event: events.Click) -> None:
        for start, stop, action in self._places:
            if start <= event.x < stop:
                await self.app.run_action(action, self.app)
