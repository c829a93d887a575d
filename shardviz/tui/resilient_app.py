"""An application that outlives a handler that fails, and in which nothing that is typed comes too late.

Textual 8.2.8 ends with the first handler that fails, and hands a key to the part with the focus while the one
before is still at work: keys typed ahead of a dialog miss it, and `ctrl+u` deletes what was typed behind it.
Both are decided where messages are dispatched and failures end, which is Textual's own part. Nor do bytes end
it that cannot be read."""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from traceback import walk_tb
from typing import Any

from rich.console import RenderableType
from textual import events
from textual._xterm_parser import XTermParser
from textual.app import App, ScreenStackError
from textual.dom import DOMNode, NoScreen
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import WorkerError, WorkerFailed

from shardviz.errors import ShardvizError
from shardviz.forms.form import one_line
from shardviz.forms.wording import error_words

ROUNDS = 3
"""Times to wait for all widgets from the focus up: for a key, for the messages of the widget that handles it,
and for the messages that answer those."""
PATIENCE_S = 5.0
"""Seconds for which one key may hold up the others, and all of them the one that quits."""
MOST_AHEAD = 64
"""Keys that a person may type ahead; more than these are not typed by hand."""
QUIT = "ctrl+q"


class ResilientApp(App[None]):
    """A failure after the start is notified, a `ShardvizError` by its own words, and the rest goes on. Input
    is handed over in its order, to what has the focus when its turn comes. What is pointed at is meant on the
    screen that was seen then, and on no other; so are keys where too many wait."""

    _is_up = False

    def __init__(self, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._failures: set[str] = set()
        self._waiting: asyncio.Queue[tuple[Message, Screen[object]]] = asyncio.Queue()
        self._typing_ends = inf
        self._held = ExitStack()
        """Holds up the frames while the terminal has not taken those before."""
        self._is_slow = self._has_lost_frame = False

    def hold_frames(self, is_slow: bool) -> None:
        """Draw nothing while the terminal is slow, then all that has changed meanwhile, once."""
        self._is_slow = is_slow
        self._held.close()
        if is_slow:
            self._held.enter_context(self.batch_update())
        elif self._has_lost_frame:
            self._has_lost_frame = False
            self.screen.refresh()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        self._has_lost_frame |= self._is_slow and renderable is not None
        super()._display(screen, renderable)

    def _register_child(self, parent: DOMNode, child: Widget, *indexes: int | None) -> None:
        """Have a hand in what a widget is sent: screens and Textual's own pass here too, before all of it."""
        if "_dispatch_message" not in vars(child):
            dispatch = partial(self._dispatch, child, child._dispatch_message)
            child._dispatch_message = dispatch  # type: ignore[method-assign]
        super()._register_child(parent, child, *indexes)

    async def _dispatch_message(self, message: Message) -> None:
        if not self._is_up or not is_input(message) or message.is_forwarded:
            await self.take(message)
            return
        if _quits(message):
            self._typing_ends = min(self._typing_ends, monotonic() + PATIENCE_S)
        self._waiting.put_nowait((message, self.screen))

    async def take(self, message: Message) -> None:
        """Have the application's own handlers take a message; after it was left, no input."""
        if not (is_input(message) and self._exit):
            await self._dispatch(self, super()._dispatch_message, message)

    async def _process_messages_loop(self) -> None:
        self._is_up = True
        typed = asyncio.create_task(self._hand_over_all())
        await super()._process_messages_loop()
        typed.cancel()

    async def _dispatch(
        self, to: MessagePump, dispatch: Callable[[Message], Awaitable[None]], message: Message
    ) -> None:
        """Dispatch a message. A handler that fails must not get as far as Textual's loop, which would end
        with it; a failure on a screen that was left is not reported."""
        try:
            await dispatch(message)
        except Exception as error:
            if not self._is_up and not isinstance(error, ShardvizError):
                raise
            with suppress(NoScreen):
                if not isinstance(to, Widget) or to.screen in self.screen_stack:
                    self._handle_exception(error)

    def _handle_exception(self, error: Exception) -> None:
        if isinstance(error, ShardvizError):
            self.notify(error_words(error), severity="warning")
            return
        if not self._is_up:
            super()._handle_exception(error)
            return
        if self._exit or not self._running:
            return
        if self._exception is None:  # for tests, which end with it
            self._exception = error
            self._exception_event.set()
        cause = error.error if isinstance(error, WorkerFailed) else error
        frame, line = [*walk_tb(cause.__traceback__)][-1]
        place = f"{Path(frame.f_code.co_filename).name}, line {line}"
        said = one_line(f"{type(cause).__name__}: {cause}")
        words = f"That failed: {said} ({place}). This is a bug in shardviz; everything else continues."
        if words not in self._failures:
            self._failures.add(words)
            self.notify(words, severity="error", timeout=30)

    def notify(self, message: str, **more: Any) -> None:
        """Show a notification in place of the one before, without markup."""
        self.clear_notifications()
        super().notify(message, **{"markup": False, **more})

    async def _hand_over_all(self) -> None:
        """Hand over what is typed, one after another, until the application is left."""
        with suppress(ScreenStackError):
            while True:
                message, seen = await self._waiting.get()
                is_for_it = isinstance(message, events.MouseEvent) or self._waiting.qsize() > MOST_AHEAD
                is_late = monotonic() > self._typing_ends or (is_for_it and seen is not self.screen)
                if _quits(message) or not is_late:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(PATIENCE_S):
                            await self._hand_over(message)

    async def _hand_over(self, message: Message) -> None:
        """Have a message dispatched, and wait for all that follows from it. `enter` takes what the screen's
        text asks for, so what looks for that ends first."""
        searches = [worker for worker in self.workers if worker.node is self.screen]
        if searches and isinstance(message, events.Key) and message.key == "enter":
            with suppress(WorkerError):
                await self.workers.wait_for_complete(searches)
        target = self.focused or self.screen
        self.call_later(self.take, message)
        await _caught_up(self)
        rounds = 0 if not isinstance(message, events.MouseMove) else ROUNDS
        while rounds < ROUNDS:
            for part in target.ancestors_with_self:
                await _caught_up(part)
            before, target = target, self.focused or self.screen
            rounds = rounds + 1 if target is before else 0


def is_input(message: Message) -> bool:
    return isinstance(message, (events.InputEvent, events.Paste))


def _quits(message: Message) -> bool:
    return isinstance(message, events.Key) and message.key == QUIT


async def _caught_up(part: DOMNode) -> None:
    """Wait until a part has handled all that it was sent so far; one that is gone does not hear of it."""
    caught_up = asyncio.Event()
    if part.call_later(caught_up.set):
        await caught_up.wait()


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
