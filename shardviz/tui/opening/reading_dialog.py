"""A dialog that reads beside the screen: it says how far that is, `esc` stops it, and what cannot be read
leaves it open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work

from shardviz.errors import ShardvizError, quote
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.dialog import Dialog
from shardviz.tui.opening.progress import ReadingProgress

if TYPE_CHECKING:
    from shardviz.tui.opening.reading import Opened


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
