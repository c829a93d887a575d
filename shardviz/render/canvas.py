"""A picture that is drawn line by line, only where it is seen."""

from __future__ import annotations

from typing import Protocol

from rich.text import Text


class Canvas(Protocol):
    """Lines of text of a known size; `line` draws columns `left` to `right` of one, at constant cost."""

    width: int
    height: int

    def line(self, y: int, left: int, right: int) -> Text: ...
