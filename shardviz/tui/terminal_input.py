"""Bytes from a terminal as Textual's messages; after unreadable bytes, reading continues."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.message import Message


class NoParser(Exception):
    """This Textual reads what a terminal sends in another way, by itself."""


class TerminalInput:
    """Reads bytes piece by piece. Bytes that are not UTF-8 become `�`; a sequence that Textual fails to read,
    such as a key with the number of no character, is dropped.

    Raises `NoParser` where Textual's own parser is not the one that is known here.
    """

    def __init__(self) -> None:
        try:
            from textual._xterm_parser import XTermParser

            self._parser = XTermParser()
            self._feed, self._tick = self._parser.feed, self._parser.tick
            self._begin_anew = super(XTermParser, self._parser).__init__
        except (ImportError, AttributeError, TypeError) as error:
            raise NoParser(str(error)) from error
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that the data complete."""
        for character in self._decode(data):
            yield from self._read(self._feed(character))

    def tick(self) -> Iterator[Message]:
        """The messages that are complete since nothing has followed for a while, such as `escape`."""
        yield from self._read(self._tick())

    def _read(self, messages: Iterable[Message]) -> Iterator[Message]:
        try:
            yield from messages
        except Exception:
            # The parser is a generator, which ends with the error. Where the mouse is it still knows.
            self._begin_anew()
