"""The application in a real browser: pages open, keys arrive, the picture follows; ten at once; a class."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
import zlib
from urllib.parse import parse_qs, urlsplit

import pyte
import pytest

from tests.serve.conftest import PATIENCE_S, serving

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-3d-apis",
    "--renderer-process-limit=1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
VIEWPORT = {"width": 800, "height": 480}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A browser with a new profile; where the tests need one, it must be there."""
    found = next(filter(_starts, BROWSERS), None)
    if found is None:
        assert os.environ.get("SHARDVIZ_NEEDS_BROWSER") != "1", "no browser is installed"
        pytest.skip(f"no browser is installed: {', '.join(BROWSERS)}")
    profile = str(tmp_path_factory.mktemp("profile"))
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            profile, executable_path=shutil.which(found), args=FLAGS, viewport=VIEWPORT
        )
        yield context
        context.close()


def _starts(name):
    """Whether there is such a browser; a script of that name may only say how to get one."""
    return shutil.which(name) and subprocess.run([name, "--version"], capture_output=True).returncode == 0


class Page:
    """A page of the server: what the terminals of its sessions were sent, and what it has asked for."""

    def __init__(self, browser):
        self.page = browser.new_page()
        self.page.set_viewport_size(VIEWPORT)
        self.asked: list[str] = []
        self.errors: list[str] = []
        self._screens: list[pyte.Screen] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", self._follow)

    def _follow(self, websocket):
        size = parse_qs(urlsplit(websocket.url).query)
        screen = pyte.Screen(int(size["width"][0]), int(size["height"][0]))
        stream = pyte.ByteStream(screen)
        websocket.on(
            "framereceived", lambda data: isinstance(data, bytes) and stream.feed(zlib.decompress(data))
        )
        self._screens.append(screen)

    def open_more(self, count):
        """Take places that nothing is drawn for, since ten terminals on a page are slow without a GPU."""
        self.page.evaluate(
            """count => {
                const address = location.origin.replace("http", "ws") + "/ws?width=80&height=24";
                const Plain = Object.getPrototypeOf(WebSocket); // ours gives each the seat of this tab
                window.others = Array.from({length: count}, () => new Plain(address));
            }""",
            count,
        )

    def until(self, text, sessions=1):
        """Wait until each of its sessions shows the text."""
        end = time.monotonic() + PATIENCE_S
        while sum(text in "\n".join(screen.display) for screen in self._screens) < sessions:
            assert time.monotonic() < end, [screen.display for screen in self._screens]
            self.page.wait_for_timeout(50)


@pytest.mark.slow
def test_ten_visitors_at_once_and_a_key_changes_the_picture(browser, url):
    visitor = Page(browser)
    visitor.page.goto(url)
    visitor.until("A[b_X, d_Y]")
    visitor.open_more(9)
    visitor.until("A[b_X, d_Y]", sessions=10)

    eleventh = Page(browser)
    eleventh.page.goto(url)
    eleventh.page.locator(".opening", has_text="You are number 1 in the queue.").wait_for()

    visitor.page.wait_for_selector("body.-first-byte")
    before = visitor.page.screenshot()
    for _ in range(4):
        visitor.page.keyboard.press("ArrowDown")
    visitor.page.keyboard.press("Backspace")
    visitor.until("A[b, d_Y]")
    assert visitor.page.screenshot() != before
    assert {urlsplit(asked).netloc for asked in visitor.asked} == {urlsplit(url).netloc}
    assert visitor.errors == []

    visitor.page.keyboard.press("q")
    visitor.page.get_by_text("It was left.").wait_for()
    assert visitor.page.get_by_text("Begin a new one").get_attribute("href") == "./"


@pytest.mark.slow
def test_a_class_on_a_phone_and_a_laptop(browser):
    with serving("--lesson", "4", "--follow", "--sessions", "1") as (server, url):
        teacher, phone, laptop = (Page(browser) for _ in range(3))
        teacher.page.goto(server.stderr.readline().rpartition(" ")[2].strip())
        assert teacher.page.url == f"{url}lead/"
        phone.page.set_viewport_size({"width": 390, "height": 664})
        for pupil in (phone, laptop):
            pupil.page.goto(url)
        for page in (teacher, phone, laptop):
            page.page.wait_for_selector("body.-first-byte")
        teacher.page.keyboard.press("n")
        buttons = phone.page.locator(".choices button")
        buttons.first.wait_for()
        parts = [
            phone.page.locator(part).bounding_box() for part in (".xterm-screen", ".question", ".choices")
        ]
        for part in parts:
            assert part["x"] >= 0
            assert part["x"] + part["width"] <= 391
            assert part["y"] + part["height"] <= 664
        buttons.nth(1).click()
        phone.page.locator(".choices button[aria-pressed=true]").wait_for()
        assert phone.page.locator("button.right").count() == 0
        teacher.page.keyboard.press(" ")
        phone.page.locator("button.right").wait_for()

        laptop.page.keyboard.press("T")
        laptop.page.get_by_text("You continue alone.").wait_for()
        phone.page.locator(".take").click()
        phone.page.locator(".place", has_text="You are number 1 in the queue.").wait_for()
        laptop.page.reload()
        laptop.page.get_by_text("You continue alone.").wait_for()
        laptop.page.locator(".take").click()
        phone.page.get_by_text("You continue alone.").wait_for()

        assert teacher.errors + phone.errors == []
        server.terminate()
        laptop.page.get_by_text("This page comes back with it.").wait_for()
