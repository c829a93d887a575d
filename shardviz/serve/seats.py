"""Everybody's page and what it shows: a process of its own, while places are free, or in a lecture the one
that follows the teacher in windows of its size."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from aiohttp.web import WebSocketResponse

from shardviz.serve.fork_server import ForkServer
from shardviz.serve.lecture import Lecture
from shardviz.serve.session import LEFT, NOTHING, Notes, Session

REPLACED = 4003
"""The code with which a page is closed whose seat is opened again elsewhere."""
KEEP_S = 10.0
"""The seconds for which a seat is kept whose page is gone: loaded again, or its connection broken."""
TEACHER = "/"
"""The seat of the teacher, which no browser's tab may have."""
SIZES = ((46, 24), (100, 30), (160, 45))
"""The columns and lines in which those who follow are shown the teacher's page, on a phone, a laptop, a wide
screen. A page scales its picture to its window."""
_SHRUNK = 1.2
"""The most by which a picture is larger than its window, but the smallest."""


class BrowserPage:
    """A page: the process whose picture it shows, and what it is told. `seat` is the name that the page gives
    its tab, the same after a reload; `size` the columns and lines for which its window has room."""

    def __init__(self, websocket: WebSocketResponse, seat: str, size: tuple[int, int]) -> None:
        self.websocket = websocket
        self.seat = seat
        self.size = size
        self.session: Session | None = None
        self._state: dict[str, object] = {}
        self._has = NOTHING
        self._wake = asyncio.Event()

    def look_at(self, session: Session | None) -> None:
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
        told: dict[str, object] = {}
        with suppress(ConnectionError):
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


class Seats:
    """`pages` are those that are open, by their seats. `places` is how many processes of their own visitors
    and pupils may have at a time; the next ones wait, in a queue in which their pages say where they are."""

    def __init__(self, begin: str, places: int, notes: Notes, lecture: Lecture | None) -> None:
        self.pages: dict[str, BrowserPage] = {}
        self._begin, self._places, self._notes, self._lecture = begin, places, notes, lecture
        self._forks = ForkServer(begin)
        self._own: dict[str, Session] = {}
        self._shown: dict[tuple[int, int], Session] = {}
        self._waiting: dict[str, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        await self._forks.start()
        if self._lecture is not None:
            for size in SIZES:
                self._show(self._lecture, size)

    async def enter(self, page: BrowserPage) -> None:
        """Show a page what its seat had, or what it begins with."""
        before, self.pages[page.seat] = self.pages.get(page.seat), page
        if before is not None:
            await before.close(REPLACED)
        if self._lecture is not None and page.seat != TEACHER:
            self._lecture.enter(page.seat)
        if page.seat in self._own:
            self._own[page.seat].resize(*page.size)
            page.look_at(self._own[page.seat])
        elif self._lecture is None or page.seat == TEACHER:
            self.take_over(page)
        self._tell(page)

    def leave(self, page: BrowserPage, is_kept: bool = True) -> None:
        """Note that a page is gone. Its seat is kept for a while."""
        page.look_at(None)
        if self.pages.get(page.seat) is not page:
            return
        del self.pages[page.seat]
        if self._lecture is not None:
            self._lecture.leave(page.seat)
        if is_kept:
            asyncio.get_running_loop().call_later(KEEP_S, self._give_up, page.seat)
        else:
            self._give_up(page.seat)

    def _give_up(self, seat: str) -> None:
        if seat in self.pages:
            return
        self._waiting.pop(seat, None)
        self._end(seat)

    def take_over(self, page: BrowserPage) -> None:
        if page.seat not in (*self._own, *self._waiting):
            self._waiting[page.seat] = None
            self._admit()

    def follow(self, page: BrowserPage) -> bool:
        """Have a pupil's page follow the teacher's, and its own process end; False for any other page."""
        if self._lecture is None or page.seat == TEACHER:
            return False
        self._waiting.pop(page.seat, None)
        self._lecture.follow(page.seat)
        self._end(page.seat)
        self._admit()
        return True

    def predict(self, page: BrowserPage, choice: str) -> None:
        """Count what a pupil who follows predicts."""
        if self._lecture is not None and page.session not in self._own.values():
            self._lecture.predict(page.seat, choice)
            self._tell(page)

    def resize(self, page: BrowserPage, width: int, height: int) -> None:
        if page.size == (width, height):
            return
        page.size = width, height
        if page.seat in self._own:
            self._own[page.seat].resize(width, height)
        else:
            self._tell(page)

    def typed_in(self, page: BrowserPage) -> Session | None:
        """The process in which a page types; None where nobody does."""
        return page.session if page.session is self._own.get(page.seat) else None

    async def close(self, code: int) -> None:
        """Close all pages with a code that says why, and end all processes."""
        closing = [page.close(code) for page in self.pages.values()]
        ending = [session.stop() for session in (*self._own.values(), *self._shown.values())]
        await asyncio.gather(*closing, *ending, *self._tasks, return_exceptions=True)
        self._forks.close()

    def _admit(self) -> None:
        """Start the processes of those who wait, as far as places are free."""
        for seat in list(self._waiting):
            free = len(self._own.keys() - {TEACHER}) < self._places
            page = self.pages.get(seat)
            if page is None or seat in self._own or (seat != TEACHER and not free):
                continue  # it is away for a moment, or its last process has not quite ended
            del self._waiting[seat]
            string, role = self._begin, "visitor"
            if self._lecture is not None:
                string, role = self._lecture.string, "teacher" if seat == TEACHER else "pupil"
            session = self._own[seat] = self._session(string, role, seat)
            session.start(*page.size)
            page.look_at(session)
            self._tell(page)
        for seat in self._waiting:
            if seat in self.pages:
                self._tell(self.pages[seat])

    def _session(self, string: str, role: str, seat: str = "") -> Session:
        return Session(string, role, seat, self._forks, self._notes, self._hear, self._ended)

    def _end(self, seat: str) -> None:
        """End the process of a seat; its place is free as soon as that is gone."""
        if (session := self._own.get(seat)) is not None:
            if seat in self.pages:
                self.pages[seat].look_at(None)
            self._run(self._until_gone(seat, session))
        if seat in self.pages:
            self._tell(self.pages[seat])

    def _run(self, what: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until_gone(self, seat: str, session: Session) -> None:
        await session.stop()
        if self._own.get(seat) is session:
            del self._own[seat]
            self._admit()

    def _ended(self, session: Session, code: int) -> None:
        """A process has ended by itself: its pupil follows again, any other page is left."""
        pages = [page for page in self.pages.values() if page.session is session]
        size = next((size for size, shown in self._shown.items() if shown is session), None)
        if size is not None:
            del self._shown[size]
        for page in pages:
            if size is not None or code != LEFT or not self.follow(page):
                self._run(page.close(code))
                self._end(page.seat)

    def _hear(self, session: Session, said: object) -> None:
        """Note where a pupil is; where the teacher is, and have the others follow."""
        seat = next((seat for seat, own in self._own.items() if own is session), None)
        if self._lecture is None or seat is None:
            return
        if seat != TEACHER:
            if said == {"type": "follows"} and seat in self.pages:
                self.follow(self.pages[seat])
            self._lecture.hear(seat, said)
        elif self._lecture.lead(said):
            for shown in self._shown.values():
                shown.follow(self._lecture.string, self._lecture.pointer)
            for page in self.pages.values():
                self._tell(page)

    def _tell(self, page: BrowserPage) -> None:
        """Tell a page what it is at, and show one that follows the picture for its size."""
        seat, lecture = page.seat, self._lecture
        is_pupil = lecture is not None and seat != TEACHER
        if page.session is not None and page.session is self._own.get(seat):
            page.tell({"is": "alone" if is_pupil else "visits"})
            return
        state: dict[str, object] = {"is": "follows"}
        if seat in self._waiting:
            state = {"is": "waits", "place": [*self._waiting].index(seat) + 1}
        if lecture is not None and is_pupil:
            width, height = (room * _SHRUNK for room in page.size)
            size = max((each for each in SIZES if each[0] <= width and each[1] <= height), default=SIZES[0])
            page.tell(state | {"size": size, "asked": lecture.question_for(seat)})
            page.look_at(self._shown.get(size) or self._show(lecture, size))
        elif seat in self._waiting:
            page.tell(state)

    def _show(self, lecture: Lecture, size: tuple[int, int]) -> Session:
        session = self._shown[size] = self._session(lecture.string, "follower")
        session.start(*size)
        session.follow(lecture.string, lecture.pointer)
        return session
