"""What is typed, key by key: all that one does is done before the next is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from textual import events
from textual.app import ScreenStackError
from textual.worker import WorkerError

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode
    from textual.message import Message
    from textual.screen import Screen

ROUNDS = 3
"""How often the way up from the focus is gone: for a key, for what the part that takes it says, and for what
others say to that."""
PATIENCE_S = 5.0
"""How long one key may hold up the others, and all of them the one that quits."""
MOST_AHEAD = 64
"""Keys that somebody may mean for what they are going to open; more of them come from no fingers."""
QUIT = "ctrl+q"


def is_input(message: Message) -> bool:
    """Whether somebody has typed, pasted or pointed."""
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
        """Whether something that was done when a screen was `seen` is not meant any more."""
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
        """What the next key is for."""
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
