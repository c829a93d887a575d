"""A view of lines: what is put on screen again when another canvas is shown."""

from __future__ import annotations

import asyncio

from rich.text import Text
from textual.app import App

from shardviz.tui.lines_view import LinesView, TextLines
from tests.tui.conftest import text_of


class Viewer(App[None]):
    """A view alone, which notes the lines that it is asked for."""

    def __init__(self):
        super().__init__()
        self.view = LinesView(TextLines(lines("a", "b", "c")))
        self.asked = []
        draw = self.view.render_line

        def noted(y):
            self.asked.append(y)
            return draw(y)

        self.view.render_line = noted

    def compose(self):
        yield self.view


def lines(*words):
    return [Text(word) for word in words]


def test_only_lines_that_changed_are_put_on_screen_again():
    async def session():
        app = Viewer()
        async with app.run_test(size=(20, 5)) as pilot:
            await pilot.pause()
            for words, changed in (
                ("abc", []),
                ("aBc", [1]),
                ("ABc", [0]),
                ("xyz", [0, 1, 2]),
                ("wxyz", [0, 1, 2, 3]),
                ("wxyz", []),
            ):
                app.asked.clear()
                app.view.show(TextLines(lines(*words)))
                await pilot.pause()
                assert (words, sorted(set(app.asked))) == (words, changed)
                assert text_of(app).split() == [*words]

    asyncio.run(session())


def test_a_shorter_canvas_is_scrolled_no_further_than_it_goes():
    async def session():
        app = Viewer()
        async with app.run_test(size=(20, 5)) as pilot:
            app.view.show(TextLines(lines(*map(str, range(30)))))
            await pilot.pause()
            app.view.scroll_to(y=25, animate=False)
            await pilot.pause()
            app.view.show(TextLines(lines(*map(str, range(10)))))
            await pilot.pause()
            assert (app.view.scroll_y, app.view.vertical_scrollbar.window_virtual_size) == (5, 10)
            assert [line.split()[0] for line in text_of(app).splitlines()] == ["5", "6", "7", "8", "9"]
            app.view.show(TextLines(lines("a", "b")))
            await pilot.pause()
            assert (app.view.scroll_y, app.view.show_vertical_scrollbar) == (0, False)
            assert text_of(app).split() == ["a", "b"]

    asyncio.run(session())


def test_a_canvas_that_looks_different_now_is_shown_as_it_is():
    async def session():
        app = Viewer()
        canvas = lines("one", "two")
        async with app.run_test(size=(20, 5)) as pilot:
            app.view.show(TextLines(canvas))
            await pilot.pause()
            canvas[1] = Text("three")
            app.view.show(app.view.canvas)
            await pilot.pause()
            assert text_of(app).split() == ["one", "three"]
            app.view.show(TextLines(lines("four", "five")))
            app.view.show(TextLines(lines("six", "five")))
            await pilot.pause()
            assert text_of(app).split() == ["six", "five"]

    asyncio.run(session())
