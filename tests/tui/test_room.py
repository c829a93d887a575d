"""Nothing is cut off above empty lines, whatever the window: what does not fit scrolls."""

from __future__ import annotations

import pytest
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from shardviz.forms.form import OPEN, ProblemForm
from shardviz.tui.lines_view import LinesView
from tests.tui.conftest import drive, until
from tests.tui.recorded import Recorded

WINDOWS = ((40, 15), (77, 24), (120, 36), (200, 60))
CHAIN = ProblemForm(
    einsum="ab,bc->ac; ac,cd->ad",
    specs=("X_", "_Y", OPEN, OPEN, "Y_", OPEN),
    targets="shardy,cpu,v5e:2x4",
)
ARRAYS = ("A", "W1", "H1", "W2", "Out")
VIEWS = {
    "layout": "v m v m",
    "plan": "down",
    "compiler": "left d right w w",
    "step": "i escape v v",
    "time": "m n N v v",
}
"""The keys that lead through all views of a screen, and in the end back to the first."""


def told(pane):
    """The words of the layout screen: those of its pictures, and those on what is selected."""
    canvases = [part.canvas for part in pane.query(LinesView)]
    lines = (canvas.line(y, 0, canvas.width).plain for canvas in canvases for y in range(canvas.height))
    return " ".join(lines).replace("[", " ").split()


def lines_of(part):
    """How many lines a part of a screen has to show."""
    if isinstance(part, LinesView):
        return part.canvas.height
    return part.visual.get_height(part.styles, part.size.width)


def cut_off(pane):
    """What of a pane can neither be seen nor scrolled to, and what is scrolled beside empty lines."""
    kinds = (LinesView, Static)
    parts = [each for each in pane.query("*") if isinstance(each, kinds) and each.size]
    # What stands in a form scrolls with it.
    parts = [each for each in parts if not any(isinstance(on, VerticalScroll) for on in each.ancestors)]
    for part in parts:
        lines, seen = lines_of(part), part.size.height
        if isinstance(part, Static):
            if lines != seen or not pane.region.contains_region(part.region):
                yield f"{part} has {lines} lines on {seen}"
        elif lines > seen:
            if part.max_scroll_y < lines - seen:
                yield f"{part} has {lines} lines and scrolls by {part.max_scroll_y}"
            above = [each for each in parts if each.region.x == part.region.x]
            empty = sum(each.size.height - min(lines_of(each), each.size.height) for each in above)
            if empty:
                yield f"{part} has {lines} lines, of which {seen} are seen beside {empty} empty ones"


@pytest.mark.slow
def test_whatever_does_not_fit_scrolls(monkeypatch):
    # Where everything stands is known without drawing it.
    monkeypatch.setattr(Screen, "_compositor_refresh", lambda _: None)
    found = []

    async def script(pilot):
        app = pilot.app
        await app.action_show("step")
        await until(pilot, lambda: app.pane.page.prepared)
        for size in WINDOWS:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            found.extend((size, "resized", said) for said in cut_off(app.pane))
            for area, keys in VIEWS.items():
                await app.action_show(area)
                if area == "time":
                    await until(pilot, lambda: app.pane.chart.parts)
                await pilot.pause()
                for key in (None, *keys.split()):
                    if key:
                        await pilot.press(key)
                    missing = [
                        f"nothing on {name}"
                        for name in ARRAYS
                        if area == "layout" and name not in told(app.pane)
                    ]
                    found.extend((size, area, key, said) for said in [*cut_off(app.pane), *missing])
            found.extend((size, "problem", said) for said in cut_off(app.panel))

    drive(script, draft=CHAIN, worker=Recorded())
    assert found == []
