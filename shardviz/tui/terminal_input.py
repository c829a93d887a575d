"""What a terminal sends, as Textual's messages: whatever it is, reading goes on behind it."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from textual._parser import Parser
from textual._xterm_parser import XTermParser

if TYPE_CHECKING:
    from textual.message import Message


class TerminalInput:
    """Reads bytes piece by piece. What is no UTF-8 is a `�`; a sequence that Textual fails to read, such as a
    key of a number that no character has, is dropped."""

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
            Parser.__init__(self._parser)
