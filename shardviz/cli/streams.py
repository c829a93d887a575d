"""The standard streams as commands find them: always there, and able to take every character.

Whatever closes, fills up, lacks a character or obeys one is dealt with here, so that commands only print.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO, cast

from shardviz.cli.ascii import replaced
from shardviz.cli.control_characters import NARRATION, PICTURES, escaped

ERRORS = "shardviz"
"""Name of the error handler that writes an ASCII character for one that an encoding lacks."""


codecs.register_error(ERRORS, replaced)


class Unwritable(Exception):
    """Standard output takes no more; `reader_left` where that is only because the reader has seen enough."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.reason = cause.strerror or str(cause)
        self.reader_left = isinstance(cause, BrokenPipeError)


class Output:
    """A text stream whose failure is `Unwritable`, whoever writes: `print`, click or Rich.

    Control characters that are not those of our own pictures are written as escapes.
    It has no `buffer`, through which click would write UTF-8 to a terminal that cannot show it.
    """

    _control = PICTURES

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: OSError | None = None

    @property
    def encoding(self) -> str:
        return self._stream.encoding

    @property
    def errors(self) -> str | None:
        return self._stream.errors

    @property
    def closed(self) -> bool:
        return self._stream.closed

    def reconfigure(self, *, encoding: str, errors: str) -> None:
        cast(io.TextIOWrapper, self._stream).reconfigure(encoding=encoding, errors=errors)

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        try:
            if self._failure is not None:
                raise self._failure
            self._stream.write(escaped(text, self._control))
        except OSError as error:
            self._fail(error)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        # Who tries a stream out, as click does, must not use the failure up.
        self._failure = error
        self._discard()
        raise Unwritable(error) from error

    def _discard(self) -> None:
        """Let what is still buffered go nowhere: it must not fail once more when Python ends."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())


class Narration(Output):
    """A stream that nobody has to hear: what cannot be written is dropped."""

    _control = NARRATION

    def _fail(self, _error: OSError) -> None:
        self._discard()


def open_standard_streams() -> None:
    """Put an `Output` and a `Narration` in place of stdout and stderr, and something in place of closed ones.

    A closed stdout stays one that cannot be written. Were it left closed, the next pipe to a compiler would
    take its number.
    """
    # Each takes the lowest number that is free.
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    sys.stdout = cast(TextIO, Output(_text(sys.stdout, 1)))
    sys.stderr = cast(TextIO, Narration(_text(sys.stderr, 2)))


def write_ascii() -> None:
    """From now on stdout and stderr write ASCII alone, whatever else the terminal shows."""
    for stream in (sys.stdout, sys.stderr):
        cast(io.TextIOWrapper, stream).reconfigure(encoding="ascii", errors=ERRORS)


def _text(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=ERRORS)
    return stream
