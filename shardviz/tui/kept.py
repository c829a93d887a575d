"""The files that are kept beside the screen's thread: of the session, to be opened again after the
application was left, and of the learner's progress, written after every key that changes something."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from shardviz.errors import ShardvizError
from shardviz.forms.form import ProblemForm
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.forms import state_file
    from shardviz.lessons import progress

if TYPE_CHECKING:
    from textual.app import App

    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.state import EditorState

KEEP_AFTER_S = 0.5
"""Pause after the last edit until the session is kept, in seconds."""
T = TypeVar("T")


class _OnDisk:
    """Reads and writes in a thread of its own, one after another; `close` waits for the last. `problem` says
    what a person has to know: of a damaged file, or one that cannot be written; empty where all is well."""

    def __init__(self) -> None:
        self.problem = self._reported = ""
        self._thread = ThreadPoolExecutor(1, "kept")

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(question))

    def report(self, app: App[None]) -> None:
        """Notify a person of `problem`, once."""
        if self.problem not in ("", self._reported):
            self._reported = self.problem
            app.notify(self.problem, severity="warning", timeout=15)

    def close(self) -> None:
        """Wait until all is written; nothing is kept after that."""
        self._thread.shutdown()


class KeptSession(_OnDisk):
    """Reads the last session before this one takes its place."""

    def __init__(self, app: App[None], state: EditorState, may_keep: bool) -> None:
        super().__init__()
        self._app, self._state, self._may_keep = app, state, may_keep
        self._is_loaded = False
        self._last: state_file.SavedSession | None = None
        self._kept: state_file.SavedSession | None = None

    async def last(self) -> state_file.SavedSession | None:
        """The session that was left before this one began; None where there is none."""
        await self._ask(self._load)
        return self._last

    def keep_soon(self) -> None:
        """Keep the session after a pause in typing."""
        self._app.run_worker(self._keep_later, group="session", exclusive=True)  # type: ignore[arg-type]

    async def _keep_later(self) -> None:
        await asyncio.sleep(KEEP_AFTER_S)
        await self._ask(self._saving())
        self.report(self._app)

    def close(self) -> None:
        if self._may_keep:
            self._thread.submit(self._saving())
        super().close()

    def _saving(self) -> Callable[[], None]:
        """A write of this session in place of the last one; in a lesson, of what was there before it."""
        shown = self._state.set_aside or self._state
        history = shown.history
        session = state_file.SavedSession(history.draft, shown.area, history.before, history.after)
        return partial(self._save, session)

    def _save(self, session: state_file.SavedSession) -> None:
        """Write a session, unless it stands there already, or nothing was ever changed."""
        if session.draft == ProblemForm() or not self._may_keep:
            return
        self._load()
        if session != self._kept and self._may_keep:
            try:
                state_file.save_session(session)
                self._kept = session
            except ShardvizError as error:
                self.problem = error_words(error)

    def _load(self) -> None:
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


def own_seed() -> str:
    """The same on this machine at every start, another for the next learner or machine."""
    return f"{state_file.state_path(progress.NAME)} {platform.node()}"


class LessonProgress(_OnDisk):
    """The learner's progress."""

    def __init__(self, is_guest: bool) -> None:
        super().__init__()
        self.is_guest = is_guest
        self._progress: progress.CourseProgress | None = None
        self._waiting: dict[str, Attempt] = {}

    @cached_property
    def seed(self) -> str:
        """The learner's own, for the order of choices; that of a guest is the guest's seat."""
        return "" if self.is_guest else own_seed()

    async def resumed(self, lesson: Lesson) -> Attempt:
        """The attempt at a lesson as it was left, or one that begins."""
        return await self._ask(lambda: self._loaded().attempt(lesson))

    async def entries(self, lessons: tuple[Lesson, ...]) -> list[progress.CourseEntry]:
        return await self._ask(lambda: [self._loaded().entry(lesson) for lesson in lessons])

    def keep(self, attempt: Attempt) -> None:
        self._waiting[attempt.lesson.source or attempt.lesson.name] = attempt
        self._thread.submit(self._save)

    def _save(self) -> None:
        """Write what waits: of keys that were faster than the disk, the last."""
        try:
            while self._waiting:
                self._loaded().save(self._waiting.popitem()[1])
        except ShardvizError as error:
            self.problem = error_words(error)

    def _loaded(self) -> progress.CourseProgress:
        if self._progress is None:
            self._progress = progress.CourseProgress() if self.is_guest else progress.load()
            self.problem = self._progress.notice
        return self._progress
