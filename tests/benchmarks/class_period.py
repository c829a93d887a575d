"""Ten minutes of a class: two hundred pupils at websockets and ten pages in a real browser.

The teacher reloads, pupils leave and come back, some take over, and one floods the server.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import time
import zlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import cycle
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pyte
from class_of import PUPILS, SIZES, Watcher, enter, family, memory_and_cpu, serving, slowest
from playwright.async_api import BrowserContext, Page, WebSocket, async_playwright
from timing import line

MINUTES = 10.0
PAGES, LEAVERS, TAKERS, SESSIONS = 10, 10, 10, 30
WINDOWS = ({"width": 1280, "height": 720}, {"width": 390, "height": 664})
EVERY_S = 6.0
"""Between two keys of the teacher."""
AWAY_S = 15.0
KEYS = (
    ("n", "Predict"),
    (" ", "Answer"),
    ("n", "Predict"),
    (" ", "Answer"),
    ("B", "Predict"),
    ("B", "Answer"),
    ("B", "Predict"),
    ("B", "See"),
)
"""A teacher's keys through lesson 4 and back, with a text that each draws on every screen."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--renderer-process-limit=2", "--disable-background-networking"]


class Opened:
    """A page in the browser, and the screen that its terminal was last sent."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self._screen = pyte.Screen(80, 24)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("websocket", self._follow)

    def _follow(self, websocket: WebSocket) -> None:
        size = parse_qs(urlsplit(websocket.url).query)
        self._screen = pyte.Screen(int(size["width"][0]), int(size["height"][0]))
        stream = pyte.ByteStream(self._screen)
        websocket.on(
            "framereceived", lambda data: isinstance(data, bytes) and stream.feed(zlib.decompress(data))
        )

    async def question(self) -> str:
        return await self.page.locator(".question").inner_text() if await self.is_asked() else ""

    async def is_asked(self) -> bool:
        return await self.page.locator(".asked").is_visible()


@asynccontextmanager
async def browser() -> AsyncIterator[BrowserContext]:
    async with async_playwright() as driver:
        found = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield await found.new_context()
        await found.close()


class Period:
    """A class as it goes on, and what was measured of it."""

    def __init__(self, url: str, teacher: Page, pupils: list[Watcher], pages: list[Opened]) -> None:
        self.url, self.teacher, self.pupils, self.pages = url, teacher, pupils, pages
        self.keys: list[float] = []
        self.turn = asyncio.Lock()
        """Held while a key is on its way: nobody comes or goes then."""
        self._steps = cycle(KEYS)

    async def press(self, key: str, text: str) -> list[float]:
        """The teacher presses a key: the seconds until each pupil's screen shows it."""
        following = [pupil for pupil in self.pupils if pupil.state.get("is") == "follows"]
        for pupil in following:
            pupil.last = ""
        start = time.perf_counter()
        await self.teacher.keyboard.press("Space" if key == " " else key)
        return list(await asyncio.gather(*(pupil.seconds_until(text, start) for pupil in following)))

    async def predict(self) -> None:
        """Every pupil answers; those at browsers click."""
        for pupil in self.pupils:
            asked = pupil.state.get("asked")
            if isinstance(asked, dict) and asked["answer"] is None:
                await pupil.say("predict", random.choice(asked["choices"]))
        for opened in self.pages:
            if await opened.is_asked():
                with suppress(Exception):  # it may be shown meanwhile
                    await opened.page.locator(".choices button").first.click(timeout=2000)

    async def lead(self, seconds: float) -> None:
        """Go through the lesson and back."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            key, text = next(self._steps)
            async with self.turn:
                self.keys += await self.press(key, text)
            if text == "Predict":
                await asyncio.sleep(1)
                await self.predict()
            await asyncio.sleep(EVERY_S - 1)


async def leave_and_return(stack: AsyncExitStack, http: aiohttp.ClientSession, period: Period) -> str:
    """Ten pupils close their pages and come back: what they had said is still there."""
    while not all(answer(pupil)[1] for pupil in period.pupils[:LEAVERS]):
        await asyncio.sleep(0.1)
    async with period.turn:
        leaving, period.pupils[:LEAVERS] = period.pupils[:LEAVERS], []
    had = [answer(pupil) for pupil in leaving]
    for pupil in leaving:
        await pupil.socket.close()
    await asyncio.sleep(AWAY_S)
    back = [await enter(stack, http, period.url, SIZES[0], tab=f"pupil{number}") for number in range(LEAVERS)]
    start = time.perf_counter()
    await asyncio.gather(*(pupil.seconds_until("Lesson", start) for pupil in back))
    while answer(back[0])[0] != had[0][0]:
        await asyncio.sleep(0.1)
    await asyncio.sleep(1)
    kept = sum(answer(pupil) == before for pupil, before in zip(back, had, strict=True))
    async with period.turn:
        period.pupils[:0] = back
    return f"{kept} of {LEAVERS} with what they had said"


def answer(pupil: Watcher) -> tuple[object, object]:
    """The question that a pupil's page asks, and what the pupil has said to it."""
    asked = pupil.state.get("asked")
    return (asked["question"], asked["chosen"]) if isinstance(asked, dict) else (None, None)


async def flood(pupil: Watcher, seconds: float) -> int:
    """Send as fast as the server reads."""
    end, sent = time.monotonic() + seconds, 0
    with suppress(ConnectionError):
        while time.monotonic() < end:
            await pupil.say(
                *random.choice((("predict", "x" * 500), ("take",), ("follow",), ("stdin", "n" * 99)))
            )
            sent += 1
            if not sent % 50:
                await asyncio.sleep(0)
    return sent


async def period_of(url: str, secret: str, pid: int, minutes: float) -> None:
    share = minutes * 60 / 5
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
        context = await stack.enter_async_context(browser())
        teacher = await context.new_page()
        await teacher.goto(secret)
        await teacher.wait_for_selector("body.-first-byte")
        start = time.perf_counter()
        pupils = list(
            await asyncio.gather(
                *(enter(stack, http, url, SIZES[max(0, n % 4 - 1)], tab=f"pupil{n}") for n in range(PUPILS))
            )
        )
        line(
            "first picture",
            slowest(await asyncio.gather(*(p.seconds_until("See", start) for p in pupils))),
            "2 s, worst 4 s",
        )
        pages = []
        for number in range(PAGES):
            opened = Opened(await context.new_page())
            await opened.page.set_viewport_size(WINDOWS[number % 2])
            await opened.page.goto(url)
            await opened.page.wait_for_selector("body.-first-byte")
            pages.append(opened)
        period = Period(url, teacher, pupils, pages)
        began, before = time.monotonic(), memory_and_cpu(pid)[1]

        await period.lead(share)
        line("a key on all screens", slowest(period.keys), "0.4 s")

        period.keys = []
        await teacher.reload()
        await teacher.wait_for_selector("body.-first-byte")
        await period.lead(share)
        line("after the teacher reloaded", slowest(period.keys), "0.4 s")

        period.keys = []
        leaving = asyncio.create_task(leave_and_return(stack, http, period))
        while not leaving.done():
            await period.lead(share)
        line("while ten leave and come back", slowest(period.keys), "0.4 s")
        line("those who came back", await leaving, "all")

        period.keys = []
        flooding = asyncio.create_task(flood(period.pupils.pop(), share))
        await period.lead(share)
        line("while one floods", slowest(period.keys), "0.4 s")
        line("messages of that one", f"{await flooding}", "-")

        period.keys = []
        start = time.perf_counter()
        for pupil in period.pupils[:TAKERS]:
            pupil.last = ""
            await pupil.say("take")
        taken = await asyncio.gather(*(p.seconds_until("Lesson", start) for p in period.pupils[:TAKERS]))
        line(f"{TAKERS} take over", slowest(taken), "3 s")
        await period.lead(share)
        line("while they are alone", slowest(period.keys), "0.4 s")

        memory, after = memory_and_cpu(pid)
        seconds = time.monotonic() - began
        line("memory (PSS)", f"{memory:.0f} MB, {len(family(pid))} processes", "400 MB without those alone")
        line("a core, over the whole", f"{(after - before) / seconds:.1%} of {seconds:.0f} s", "-")
        line("pages with errors", f"{sum(bool(page.errors) for page in pages)} of {PAGES}", "0")
        questions = {await page.question() for page in pages}
        line("the ten pages show", "the same" if len(questions) == 1 else f"{questions}", "the same")


def report(minutes: float = MINUTES) -> None:
    with serving(SESSIONS) as server:
        asyncio.run(period_of(*server, minutes))


if __name__ == "__main__":
    report(*(float(word) for word in sys.argv[1:]))
