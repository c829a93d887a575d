"""The text that a learner writes while a lesson is open, checked beside the screen, a file at every save."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError
from shardviz.forms.state_file import state_path
from shardviz.lessons.writing import SavedFile, WritingCheck, check_written, starter_file
from shardviz.user_files import write_file

if TYPE_CHECKING:
    from textual.app import App
    from textual.timer import Timer

    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.controller import LessonController
    from shardviz.tui.state import EditorState

POLL_S = 0.5


class LearnersText:
    """The text of the lesson that is open. `show` is called with a text and its check, None while that runs,
    and `show_code` with what a file holds."""

    def __init__(
        self,
        app: App[None],
        state: EditorState,
        show: Callable[[str, WritingCheck | None], None],
        show_code: Callable[[str], None],
    ) -> None:
        self._app, self._state, self._show, self._show_code = app, state, show, show_code
        self._timer: Timer | None = None
        self._checked = ""
        """The text that is checked, or was checked last."""

    def begin(self, controller: LessonController, is_guest: bool) -> None:
        """Check what was written before. Make the file, where one is written, and look for its saves; a
        visitor's code does not run here."""
        lesson, app = controller.lesson, self._app
        if controller.is_field:
            self.check(lesson, controller.written)
            return
        self._show_code(starter_file(lesson))
        if is_guest:
            return
        path = state_path(f"{lesson.name.replace('-', '_')}.py")
        controller.file = str(path).replace(str(Path.home()), "~", 1)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.exists():
                write_file(path, starter_file(lesson))
        except (OSError, ShardvizError) as error:
            app.notify(str(error), severity="warning")
            return
        look = partial(self._look, lesson, SavedFile(path))
        self._timer = app.set_interval(POLL_S, look)
        look()

    def end(self) -> None:
        """Look for saves no more."""
        if self._timer is not None:
            self._timer.stop()

    def _look(self, lesson: Lesson, file: SavedFile) -> None:
        """Check the file, if it was saved."""
        try:
            text = file.saved()
        except ShardvizError as error:
            self._show("", WritingCheck((), error.message, error.hint))
            return
        if text is not None:
            self._show_code(text)
            self.check(lesson, text, file.path)

    def check(self, lesson: Lesson, text: str, file: Path | None = None) -> None:
        """Check a text, and show it."""
        self._checked = text
        self._show(text, None)
        worker, app = self._state.queries.worker, self._app

        def show(check: WritingCheck) -> None:
            if text == self._checked:
                self._show(text, check)

        def wait() -> None:
            check = check_written(lesson, text, worker, file)
            with suppress(RuntimeError):  # the application has ended
                app.call_later(show, check)

        # A daemon: whoever quits need not wait for a loop that does not end.
        Thread(target=wait, daemon=True).start()
