"""The top line: the problem in the user's notation, or the collective of its own that is played."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

from shardviz.render.palette import PLAIN, Palette
from shardviz.render.problem_picture import headline

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem


class Headline(Widget):
    """``bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   v5e:2x4``, and what is wrong."""

    DEFAULT_CSS = """
    Headline { height: 1; padding: 0 1 0 2; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._resolved: ResolvedProblem | None = None
        self._palette: Palette = PLAIN
        self._of_collective = False

    def show_problem(self, resolved: ResolvedProblem, palette: Palette, of_collective: bool) -> None:
        """Show another problem, or its collective if that is what the screen shows."""
        self._resolved, self._palette, self._of_collective = resolved, palette, of_collective
        self.refresh()

    def render(self) -> Text:
        if self._resolved is None:
            return Text()
        return headline(self._resolved, self.content_size.width, self._palette, self._of_collective)
