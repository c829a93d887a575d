"""The session that shardviz was left in before, and this one, kept while it goes on."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from shardviz.drafts.wording import error_words
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.drafts.form import ProblemForm
    from shardviz.drafts.state_file import SavedSession


class LastSession:
    """Reads the last session before this one takes its place; every method may wait for a disk.

    `problem` says why the last one cannot be read, or this one not be kept; it is empty where all is well.
    """

    def __init__(self) -> None:
        self.problem = ""
        self._lock = threading.Lock()
        self._is_loaded = False
        self._may_keep = True
        self._last: SavedSession | None = None
        self._kept: SavedSession | None = None

    @property
    def last(self) -> SavedSession | None:
        """The session that was left before this one began; None where there is none."""
        self.load()
        return self._last

    def load(self) -> None:
        """Read the last session, once."""
        with self._lock:
            self._load()

    def keep(self, draft: ProblemForm, screen: str) -> None:
        """Write this session in place of the last one, unless it stands there already."""
        from shardviz.drafts.state_file import SavedSession, save_session

        session = SavedSession(draft, screen)
        with self._lock:
            self._load()
            if session == self._kept or not self._may_keep:
                return
            try:
                save_session(session)
                self._kept = session
            except ShardvizError as error:
                self.problem = error_words(error)

    def _load(self) -> None:
        from shardviz.drafts.state_file import SESSION_NAME, load_session, state_path

        if self._is_loaded:
            return
        self._is_loaded = True
        try:
            self._last = load_session()
        except ShardvizError as error:
            self.problem = error_words(error)
            # What another version has saved is not for this one to replace.
            self._may_keep = not state_path(SESSION_NAME).exists()
