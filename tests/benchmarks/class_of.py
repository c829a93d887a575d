"""A class of two hundred, simulated at websockets: pictures, a teacher's key, memory, rest, taking over."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from timing import line

PUPILS, TAKERS, LESSON = 200, 30, "4"
SIZES = ((160, 45), (100, 30), (46, 40))
"""Windows: of each four pupils, two have a wide one, one a laptop's, one a phone."""
REST_S = 10.0
PATIENCE_S = 60.0


class Watcher:
    """A page at a websocket, and what it was sent."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.bytes = 0
        self.last = ""
        """What is on screen since the last whole drawing or longer, without the styles."""
        self.state: dict[str, object] = {}
        self._came = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self.socket:
            if message.type == aiohttp.WSMsgType.BINARY:
                self.bytes += len(message.data)
                text = zlib.decompress(message.data).decode("utf-8", "replace")
                self.last += re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", text)
            else:
                kind, said = json.loads(message.data)
                self.state = said if kind == "page" else self.state
            self._came.set()

    async def seconds_until(self, text: str, start: float) -> float:
        """Seconds from `start` until the text has been drawn."""
        async with asyncio.timeout(PATIENCE_S):
            while text not in self.last:
                self._came.clear()
                await self._came.wait()
        return time.perf_counter() - start

    async def say(self, *words: object) -> None:
        await self.socket.send_str(json.dumps(words))


async def enter(
    stack: AsyncExitStack, http: aiohttp.ClientSession, url: str, size: tuple[int, int], **named: str
) -> Watcher:
    origin = f"http://{urlsplit(url).netloc}"
    wanted = f"{url}ws?width={size[0]}&height={size[1]}&tab={named.get('tab', '')}"
    headers = {"Origin": origin, "Cookie": named.get("cookie", "")}
    return Watcher(await stack.enter_async_context(http.ws_connect(wanted, headers=headers)))


def family(pid: int) -> dict[int, float]:
    """A process and all that descend from it, with the seconds of processor time of each so far."""
    parents, seconds = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            number = int(stat.parent.name)
            parents[number] = int(fields[1])
            seconds[number] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return {number: seconds[number] for number in found}


def memory_and_cpu(pid: int) -> tuple[float, float]:
    """MB, pages that are shared counted once, and seconds of processor time so far."""
    memory, seconds = 0.0, family(pid)
    for number in seconds:
        rolled = Path(f"/proc/{number}/smaps_rollup").read_text()
        memory += int(re.search(r"^Pss:\s+(\d+)", rolled, re.M)[1]) / 1e3  # type: ignore[index]
    return memory, sum(seconds.values())


def slowest(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s"


async def class_of(url: str, secret: str, pid: int) -> None:
    key = urlsplit(secret).path.strip("/")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        teacher = await enter(stack, http, f"{url}lead/", (160, 45), cookie=f"shardviz-teacher={key}")
        await teacher.seconds_until("See", time.perf_counter())
        start, before = time.perf_counter(), memory_and_cpu(pid)[1]
        sizes = [SIZES[max(0, number % 4 - 1)] for number in range(PUPILS)]
        pupils = await asyncio.gather(
            *(enter(stack, http, url, size, tab=f"pupil{number}") for number, size in enumerate(sizes))
        )
        seen = await asyncio.gather(*(pupil.seconds_until("See", start) for pupil in pupils))
        line(f"{PUPILS} followers: the first picture", slowest(seen), "2 s, worst 4 s")
        line("the server's processor time for it", f"{memory_and_cpu(pid)[1] - before:.1f} s", "-")

        taken = []
        for text in ("Predict", "Answer", "Predict", "Answer"):
            for pupil in pupils:
                pupil.last, pupil.bytes = "", 0
            start = time.perf_counter()
            await teacher.say("stdin", " " if text.startswith("Answer") else "n")
            taken += await asyncio.gather(*(pupil.seconds_until(text, start) for pupil in pupils))
            await asyncio.sleep(0.5)
        line("a teacher's key on all screens", slowest(taken), "0.4 s")
        line("bytes a pupil for a key", f"{statistics.mean(p.bytes for p in pupils) / 1e3:.1f} kB", "-")

        await asyncio.sleep(2)
        before = memory_and_cpu(pid)[1]
        await asyncio.sleep(REST_S)
        memory, after = memory_and_cpu(pid)
        line("memory of all processes (PSS)", f"{memory:.0f} MB, {len(family(pid))} processes", "400 MB")
        line("a core at rest", f"{(after - before) / REST_S:.1%}", "5 %")

        for pupil in pupils[:TAKERS]:
            pupil.last = ""
        start, before = time.perf_counter(), memory_and_cpu(pid)[1]
        for pupil in pupils[:TAKERS]:
            await pupil.say("take")
        taken = await asyncio.gather(*(pupil.seconds_until("Answer", start) for pupil in pupils[:TAKERS]))
        memory, after = memory_and_cpu(pid)
        line(f"{TAKERS} take over at once", slowest(taken), "3 s")
        line("processor time of that", f"{after - before:.1f} s", "-")
        line("memory then (PSS)", f"{memory:.0f} MB, {len(family(pid))} processes", "-")


@contextmanager
def serving(sessions: int) -> Iterator[tuple[str, str, int]]:
    """A server of a class: its address, the teacher's, and its process."""
    words = ["serve", "--port", "0", "--lesson", LESSON, "--follow", "--sessions", str(sessions)]
    with subprocess.Popen(
        [sys.executable, "-m", "shardviz", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            assert server.stderr is not None
            url = server.stdout.readline().strip()
            yield url, server.stderr.readline().rpartition(" ")[2].strip(), server.pid
        finally:
            server.terminate()


def report() -> None:
    with serving(TAKERS) as server:
        asyncio.run(class_of(*server))


if __name__ == "__main__":
    report()
