"""An application that outlives a handler that fails, and in which nothing that is typed comes too late.

Textual ends with the first handler that fails, whosever it is, and a screen that was left still gets what was
typed before. Both are decided where messages are dispatched and failures end, which is Textual's own part:
this is the one place that has a hand in it. A Textual that does it by other names does it by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

from textual.app import App
from textual.dom import NoScreen
from textual.widget import Widget
from textual.worker import WorkerFailed

from shardviz.drafts.plain_text import one_line
from shardviz.tui.input_queue import InputQueue, is_input

if TYPE_CHECKING:
    from textual.dom import DOMNode
    from textual.message import Message
    from textual.message_pump import MessagePump
    from textual.screen import Screen


NAMES = (
    "_dispatch_message",
    "_exception",
    "_exception_event",
    "_exit",
    "_handle_exception",
    "_process_messages_loop",
    "_register_child",
    "_running",
    "_start_widget",
)
"""What is Textual's own and used here."""


class ResilientApp(App[None]):
    """What fails once the application is up is said in it, and the rest goes on.

    Input is handed over in its order. It is dropped after the application was left, and where another screen
    has come over the one that it is for; a screen that was left hears no more of its own controls either, so
    that it is left once.
    """

    _is_up = False

    def __init__(self, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._failures: set[str] = set()
        self._is_known = all(hasattr(self, name) for name in NAMES)
        self._typed = InputQueue(self, self._take)

    def _register_child(self, parent: DOMNode, child: Widget, *place: int | None) -> None:
        self._watch(child)
        super()._register_child(parent, child, *place)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        self._watch(widget)  # a scrollbar: nobody registers it
        super()._start_widget(parent, widget)

    def _watch(self, widget: Widget) -> None:
        """Have a hand in what a widget is sent: screens and Textual's own pass here too, before all of it."""
        if self._is_known and "_dispatch_message" not in vars(widget):
            dispatch = partial(self._dispatch, widget, widget._dispatch_message)
            widget._dispatch_message = dispatch  # type: ignore[method-assign]

    async def _dispatch_message(self, message: Message) -> None:
        if self._is_up and is_input(message) and not message.is_forwarded:
            self._typed.put(message)
        else:
            await self._take(message)

    async def _take(self, message: Message) -> None:
        await self._dispatch(self, super()._dispatch_message, message)

    async def _process_messages_loop(self) -> None:
        self._is_up = self._is_known
        typed = asyncio.create_task(self._typed.hand_over())
        await super()._process_messages_loop()
        typed.cancel()

    async def _dispatch(
        self, to: MessagePump, dispatch: Callable[[Message], Awaitable[None]], message: Message
    ) -> None:
        """Dispatch a message, unless it comes too late. A handler that fails must not get as far as Textual's
        loop, which would end with it; what fails on a screen that was left, nobody has to hear."""
        if self._is_late(to, message):
            return
        try:
            await dispatch(message)
        except Exception as error:
            if not self._is_up:
                raise
            if not isinstance(to, Widget) or _screen_of(to) in self.screen_stack:
                self._handle_exception(error)

    def _is_late(self, to: MessagePump, message: Message) -> bool:
        if is_input(message) and self._exit:
            return True
        if not isinstance(to, Widget) or not (is_input(message) or message.control is not None):
            return False
        screen = _screen_of(to)
        return screen not in self.screen_stack or (is_input(message) and screen is not self.screen)

    def _handle_exception(self, error: Exception) -> None:
        """Say what has failed, each thing once, while somebody is there to read it."""
        if not self._is_up:
            super()._handle_exception(error)
            return
        if self._exit or not self._running:
            return
        if self._exception is None:  # for tests, which end with it
            self._exception = error
            self._exception_event.set()
        self.say_failure(error.error if isinstance(error, WorkerFailed) else error)

    def say_failure(self, error: BaseException, what: str = "That") -> None:
        """Say, once, that something has failed unforeseen, and where, for whoever mends it."""
        frame, line = [*walk_tb(error.__traceback__)][-1]
        place = f"{Path(frame.f_code.co_filename).name}, line {line}"
        said = one_line(f"{type(error).__name__}: {error}")
        words = f"{what} failed: {said} ({place}). That is a defect of shardviz; the rest goes on."
        if words not in self._failures:
            self._failures.add(words)
            self.notify(words, severity="error", timeout=30, markup=False)


def _screen_of(widget: Widget) -> Screen[object] | None:
    try:
        return widget.screen
    except NoScreen:
        return None
