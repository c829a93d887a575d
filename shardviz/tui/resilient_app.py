"""An application that outlives a handler that fails, and in which nothing that is typed comes too late.

Textual ends with the first handler that fails, whosever it is, and a screen that was left still gets what was
typed before. Both are decided where messages are dispatched and failures end, which is Textual's own part:
this is the one place that has a hand in it. A Textual that does it by other names does it by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from traceback import walk_tb
from typing import TYPE_CHECKING

from textual import events
from textual.app import App, ScreenStackError
from textual.dom import NoScreen
from textual.widget import Widget
from textual.worker import WorkerError, WorkerFailed

from shardviz.forms.form import one_line

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
"""Textual's private names that are used here."""


class ResilientApp(App[None]):
    """A failure after the start is shown as a notification, and the rest goes on.

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
        self._watch(widget)  # a scrollbar is not registered
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
        loop, which would end with it; a failure on a screen that was left is not reported."""
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
        """Report a failure while the application runs."""
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
        """Notify, once, that something has failed unexpectedly, and where."""
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


ROUNDS = 3
"""Times to wait for all widgets from the focus up: for a key, for the messages of the widget that handles it,
and for the messages that answer those."""
PATIENCE_S = 5.0
"""Seconds for which one key may hold up the others, and all of them the one that quits."""
MOST_AHEAD = 64
"""Keys that a person may type ahead; more than these are not typed by hand."""
QUIT = "ctrl+q"


def is_input(message: Message) -> bool:
    """Return whether a message is a key, a paste or a mouse event."""
    return isinstance(message, (events.InputEvent, events.Paste))


class InputQueue:
    """Hands input to the application, one after another.

    Textual hands a key to the part with the focus and looks at the next at once: keys typed ahead of a
    dialog miss it, and `ctrl+u` deletes what was typed behind it. Here a key goes to what has the focus when
    its turn comes. What is pointed at is meant on the screen that was seen then, and on no other; so are keys
    where too many wait.
    """

    def __init__(self, app: App[None], dispatch: Callable[[Message], Awaitable[None]]) -> None:
        self._app, self._dispatch = app, dispatch
        self._waiting: asyncio.Queue[tuple[Message, Screen[object]]] = asyncio.Queue()
        self._end = inf

    def put(self, message: Message) -> None:
        if _quits(message):
            self._end = min(self._end, monotonic() + PATIENCE_S)
        self._waiting.put_nowait((message, self._app.screen))

    async def hand_over(self) -> None:
        """Hand over what is put here, until the application is left."""
        with suppress(ScreenStackError):
            while True:
                message, seen = await self._waiting.get()
                if not self._is_late(message, seen):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(PATIENCE_S):
                            await self._hand_over(message)

    def _is_late(self, message: Message, seen: Screen[object]) -> bool:
        """Return whether input for the screen `seen` is no longer valid."""
        if _quits(message):
            return False
        is_for_it = isinstance(message, events.MouseEvent) or self._waiting.qsize() > MOST_AHEAD
        return monotonic() > self._end or (is_for_it and seen is not self._app.screen)

    async def _hand_over(self, message: Message) -> None:
        """Have a message dispatched, and wait for all that follows from it."""
        if isinstance(message, events.Key) and message.key == "enter":
            await self._found()
        target = self._target
        self._app.call_later(self._dispatch, message)
        await _caught_up(self._app)
        rounds = 0 if not isinstance(message, events.MouseMove) else ROUNDS
        while rounds < ROUNDS:
            for part in target.ancestors_with_self:
                await _caught_up(part)
            before, target = target, self._target
            rounds = rounds + 1 if target is before else 0

    @property
    def _target(self) -> DOMNode:
        """The receiver of the next key."""
        return self._app.focused or self._app.screen

    async def _found(self) -> None:
        """Wait until the screen has found what its text asks for: `enter` takes the first of it."""
        searches = [worker for worker in self._app.workers if worker.node is self._app.screen]
        if searches:
            with suppress(WorkerError):
                await self._app.workers.wait_for_complete(searches)


def _quits(message: Message) -> bool:
    return isinstance(message, events.Key) and message.key == QUIT


async def _caught_up(part: DOMNode) -> None:
    """Wait until a part has handled all that it was sent so far; one that is gone does not hear of it."""
    caught_up = asyncio.Event()
    if part.call_later(caught_up.set):
        await caught_up.wait()
