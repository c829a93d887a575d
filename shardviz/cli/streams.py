"""The standard streams as commands find them: always there, and able to take every character. What fails,
what an encoding lacks and what a terminal obeys instead of showing it are handled here, so that commands only
print."""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from typing import Any, TextIO, cast

ERRORS = "shardviz"
"""Name of the error handler that writes an ASCII character for one that an encoding lacks."""

_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
PICTURES = re.compile(rf"(\x1b\[[0-9;]*m)|{_CONTROL}")
"""Control characters, but for the colours of pictures, which are the group."""
MESSAGES = re.compile(rf"(\A\r\x1b\[2K)|{_CONTROL}")
"""Control characters, but for `CLEAR_LINE` at the beginning."""


def escaped(text: str, control: re.Pattern[str]) -> str:
    """The text with ``\\x1b`` and the like for each control character; what the pattern's group is stays."""
    if text.isprintable():
        return text
    return control.sub(lambda match: match[1] or match[0].encode("unicode_escape").decode(), text)


def escaped_json(text: str) -> str:
    """A JSON text that says the same with ``\\u009b`` and the like for each control character."""
    return re.sub(_CONTROL, lambda match: f"\\u{ord(match[0]):04x}", text)


GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
"""The letters of shards (`shardviz.render.palette.GLYPHS`), in their order: a for the first."""

STAND_INS = {
    **dict(zip(GREEK, "abcdefghijklmnopqrstuvwx", strict=True)),
    **dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True)),
    **dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)),
    **dict(zip("─│╱░▒▓┄┆┊▌━", "-|/:%%-::|=", strict=True)),
    **dict(zip("×÷±≠≤≥−–·⋅…⋮Σµ", "x/~!<>--..~:Su", strict=True)),
    **dict(zip("←→↑↓▼▾⌫✓✗•○●◉◐◔◑◕★", "<>^vvv<vx*oO@%-+*#", strict=True)),
    **dict(zip("‘’“”\xa0�", "''\"\" ?", strict=True)),
    **dict.fromkeys("┌┬┐├┼┤└┴┘┏┳┣┗╭╮╰╯", "+"),
    **dict.fromkeys("╴╶", "-"),
    **dict.fromkeys("▏▎▍▋▊▉▐▕╵╷", "|"),
    **dict.fromkeys("▸▹⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"),
    **dict.fromkeys("❯›", ">"),
    **dict.fromkeys("‹◂◃", "<"),
}
"""ASCII characters for those that a terminal's encoding lacks, one for one, so that columns still line up."""


_ARROW = re.compile(r"(?<= )→ (?:( )|([^\n→]*?)(  |$|(?=→)))", re.MULTILINE)


def in_ascii_words(text: str) -> str:
    """The text with ``->`` for an arrow between words, and ``...`` at the end of a list. An arrow takes its
    second column from the next gap, so that columns still line up."""
    text = _ARROW.sub(lambda match: f"-> {match[2] or ''}{' ' if match[3] else ''}", text)
    return text.replace(", …", ", ...")


def replaced(error: UnicodeError) -> tuple[str, int]:
    """An error handler for encoders: a stand-in for each character that is lacking, ``?`` for others."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(STAND_INS.get(character, "?") for character in lacking), error.end


codecs.register_error(ERRORS, replaced)


class Unwritable(Exception):
    """Standard output takes no more; `reader_left` where that is only because the reader has seen enough."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(cause)
        self.reason = cause.strerror or str(cause)
        self.reader_left = isinstance(cause, BrokenPipeError)


class OutputStream:
    """A text stream whose failure is `Unwritable` for all that write: `print`, click and Rich. Control
    characters that are not those of our own pictures are written as escapes. It has no `buffer`, through
    which click would write UTF-8 to a terminal that cannot show it."""

    _control = PICTURES

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._failure: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            if self._failure is not None:
                raise self._failure
            text = escaped(text, self._control)
            is_ascii = codecs.lookup(self._stream.encoding or "utf-8").name == "ascii"
            self._stream.write(in_ascii_words(text) if is_ascii else text)
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


class MessageStream(OutputStream):
    """A stream for messages: what cannot be written is dropped."""

    _control = MESSAGES

    def _fail(self, _error: OSError) -> None:
        self._discard()


def open_standard_streams() -> None:
    """Replace stdout and stderr by an `OutputStream` and a `MessageStream`, and closed streams by something.
    A closed stdout stays one that cannot be written. Were it left closed, the next pipe to a compiler would
    take its number."""
    # Each takes the lowest number that is free.
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    sys.stdout = cast("TextIO", OutputStream(_text(sys.stdout, 1)))
    sys.stderr = cast("TextIO", MessageStream(_text(sys.stderr, 2)))


def write_ascii() -> None:
    """From now on stdout and stderr write ASCII alone."""
    for stream in (sys.stdout, sys.stderr):
        cast("io.TextIOWrapper", stream).reconfigure(encoding="ascii", errors=ERRORS)


def _text(stream: TextIO | None, number: int) -> TextIO:
    if stream is None:
        stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=ERRORS)
    return stream


def no_terminal() -> str:
    """The reason why the application cannot be opened here; empty where it can."""
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        said = "TERM is dumb" if term else "TERM is not set"
        return f"the application needs a full terminal; {said}"
    streams = (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr))
    missing = [name for name, stream in streams if stream is None or not stream.isatty()]
    return f"the application needs a terminal; standard {missing[0]} is not one" if missing else ""
