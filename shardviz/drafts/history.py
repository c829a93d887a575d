"""Undo and redo."""

from __future__ import annotations

from shardviz.drafts.draft import Draft

MAX_STEPS = 1000


class History:
    """Drafts in the order in which they were made, and the place of the one on screen."""

    def __init__(self, first: Draft) -> None:
        self._drafts = [first]
        self._place = 0

    @property
    def draft(self) -> Draft:
        return self._drafts[self._place]

    def push(self, draft: Draft) -> bool:
        """Go on from here with another draft; what was undone is gone. False where nothing has changed."""
        if draft == self.draft:
            return False
        self._drafts[self._place + 1 :] = [draft]
        del self._drafts[:-MAX_STEPS]
        self._place = len(self._drafts) - 1
        return True

    def undo(self) -> bool:
        """Go one draft back; False where there is none."""
        if not self._place:
            return False
        self._place -= 1
        return True

    def redo(self) -> bool:
        """Go one draft forward again; False where nothing was undone."""
        if self._place + 1 == len(self._drafts):
            return False
        self._place += 1
        return True
