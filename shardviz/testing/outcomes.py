"""The outcomes of checks against baselines, for pytest's plugin, which is loaded before any check."""

from __future__ import annotations

UPDATE = "SHARDVIZ_UPDATE"
"""The environment variable that has baselines written anew."""


class BaselineChanged(AssertionError):
    """A program that differs from its baseline: a sentence, and a page of the changes."""

    def __init__(self, message: str, page: str) -> None:
        super().__init__(message, page)
        self.message = message
        self.page = page

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.page}" if self.page else self.message


RENEWED: dict[str, str] = {}
"""Why the baselines that this process has written are written, by path, until a test's report has them."""
