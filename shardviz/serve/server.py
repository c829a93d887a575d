"""The pages and the websockets: the number of visitors, their connections, and the end of a session."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from shardviz.serve.addresses import is_our_host, is_same_origin
from shardviz.serve.lecture import Lecture, class_page
from shardviz.serve.seats import SIZES, TEACHER, BrowserPage, Seats
from shardviz.serve.session import Notes, within

MAX_MESSAGE = 256 * 1024
"""Bytes of one message of a browser: of what is pasted at once. A larger one ends the session."""
MAX_TAB = 64
"""Characters of the name of a browser's tab."""
MAX_PATH = 255
"""Bytes of the path of a page: no file of ours has a longer one, nor may a file system be asked for it."""
BYTES_AHEAD, BYTES_PER_S = 2 * MAX_MESSAGE, 16 * 1024
"""Bytes that a browser may send at once, or its process may leave unread, and more each second; a mouse that
never rests stays below. More ends the session: bytes that are held back would keep the place of a visitor who
has left."""
BYTES_OF_A_MESSAGE = 64
"""The bytes that a message counts for, besides its own."""
HEARTBEAT_S = 15.0
"""The seconds between two pings of a browser; a dead one is noticed within one and a half times that."""
CLOSING_S = 1.0
"""The seconds that a browser has to agree that a session ends."""
IDLE_CONNECTION_S = 15.0
"""The seconds after which a silent connection that is not a visitor's is closed."""
ENDED, IDLE = 4000, 4001
"""The codes with which the server closes a websocket, of those that are for applications."""
MAX_PAGES = 500
"""Pages that are open at a time, with those that wait."""
COOKIE = "shardviz-teacher"
"""Has the key of the teacher's pages in the teacher's browser."""
TEACHERS = ("/lead/", "/class")
"""The paths of the teacher's pages."""

OTHERS = 512
"""Connections that are not a visitor's: a browser opens up to six to load a page, a class many at once."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Server": "shardviz",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
    "img-src 'self' data:; connect-src 'self' ws://{host} wss://{host}; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Nothing is loaded from elsewhere, nothing is sent elsewhere, and no other page may hold this one."""
_UNKNOWN_NAME = (
    "This server is not known under that name. Use its address, or serve it as that name: "
    "shardviz serve --host NAME\n"
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Rules:
    """`begin` is what visitors begin with, as a shared string, `host` the name that was asked for, `sessions`
    how many there may be at a time, `idle_s` the seconds without a key after which one ends, `key` the secret
    part of the teacher's address, whose page leads; without one there is no teacher."""

    begin: str
    host: str = "127.0.0.1"
    sessions: int = 10
    idle_s: float = 3600.0
    key: str = ""


class Server:
    """Serves the application to browsers."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._notes = Notes()
        self._lecture = Lecture(rules.begin) if rules.key else None
        self._seats = Seats(rules.begin, rules.sessions, self._notes, self._lecture)
        self._visitors: set[asyncio.BaseProtocol] = set()

    async def serve(self, listening: socket.socket) -> int:
        """Serve until a signal ends it, whose number is returned; by then every visitor's process is gone."""
        came: asyncio.Queue[int] = asyncio.Queue()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, came.put_nowait, number)
        async with self.serving(listening):
            return await came.get()

    @asynccontextmanager
    async def serving(self, listening: socket.socket) -> AsyncIterator[None]:
        logging.getLogger("aiohttp").addHandler(logging.NullHandler())
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._notes.say_of_loop)
        allow_descriptors(self._rules.sessions + len(SIZES) + 1)  # and the teacher's
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            shutdown_timeout=1.0,
            keepalive_timeout=IDLE_CONNECTION_S,
            # A visitor who is gone is gone at once, whatever the server waits for.
            handler_cancellation=True,
        )
        await runner.setup()
        assert runner.server is not None
        accept = partial(new_connection, runner.server, self._visitors)
        await self._seats.open()
        accepting = await loop.create_server(accept, sock=listening)
        try:
            yield
        finally:
            accepting.close()
            await runner.cleanup()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._check])
        static = Path(textual_serve.__file__).parent / "static"
        app.router.add_get("/", self._page)
        app.router.add_get("/ws", partial(self._open, is_teacher=False))
        if self._lecture is not None:
            app.router.add_get(f"/{self._rules.key}/", partial(self._know, "/lead/"))
            app.router.add_get(f"/{self._rules.key}/class", partial(self._know, "/class"))
            app.router.add_get("/lead/", self._page)
            app.router.add_get("/lead/ws", partial(self._open, is_teacher=True))
            app.router.add_get("/class", partial(self._class, self._lecture))
        app.router.add_static("/static", static)
        app.router.add_static("/page", str(files("shardviz.serve") / "page"))
        app.on_shutdown.append(self._close)
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse what comes from another page, or under a name that is not this machine's."""
        if not is_our_host(request.host, self._rules.host):
            return web.Response(status=421, text=_UNKNOWN_NAME)
        origin = request.headers.get("Origin", "")
        if request.path.endswith("/ws") and not is_same_origin(origin, request.host):
            return web.Response(status=403, text="Only the server's own page may open a session.\n")
        try:
            key = request.cookies.get(COOKIE, "").encode()
            is_known = not request.path.startswith(TEACHERS) or secrets.compare_digest(
                key, self._rules.key.encode()
            )
            if not is_known or len(request.rel_url.raw_path) > MAX_PATH:
                raise web.HTTPNotFound()
            response = await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=f"{error.reason}\n")
        if not response.prepared:
            response.headers.update(_HEADERS)
            response.headers["Content-Security-Policy"] = _POLICY.format(host=request.host)
        return response

    async def _know(self, page: str, _request: web.Request) -> web.StreamResponse:
        """Give the teacher's browser the key, which its address shows no longer."""
        response = web.Response(status=303, headers={"Location": page})
        response.set_cookie(COOKIE, self._rules.key, httponly=True, samesite="Lax")
        return response

    async def _page(self, request: web.Request) -> web.StreamResponse:
        text = (files("shardviz.serve") / "page" / "index.html").read_text(encoding="utf-8")
        is_pupils = self._lecture is not None and request.path == "/"
        text = text.replace("{sizes}", json.dumps(SIZES) if is_pupils else "")
        return web.Response(text=text, content_type="text/html")

    async def _class(self, lecture: Lecture, _request: web.Request) -> web.StreamResponse:
        return web.Response(text=class_page(lecture.shared, lecture.counts), content_type="text/html")

    async def _open(self, request: web.Request, is_teacher: bool) -> web.StreamResponse:
        if len(self._seats.pages) >= MAX_PAGES:
            raise web.HTTPServiceUnavailable()
        websocket = web.WebSocketResponse(
            timeout=CLOSING_S,
            heartbeat=HEARTBEAT_S,
            max_msg_size=MAX_MESSAGE,
            compress=False,  # pictures are, once for all
        )
        websocket.headers.update(_HEADERS)
        tab = "".join(filter(str.isalnum, request.query.get("tab", "")))[:MAX_TAB]
        seat = TEACHER if is_teacher else tab or secrets.token_urlsafe()
        page = BrowserPage(websocket, seat, (_number(request, "width", 80), _number(request, "height", 24)))
        self._visitors.add(request.protocol)
        showing, is_kept = asyncio.create_task(page.show()), bool(tab or is_teacher)
        try:
            await websocket.prepare(request)
            await self._seats.enter(page)
            is_kept &= await self._listen(page)
        finally:
            showing.cancel()
            self._visitors.discard(request.protocol)
            self._seats.leave(page, is_kept)
        return websocket

    async def _listen(self, page: BrowserPage) -> bool:
        """Pass on what a page sends, until its visitor leaves, sends what no page does, or nothing for long;
        return whether the page may come back to its seat."""
        loop, seats, websocket = asyncio.get_running_loop(), self._seats, page.websocket
        budget, counted = float(BYTES_AHEAD), loop.time()
        due = counted + self._rules.idle_s
        while True:
            try:
                message = await websocket.receive(timeout=max(0.0, due - loop.time()))
            except TimeoutError:
                due = loop.time() + self._rules.idle_s
                if seats.follow(page):  # a pupil in whose page nobody types
                    continue
                await websocket.close(code=IDLE)
                return False
            if message.type != WSMsgType.TEXT:
                return message.type != WSMsgType.ERROR
            now, session = loop.time(), seats.typed_in(page)
            budget = min(BYTES_AHEAD, budget + (now - counted) * BYTES_PER_S) - len(message.data.encode())
            budget, counted = budget - BYTES_OF_A_MESSAGE, now
            if budget < 0 or (session is not None and session.unread > BYTES_AHEAD):
                if session is not None:
                    session.kill()  # which would go on with what it has got
                await websocket.close(code=WSCloseCode.MESSAGE_TOO_BIG)
                return False
            match _read(message.data):
                case ["stdin", str(typed)]:
                    due = now + self._rules.idle_s
                    if session is not None:
                        session.type(typed.encode("utf-8", "replace"))
                case ["resize", {"width": int(width), "height": int(height)}]:
                    seats.resize(page, width, height)
                case ["ping", str(data)]:
                    await websocket.send_json(["pong", data[:32]])
                case ["focus" | "blur" as said]:
                    if session is not None:
                        session.focus(said == "focus")
                case ["predict", str(choice)]:
                    seats.predict(page, choice)
                case ["take"]:
                    seats.take_over(page)
                case ["follow"]:
                    seats.follow(page)
                case _:
                    return False

    async def _close(self, _app: web.Application) -> None:
        await self._seats.close(ENDED)


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _number(request: web.Request, name: str, usual: int) -> int:
    text = request.query.get(name, "")
    return within(int(text), (1, 9999)) if text.isascii() and text.isdigit() and len(text) < 5 else usual


def new_connection(server: web.Server, visitors: Set[asyncio.BaseProtocol]) -> web.RequestHandler:
    """The protocol of one more connection. Where there are too many, the oldest that is not a visitor's is
    closed: a connection costs the machine a descriptor, also one that never sends a request."""
    others = [connection for connection in server.connections if connection not in visitors]
    for handler in others[: max(0, len(others) + 1 - OTHERS)]:
        if handler.transport is not None:
            handler.transport.abort()
    return server()


def allow_descriptors(sessions: int) -> None:
    """Raise this process's limit of open files, as far as it may, to what so many sessions need."""
    # 192 of its own, with connections that are accepted at once before the oldest are closed; of a session
    # its socket, and two while it starts.
    needed = OTHERS + MAX_PAGES + 192 + 3 * sessions
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
