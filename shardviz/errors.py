"""Errors that a user can cause or meet: one sentence, then a hint.

The command line prints a `ShardvizError` as ``shardviz: error: …`` and ``hint: …`` and exits with its
`exit_code`; a traceback is always a bug. In Python the hint stands below the traceback's last line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


class ShardvizError(Exception):
    """An error with one sentence (`message`) and one piece of advice (`hint`)."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled by its fields, since subclasses are made from other arguments: a pool sends it back.
        return type(self).__new__, (type(self), *self.args), vars(self)


class QuestionError(ShardvizError):
    """The question itself is wrong: an unknown axis, a clash of sizes, a rank that does not fit."""


class NoMachineError(QuestionError):
    """No hardware is named for what could be priced; nothing has failed."""


class NotationError(QuestionError):
    """Text that a notation cannot read: `start` and `stop` bound the offending piece of the `text`."""

    def __init__(self, problem: str, text: str, start: int, stop: int | None = None, hint: str = "") -> None:
        stop = start + 1 if stop is None else stop
        self.text, self.start, self.stop = text, start, stop
        super().__init__(f"{problem} {place(text, start, stop)}", hint)


class TargetError(QuestionError):
    """A target that does not exist, is not installed, or cannot hold the mesh."""


class CompilerError(ShardvizError):
    """A compiler refused, ran out of time, or died. `log` keeps the end of what it printed."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message, hint)
        self.log = log


class JobLost(CompilerError):
    """A process of the job was lost, and so the job is over, here in `process`. `is_told` where process 0 is
    there and tells the user."""

    def __init__(self, message: str, process: int, is_told: bool = False) -> None:
        super().__init__(message, "the whole job has ended: start it again")
        self.process, self.is_told = process, is_told


def quote(text: str, limit: int = 60) -> str:
    """`text` in quotes for a message: control characters escaped, long texts cut in the middle."""
    ends = text if len(text) <= 2 * limit else text[:limit] + text[-limit:]
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in ends
    )
    if len(shown) > limit:
        half = (limit - 1) // 2
        shown = f"{shown[:half]}…{shown[-half:]}"
    return f"'{shown}'"


def joined(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; "" for none."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def one_line(text: str, limit: int) -> str:
    """The words of a text on one line, cut off after so many characters."""
    words = " ".join(text.split())
    return words if len(words) <= limit else f"{words[: limit - 1]}…"


def most_like(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known word that is most like another one; "" where none is."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word[:60], [*known], 1, cutoff)), "")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean model? `` before a hint that lists the known words; "" where none is like the word."""
    by_case = {name.casefold(): name for name in known}
    close = most_like(word.casefold(), by_case, 0.7)
    return f"did you mean {by_case[close]}? " if close else ""


def listed(text: str) -> Iterator[tuple[str, int]]:
    """The pieces of a text between commas, without the spaces around them, each with its place there."""
    start = 0
    for piece in text.split(","):
        yield piece.strip(), start + len(piece) - len(piece.lstrip())
        start += len(piece) + 1


def place(text: str, start: int, stop: int) -> str:
    """Where a piece stands: ``at character 3 of 'XZ,Y_'``, or ``at the end of 'XZ,'``."""
    if start >= len(text):
        return f"at the end of {quote(text)}" if text else "in an empty text"
    if len(text) <= 60:
        return f"at character {start + 1} of {quote(text)}"
    first, last = max(0, start - 25), stop + 25
    window = "…" * (first > 0) + text[first:last] + "…" * (last < len(text))
    return f"at character {start + 1} of {quote(window)}"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """``1 copy``, ``2 copies`` (`nouns` where an s does not do)."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"
