"""What the server grants and refuses, whatever a session holds: here none has a process."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest

from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_string
from shardviz.serve.addresses import listen
from shardviz.serve.server import BYTES_AHEAD, IDLE, MAX_MESSAGE, OTHERS, REPLACED, Rules, Server
from tests.serve.conftest import PATIENCE_S, visit

ENDLESS = "endless"
"""What a session takes for ever to pass on."""


class Silent:
    """A session that shows nothing."""

    unread = 0

    def __init__(self, *_):
        pass

    def kill(self):
        pass

    async def start(self, *_):
        pass

    async def stop(self):
        pass

    def follow(self, *_):
        pass

    def remember(self, *_):
        pass

    async def send_bytes(self, data):
        if data == ENDLESS.encode():
            await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _without_processes(monkeypatch):
    monkeypatch.setattr("shardviz.serve.server.Session", Silent)


@asynccontextmanager
async def served(**rules):
    """A server in this process: its address."""
    listening = listen("127.0.0.1", 0)
    async with Server(Rules(to_string(Shared(ProblemForm())), **rules)).serving(listening):
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"


async def page_of(url):
    async with aiohttp.ClientSession() as http, http.get(url) as page:
        return page.status, await page.text()


async def until_free(url):
    async with asyncio.timeout(PATIENCE_S):
        while (await page_of(url))[0] == 503:
            pass


def test_no_more_are_served_than_there_are_places():
    async def script():
        async with served(sessions=2) as url:
            async with visit(url), visit(url):
                status, said = await page_of(url)
                assert status == 503
                assert "All 2 places are taken." in said
                with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
                    async with visit(url):
                        pass
            await until_free(url)

    asyncio.run(script())


def test_the_place_of_somebody_who_has_gone_is_free_whatever_the_session_is_at():
    async def script():
        async with served(sessions=1) as url:
            async with visit(url) as visitor:
                await visitor.press(ENDLESS, "j")
            await until_free(url)

    asyncio.run(script())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
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
        "static/../server.py",
        "static/%2e%2e/server.py",
        "page/..%2fserver.py",
        "download/x",
        "static/" + "a" * 5_000,
        "static/" + "%C3%A9" * 200,
        "page/%00",
        "page/%ff",
        "static/js" * 400,
    ],
)
def test_nothing_but_the_pages_own_files_can_be_had(path):
    async def script():
        async with served() as url:
            status, _ = await page_of(f"{url}{path}")
            assert status in (403, 404)

    asyncio.run(script())


def test_the_teachers_pages_are_at_their_secret_address_alone():
    async def script():
        async with served(key="secret", sessions=1) as url:
            for path in (
                "class",
                "teacher/",
                "secret",
                "Secret/class",
                "secre/class",
                "/class",
                "secret/../class",
            ):
                assert (await page_of(f"{url}{path}"))[0] == 404
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                async with visit(f"{url}secret/", Origin="http://evil.example"):
                    pass
            async with visit(url), visit(f"{url}secret/", Origin=url.rstrip("/")):
                assert (await page_of(url))[0] == 503  # the teacher has no pupil's place, and needs none
                assert (await page_of(f"{url}secret/"))[0] == 200
                assert "0 pupils" in (await page_of(f"{url}secret/class"))[1]

    asyncio.run(script())


def test_without_a_teacher_there_are_no_teachers_pages():
    async def script():
        async with served() as url:
            for path in ("/class", "class", "/"):
                assert (await page_of(f"{url}{path}"))[0] == 404

    asyncio.run(script())


def test_the_teachers_page_that_was_opened_last_leads():
    async def script():
        async with served(key="secret") as url:
            secret, origin = f"{url}secret/", url.rstrip("/")
            async with visit(secret, Origin=origin) as first:
                ended = asyncio.create_task(first.ended())
                async with visit(secret, Origin=origin) as second:
                    assert await ended == REPLACED
                    await second.socket.send_str(json.dumps(["ping", "here"]))
                    assert await second.socket.receive_json(timeout=PATIENCE_S) == ["pong", "here"]

    asyncio.run(script())


@pytest.mark.parametrize(
    "message",
    ["[" * 10_000, '["stdin", 3]', '["resize", {"width": "9", "height": 9}]', '["run", "ls"]'],
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


def test_a_session_without_a_key_ends():
    async def script():
        async with served(idle_s=0.01) as url, visit(url) as visitor:
            assert await visitor.ended() == IDLE

    asyncio.run(script())


def test_who_says_nothing_makes_place_for_the_next_and_visitors_stay():
    async def script():
        async with served() as url, visit(url) as visitor:
            address = urlsplit(url)
            silent = [
                await asyncio.open_connection(address.hostname, address.port) for _ in range(OTHERS + 9)
            ]
            assert (await page_of(url))[0] == 200
            assert await asyncio.wait_for(silent[0][0].read(), PATIENCE_S) == b""
            await visitor.socket.send_str(json.dumps(["ping", "here"]))
            assert await visitor.socket.receive_json(timeout=PATIENCE_S) == ["pong", "here"]
            for _, writer in silent:
                writer.close()

    asyncio.run(script())
