"""The session that is kept on disk, to be opened again after the application was left."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.form import ProblemForm
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.forms import state_file

if TYPE_CHECKING:
    from textual.app import App
    from textual.timer import Timer

    from shardviz.forms.state_file import SavedSession
    from shardviz.tui.state import EditorState

KEEP_AFTER_S = 0.5
"""Pause after the last edit until the session is kept, in seconds."""


class KeptSession:
    """Reads the last session before this one takes its place, and keeps this one beside the screen's thread.
    `problem` says why the last one cannot be read, or this one not be kept; it is empty where all is well."""

    def __init__(self, app: App[None], state: EditorState, may_keep: bool) -> None:
        self.problem = ""
        self._app, self._state, self._may_keep = app, state, may_keep
        self._timer: Timer | None = None
        self._lock = threading.Lock()
        self._is_loaded = False
        self._last: SavedSession | None = None
        self._kept: SavedSession | None = None

    async def last(self) -> SavedSession | None:
        """The session that was left before this one began; None where there is none."""
        await asyncio.to_thread(self._load)
        return self._last

    def keep_soon(self) -> None:
        """Keep the session after a pause in typing; a problem with that is notified once."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._app.set_timer(
            KEEP_AFTER_S, lambda: self._app.run_worker(self._keep_and_tell, thread=True)
        )

    def keep(self) -> None:
        """Write this session in place of the last one, unless it stands there already, or nothing was ever
        changed; in a lesson, what was there before it."""
        shown = self._state.set_aside or self._state
        history = shown.history
        if history.draft == ProblemForm() or not self._may_keep:
            return
        session = state_file.SavedSession(history.draft, shown.area, history.before, history.after)
        self._load()
        with self._lock:
            if session == self._kept or not self._may_keep:
                return
            try:
                state_file.save_session(session)
                self._kept = session
            except ShardvizError as error:
                self.problem = error_words(error)

    def _keep_and_tell(self) -> None:
        before = self.problem
        self.keep()
        if self.problem not in ("", before):
            self._app.call_from_thread(self._app.notify, self.problem, severity="warning", timeout=15)

    def _load(self) -> None:
        with self._lock:
            if self._is_loaded:
                return
            self._is_loaded = True
            try:
                self._last = state_file.load_session()
            except ShardvizError as error:
                self.problem = error_words(error)
                # What another version has saved is not for this one to replace.
                self._may_keep = not state_file.state_path(state_file.SESSION_NAME).exists()
                if not self._may_keep:
                    self.problem += " Until then, no session is saved."
