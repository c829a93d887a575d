"""The learner's progress, written after every key that changes something, one write after another."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from textual.app import App

from shardviz.errors import ShardvizError
from shardviz.forms.state_file import state_path
from shardviz.forms.wording import error_words
from shardviz.lessons.attempt import Attempt
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.progress import NAME, CourseEntry, CourseProgress, load

T = TypeVar("T")


def own_seed() -> str:
    """The same on this machine at every start, another for the next learner or machine."""
    return f"{state_path(NAME)} {platform.node()}"


class LessonProgress:
    """Reads and writes beside the screen, in the order of the keys; `close` waits for the last write.
    `problem` says what the learner has to know: of a damaged file, or one that cannot be written. `seed` is
    the learner's own, for the order of choices: that of a guest is the guest's seat."""

    def __init__(self, is_guest: bool) -> None:
        self.problem = ""
        self.seed = "" if is_guest else own_seed()
        self.is_guest = is_guest
        self._progress: CourseProgress | None = None
        self._waiting: dict[str, Attempt] = {}
        self._thread = ThreadPoolExecutor(1, "progress")

    async def resumed(self, lesson: Lesson) -> Attempt:
        """The attempt at a lesson as it was left, or one that begins."""
        return await self._ask(lambda progress: progress.attempt(lesson))

    async def entries(self, lessons: tuple[Lesson, ...]) -> list[CourseEntry]:
        return await self._ask(lambda progress: [progress.entry(lesson) for lesson in lessons])

    def keep(self, attempt: Attempt) -> None:
        self._waiting[attempt.lesson.source or attempt.lesson.name] = attempt
        self._thread.submit(self._save)

    def close(self) -> None:
        """Wait until all is written; nothing is kept after that."""
        self._thread.shutdown()

    def report(self, app: App[None]) -> None:
        """Notify the learner of `problem`, once."""
        if self.problem:
            app.notify(self.problem, severity="warning", timeout=15, markup=False)
            self.problem = ""

    async def _ask(self, question: Callable[[CourseProgress], T]) -> T:
        return await asyncio.wrap_future(self._thread.submit(lambda: question(self._loaded())))

    def _save(self) -> None:
        """Write what waits: of keys that were faster than the disk, the last."""
        try:
            while self._waiting:
                self._loaded().save(self._waiting.popitem()[1])
        except ShardvizError as error:
            self.problem = error_words(error)

    def _loaded(self) -> CourseProgress:
        if self._progress is None:
            self._progress = CourseProgress() if self.is_guest else load()
            self.problem = self._progress.notice
        return self._progress
