"""What the server grants and refuses, whatever a session holds: here none has a process."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import aiohttp
import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.serve.addresses import listen
from shardviz.serve.seats import REPLACED
from shardviz.serve.server import (
    BYTES_AHEAD,
    BYTES_OF_A_MESSAGE,
    COOKIE,
    IDLE,
    MAX_MESSAGE,
    Rules,
    Server,
)
from shardviz.serve.session import Picture
from tests.serve.conftest import PATIENCE_S, visit


class Silent:
    """A session that shows nothing."""

    unread = 0

    def __init__(self, *_):
        self.picture = Picture()

    def kill(self, *_):
        pass

    start = type = resize = focus = follow = kill

    async def stop(self):
        pass


class NoForks:
    """Nothing is forked."""

    def __init__(self, _begin):
        pass

    async def start(self):
        pass

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _without_processes(monkeypatch):
    monkeypatch.setattr("shardviz.serve.seats.Session", Silent)
    monkeypatch.setattr("shardviz.serve.seats.ForkServer", NoForks)


@asynccontextmanager
async def served(**rules):
    """A server in this process: its address."""
    listening = listen("127.0.0.1", 0)
    async with Server(Rules(to_string(Shared(ProblemForm())), **rules)).serving(listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


async def page_of(url):
    async with aiohttp.ClientSession() as http, http.get(url) as page:
        return page.status, await page.text()


def test_who_finds_no_place_free_is_told_how_many_wait_and_gets_the_next():
    async def script():
        async with served(sessions=1) as url, visit(url) as first:
            await first.until_told(**{"is": "visits"})
            async with visit(url) as second, visit(url) as third:
                await second.until_told(**{"is": "waits"}, place=1)
                await third.until_told(**{"is": "waits"}, place=2)
                await first.socket.close()
                await second.until_told(**{"is": "visits"})
                await third.until_told(**{"is": "waits"}, place=1)

    asyncio.run(script())


def test_a_page_that_is_loaded_again_has_its_seat_and_one_that_is_gone_loses_it(monkeypatch):
    monkeypatch.setattr("shardviz.serve.seats.KEEP_S", 0.5)

    async def script():
        async with served(sessions=1) as url:
            async with visit(url, "mine") as first:
                await first.until_told(**{"is": "visits"})
            async with visit(url, "yours") as other:
                await other.until_told(**{"is": "waits"})
                async with visit(url, "mine") as again:
                    await again.until_told(**{"is": "visits"})
                    async with visit(url, "mine"):
                        assert await again.ended() == REPLACED
                await other.until_told(**{"is": "visits"})

    asyncio.run(script())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
def test_only_the_servers_own_page_may_open_a_session(headers, status):
    async def script():
        async with served() as url:
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                async with visit(url, **headers):
                    pass
            assert caught.value.status == status

    asyncio.run(script())


@pytest.mark.parametrize(
    "path",
    [
        "static/",
        "static/%2e%2e/server.py",
        "page/..%2fserver.py",
        "download/x",
        "static/" + "a" * 5_000,
        "static/js" * 400,
    ],
)
def test_nothing_but_the_pages_own_files_can_be_had(path):
    async def script():
        async with served() as url:
            status, _ = await page_of(f"{url}{path}")
            assert status in (403, 404)

    asyncio.run(script())


TEACHER = {"Cookie": f"{COOKIE}=secret"}


def test_the_teachers_pages_need_the_key_which_the_address_shows_once():
    async def script():
        async with served(key="secret", sessions=1) as url, aiohttp.ClientSession() as http:
            for path in ("class", "lead/", "secret", "Secret/class", "secre/class", "/class"):
                assert (await page_of(f"{url}{path}"))[0] == 404
            for path, to in (("secret/", "/lead/"), ("secret/class", "/class")):
                async with http.get(f"{url}{path}", allow_redirects=False) as reply:
                    assert (reply.status, reply.headers["Location"]) == (303, to)
                    assert reply.cookies[COOKIE].value == "secret"
                    assert reply.cookies[COOKIE]["httponly"]
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                async with visit(f"{url}lead/", Origin="http://evil.example", **TEACHER):
                    pass
            async with visit(url), visit(f"{url}lead/", Origin=url.rstrip("/"), **TEACHER) as teacher:
                await teacher.until_told(**{"is": "visits"})  # in no pupil's place
                async with http.get(f"{url}class", headers=TEACHER) as reply:
                    assert "1 pupil, 1 with you" in await reply.text()

    asyncio.run(script())


def test_without_a_teacher_there_are_no_teachers_pages():
    async def script():
        async with served() as url:
            for path in ("/class", "class", "/", "lead/"):
                assert (await page_of(f"{url}{path}"))[0] == 404

    asyncio.run(script())


def test_the_teachers_page_that_was_opened_last_leads():
    async def script():
        async with served(key="secret") as url:
            lead, origin = f"{url}lead/", url.rstrip("/")
            async with visit(lead, Origin=origin, **TEACHER) as first:
                ended = asyncio.create_task(first.ended())
                async with visit(lead, Origin=origin, **TEACHER) as second:
                    assert await ended == REPLACED
                    await second.until_told(**{"is": "visits"})

    asyncio.run(script())


@pytest.mark.parametrize(
    "message",
    ['["stdin", 3]', '["resize", {"width": "9", "height": 9}]', '["run", "ls"]'],
)
def test_what_no_page_sends_ends_the_session(message):
    async def script():
        async with served() as url, visit(url) as visitor:
            await visitor.socket.send_str(message)
            await visitor.ended()

    asyncio.run(script())


@pytest.mark.parametrize(
    ("size", "times"), [(MAX_MESSAGE + 1, 1), (MAX_MESSAGE // 8, 8 * BYTES_AHEAD // MAX_MESSAGE + 1)]
)
def test_more_than_anybody_types_or_pastes_ends_the_session(size, times, monkeypatch):
    monkeypatch.setattr("shardviz.serve.server.BYTES_PER_S", 0)

    async def script():
        async with served() as url, visit(url) as visitor:
            await visitor.press(*["x" * size] * times)
            assert await visitor.ended() == aiohttp.WSCloseCode.MESSAGE_TOO_BIG

    asyncio.run(script())


def test_a_flood_of_small_messages_ends_the_session():
    async def script():
        async with served(key="secret") as url, visit(url, "tab") as pupil:
            with suppress(ConnectionError):
                for _ in range(2 * BYTES_AHEAD // BYTES_OF_A_MESSAGE):
                    await pupil.say("predict", "3:4")
            assert await pupil.ended() == aiohttp.WSCloseCode.MESSAGE_TOO_BIG

    asyncio.run(script())


def test_a_session_without_a_key_ends():
    async def script():
        async with served(idle_s=0.01) as url, visit(url) as visitor:
            assert await visitor.ended() == IDLE

    asyncio.run(script())


def test_who_says_nothing_makes_place_for_the_next_and_visitors_stay(monkeypatch):
    monkeypatch.setattr("shardviz.serve.server.OTHERS", OTHERS := 32)

    async def script():
        async with served() as url, visit(url) as visitor:
            address = urlsplit(url)
            silent = [
                await asyncio.open_connection(address.hostname, address.port) for _ in range(OTHERS + 9)
            ]
            assert (await page_of(url))[0] == 200
            assert await asyncio.wait_for(silent[0][0].read(), PATIENCE_S) == b""
            await visitor.until_told(**{"is": "visits"})
            await visitor.say("ping", "here")
            while visitor.said != ["pong", "here"]:
                await visitor._read()
            for _, writer in silent:
                writer.close()

    asyncio.run(script())
