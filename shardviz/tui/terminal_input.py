"""Bytes from a terminal as Textual's messages; after unreadable bytes, reading continues."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator

from textual._xterm_parser import XTermParser
from textual.message import Message


class TerminalInput:
    """Reads bytes piece by piece. Bytes that are not UTF-8 become `�`; a sequence that Textual 8.2.8 fails to
    read, such as a key with the number of no character, is dropped."""

    def __init__(self) -> None:
        self._parser = XTermParser()
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that the data complete."""
        for character in self._decode(data):
            yield from self._read(self._parser.feed(character))

    def tick(self) -> Iterator[Message]:
        """The messages that are complete since nothing has followed for a while, such as `escape`."""
        yield from self._read(self._parser.tick())

    def _read(self, messages: Iterable[Message]) -> Iterator[Message]:
        try:
            yield from messages
        except Exception:
            # The parser is a generator, which ends with the error. Where the mouse is it still knows.
            super(XTermParser, self._parser).__init__()
