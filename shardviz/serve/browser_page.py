"""A page in a browser, as the server sees it: the process whose picture it shows, and what it is told."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp.web import WebSocketResponse

from shardviz.serve.picture import NOTHING
from shardviz.serve.session import Session


class BrowserPage:
    """`seat` is the name that the page gives its tab, the same after a reload; `size` the columns and lines
    for which its window has room."""

    def __init__(self, websocket: WebSocketResponse, seat: str, size: tuple[int, int]) -> None:
        self.websocket = websocket
        self.seat = seat
        self.size = size
        self.session: Session | None = None
        self._state: dict[str, object] = {}
        self._has = NOTHING
        self._wake = asyncio.Event()

    def look_at(self, session: Session | None) -> None:
        """Show a process's picture, in place of that of another."""
        if session is self.session:
            return
        if self.session is not None:
            self.session.picture.watchers.discard(self._wake.set)
        self.session, self._has = session, NOTHING
        if session is not None:
            session.picture.watchers.add(self._wake.set)
        self._wake.set()

    def tell(self, state: dict[str, object]) -> None:
        """Say what the page is at; of several that follow one another it gets the last."""
        self._state = state
        self._wake.set()

    async def show(self) -> None:
        """Send what the page lacks, until it is gone. One that reads slowly delays no other."""
        with suppress(ConnectionError):
            await self._show()

    async def _show(self) -> None:
        told: dict[str, object] = {}
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._state != told:
                told = self._state
                await self.websocket.send_json(["page", told])
            if self.session is not None:
                had = self._has
                data, self._has = self.session.picture.since(had)
                if self._has != had:
                    await self.websocket.send_bytes(data)

    async def close(self, code: int) -> None:
        self.look_at(None)
        await self.websocket.close(code=code)
