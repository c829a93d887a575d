"""A dialog that reads beside the screen: it says how far that is, `esc` stops it, and what cannot be read
leaves it open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work

from shardviz.compiler.requests import Cancelled
from shardviz.errors import ShardvizError, quote
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.dialog import Dialog
from shardviz.units import human_bytes

if TYPE_CHECKING:
    from shardviz.tui.opening.reading import Opened


class ReadingProgress:
    """Something that is being read in a thread, which tells here how far it is."""

    def __init__(self, show: Callable[[Text], object]) -> None:
        self.is_stopped = False
        self._show = show
        self._ends: list[Callable[[], object]] = []

    def say(self, words: str) -> None:
        """Show what is being done. Raises `Cancelled` where nobody waits for it any more."""
        if self.is_stopped:
            raise Cancelled("the reading was stopped")
        self._show(Text(f"{words} …", "dim"))

    def say_bytes(self, name: str, done: int, size: int) -> None:
        """``reading traces: 12 MiB of 40 MiB …``; otherwise as `say`."""
        self.say(f"reading {name}: {human_bytes(done)} of {human_bytes(size)}")

    def end_by(self, end: Callable[[], object]) -> None:
        """Have `stop` call this too: it ends a process, or a request."""
        self._ends.append(end)
        if self.is_stopped:
            end()

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self.is_stopped = True
        for end in self._ends:
            end()


class ReadingDialog(Dialog):
    """Reads one thing at a time."""

    reading: ReadingProgress | None = None

    def read(self, name: str, reader: Callable[[ReadingProgress], Opened]) -> None:
        """Hand over what the reader returns, to `show_opened`; `name` is what is read."""
        self.stop_reading()

        def show(text: Text) -> None:
            if not reading.is_stopped:
                self.app.call_from_thread(self.describe, text)

        self.reading = reading = ReadingProgress(show)
        self.describe(Text(f"reading {name} …", "dim"))
        self._read(name, reader, reading)

    @work(thread=True, exit_on_error=False)
    def _read(self, name: str, reader: Callable[[ReadingProgress], Opened], reading: ReadingProgress) -> None:
        try:
            opened = reader(reading)
        except ShardvizError as error:
            found: Opened | ShardvizError = error
        except Exception as error:
            found = ShardvizError(f"{quote(name)} cannot be read: {type(error).__name__}: {error}")
        else:
            found = opened
        if not reading.is_stopped:
            self.app.call_from_thread(self._end, reading, found)

    def _end(self, reading: ReadingProgress, found: Opened | ShardvizError) -> None:
        if reading.is_stopped:
            return
        self.reading = None
        if isinstance(found, ShardvizError):
            self.show_failure(found)
        else:
            self.show_opened(found)

    def describe(self, text: Text) -> None:
        """Show how far the reading is, or why it has failed."""
        raise NotImplementedError

    def show_failure(self, error: ShardvizError) -> None:
        """Say why it cannot be read."""
        self.describe(Text(f"✗ {error_words(error)}"))

    def show_opened(self, opened: Opened) -> None:
        """Leave with what was read."""
        self.dismiss(opened)

    def stop_reading(self) -> bool:
        """Stop what is being read; False where nothing is."""
        if self.reading is None:
            return False
        self.reading.stop()
        self.reading = None
        return True

    def action_close(self) -> None:
        if self.stop_reading():
            self.describe(Text("stopped; esc closes", "dim"))
        else:
            self.dismiss()

    def on_unmount(self) -> None:
        self.stop_reading()
