"""A computed answer, and what makes a text the same answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """`text` is the answer as it is shown among the choices. `read` makes of any text a value that is equal
    for equal answers, and raises `QuestionError` for text that is no answer of this kind; `write` shows such
    a value."""

    text: str
    read: Callable[[str], object]
    write: Callable[[object], str] = str

    def is_same(self, text: str) -> bool:
        """Whether a text says the same. Raises `QuestionError` for text that is no answer of this kind."""
        return self.read(text) == self.read(self.text)

    def shown(self, text: str) -> str:
        """Any answer of this kind in the form of `text`, so that its form gives nothing away. Raises
        `QuestionError` as `read` does."""
        return self.write(self.read(text))
