"""The outcomes of checks against baselines, for pytest's plugin, which is loaded before any check."""

from __future__ import annotations

UPDATE = "SHARDVIZ_UPDATE"
"""The environment variable that has baselines written anew."""


class BaselineChanged(AssertionError):
    """A program that is no longer as its baseline has it: a sentence, and a page of the changes."""

    def __init__(self, message: str, page: str) -> None:
        super().__init__(message, page)
        self.message = message
        self.page = page

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.page}" if self.page else self.message


class RenewedBaselines:
    """The baselines that this process has written, by path, with the reason, since they were last taken."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def add(self, path: str, reason: str) -> None:
        self._reasons[path] = reason

    def take(self) -> list[tuple[str, str]]:
        """The (path, reason) pairs, which are then forgotten."""
        taken = list(self._reasons.items())
        self._reasons.clear()
        return taken


RENEWED = RenewedBaselines()
