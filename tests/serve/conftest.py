"""A server in a process of its own, and visitors with a screen that is read as text."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
import zlib
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("textual_serve", reason="the extra serve is not installed")

import aiohttp
import pyte

PATIENCE_S = 30.0
LEAVING_S = 0.2
"""How long a visitor who leaves waits for the server to agree."""
SETTLED_S = 1.0
SIZE = (100, 30)


class Visitor:
    """A visitor at a websocket."""

    def __init__(self, socket):
        self.socket = socket
        self.said, self.state = [], {}
        """What the page was told last, and what of its state."""
        self._screen = pyte.Screen(*SIZE)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self._screen.display)

    async def until(self, text):
        end = time.monotonic() + PATIENCE_S
        while text not in self.text:
            assert time.monotonic() < end, self.text
            await self._read()

    async def until_told(self, **state):
        """Read until the page was told this, among other things; return all of it."""
        async with asyncio.timeout(PATIENCE_S):
            while not state.items() <= self.state.items():
                await self._read()
        return self.state

    async def settled(self):
        """Read until nothing has come for a while; what is on screen then."""
        with suppress(TimeoutError):
            while True:
                await self._read(SETTLED_S)
        return self.text

    async def _read(self, patience_s=PATIENCE_S):
        message = await self.socket.receive(timeout=patience_s)
        assert message.type in (aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT), (message, self.text)
        if message.type == aiohttp.WSMsgType.BINARY:
            self._stream.feed(zlib.decompress(message.data))
        else:
            self.said = kind, said = json.loads(message.data)
            self.state = said if kind == "page" else self.state

    async def say(self, *words):
        await self.socket.send_str(json.dumps(words))

    async def press(self, *keys):
        for key in keys:
            await self.say("stdin", key)

    async def resize(self, width, height, shown):
        """Ask for a size, and be shown another."""
        self._screen.resize(lines=shown[1], columns=shown[0])
        await self.say("resize", {"width": width, "height": height})

    async def ended(self):
        """Read to the end; the code that says why."""
        while not self.socket.closed:
            await self.socket.receive(timeout=PATIENCE_S)
        return self.socket.close_code


@asynccontextmanager
async def visit(url, tab="", **headers):
    """Take a place, as the server's page does, in a tab of that name."""
    async with aiohttp.ClientSession() as http:
        wanted = f"{url}ws?width={SIZE[0]}&height={SIZE[1]}&tab={tab}"
        headers = {"Origin": url.rstrip("/"), **headers}
        leaving = aiohttp.ClientWSTimeout(ws_close=LEAVING_S)
        async with http.ws_connect(wanted, headers=headers, timeout=leaving) as socket:
            yield Visitor(socket)


@contextmanager
def serving(*words):
    """`shardviz serve` at a free port: its process and its address."""
    command = [sys.executable, "-m", "shardviz", "serve", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


@pytest.fixture(scope="session")
def server():
    """A server that has the usual ten places, and has nothing to say when it ends."""
    with serving() as served:
        yield served
        process, _ = served
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
        assert process.stderr.read().splitlines()[1:] == []


@pytest.fixture
def url(server):
    """The address of a server whose places are all free."""
    process, address = server
    until(lambda: not visitors(process.pid))
    return address


def descendants(pid):
    """All processes that a process has started, and theirs."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found, known = set(), {pid}
    while known:
        known = {child for child, parent in parents.items() if parent in known}
        found |= known
    return found


def visitors(pid):
    """The same of a server, without the process that forks visitors' and is there before them."""
    found = descendants(pid)
    return found - {min(found, default=0)}


def until(condition):
    """Look until a condition holds."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


async def until_async(condition):
    """The same, while others go on."""
    await asyncio.to_thread(until, condition)
