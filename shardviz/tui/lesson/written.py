"""The text that a learner writes while a lesson is open, checked beside the screen, a file at every save."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.state_file import state_path
from shardviz.forms.wording import error_words
from shardviz.lessons.writing import SavedFile, WritingCheck, check_written, starter_file

if TYPE_CHECKING:
    from textual.app import App
    from textual.timer import Timer

    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.controller import LessonController
    from shardviz.tui.state import EditorState

    Shown = Callable[[str, WritingCheck | None], None]

POLL_S = 0.5


class LearnersText:
    """The text of the lesson that is open. `show` is called with a text and its check, None while that runs,
    and `show_code` with what a file holds."""

    def __init__(
        self, app: App[None], state: EditorState, show: Shown, show_code: Callable[[str], None]
    ) -> None:
        self._app, self._state, self._show, self._show_code = app, state, show, show_code
        self._timer: Timer | None = None
        self._last = ""

    def begin(self, controller: LessonController, is_guest: bool) -> None:
        """Check what was written before, and look for saves of a file. A visitor's code does not run here."""
        lesson = controller.lesson
        if controller.is_field:
            self.check(lesson, controller.written)
            return
        self._show_code(starter_file(lesson))
        if not is_guest:
            file = SavedFile(state_path(f"{lesson.name.replace('-', '_')}.py"), starter_file(lesson))
            controller.file = str(file.path).replace(str(Path.home()), "~", 1)
            self._timer = self._app.set_interval(POLL_S, lambda: self._look(lesson, file))
            self._look(lesson, file)

    def end(self) -> None:
        """Look for saves no more."""
        if self._timer is not None:
            self._timer.stop()

    def _look(self, lesson: Lesson, file: SavedFile) -> None:
        """Check the file, if it was saved."""
        try:
            text = file.saved()
        except ShardvizError as error:
            self._app.notify(error_words(error), severity="warning")
            return
        if text is not None:
            self._show_code(text)
            self.check(lesson, text, file.path)

    def check(self, lesson: Lesson, text: str, file: Path | None = None) -> None:
        """Check a text, and show it."""
        self._last = text
        self._show(text, None)
        worker = self._state.queries.worker

        def show(check: WritingCheck) -> None:
            if text == self._last:
                self._show(text, check)

        def wait() -> None:
            check = check_written(lesson, text, worker, file)
            with suppress(RuntimeError):  # the application has ended
                self._app.call_later(show, check)

        # A daemon: whoever quits need not wait for a loop that does not end.
        Thread(target=wait, daemon=True).start()
