"""Frames: the time of the application's own thread from a key to lines that are ready to be written, and from
each frame to the next that follows from that key."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise

from textual import events
from timing import line

from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.timeline.program_timeline import Lane, ProgramTimeline, TimedOp
from shardviz.tui.app import ShardvizApp

SIZE = (120, 36)
DASHBOARD = (160, 45)
LARGE = (200, 60)
PRESSED = 40
"""Keys that are pressed at least for one figure."""
PATIENCE_S = 2.0
"""Every key below changes something; a frame that takes longer counts as this long."""
SETTLED_S = 0.05
"""After so long without a frame none follows."""
BUDGET_MS = ((512, 16), (65_536, 60))
OPERATIONS, TIME_MS = 50_000, 16
"""Operations of the timeline that is zoomed and panned, and the budget of its frames."""
Frame = tuple[str, int, tuple[float, float]]
"""What was done, on how many devices, and the median milliseconds of the first and of the longest frame."""


class Silent:
    """A worker that is asked nothing."""

    def start(self, *targets):
        """Nothing is started."""


class Watched(ShardvizApp):
    """The application, which tells when a frame is ready; nothing is written."""

    def __init__(self, draft: ProblemForm, screen: str) -> None:
        super().__init__(draft, screen, Silent())
        self.drawn = asyncio.Event()
        self.ready: list[float] = []
        """The time of the thread at each frame since the key, in seconds."""

    def _display(self, _screen, renderable):
        if hasattr(renderable, "render_segments"):
            renderable.render_segments(self.console)
            self.ready.append(time.thread_time())
            self.drawn.set()

    async def frames_of(self, key: str) -> list[float]:
        """Milliseconds to the first frame after a key, and from each frame to the next."""
        self.ready.clear()
        self.drawn.clear()
        start = time.thread_time()
        self.post_message(events.Key(key, None))
        patience = PATIENCE_S
        while True:
            try:
                await asyncio.wait_for(self.drawn.wait(), patience)
            except TimeoutError:
                break
            self.drawn.clear()
            patience = SETTLED_S
        ends = [start, *self.ready]
        return [(after - before) * 1e3 for before, after in pairwise(ends)] or [PATIENCE_S * 1e3]


def frames(
    draft: ProblemForm,
    screen: str,
    keys: Sequence[str],
    first: Sequence[str] = (),
    size: tuple[int, int] = SIZE,
) -> tuple[float, float]:
    """Median milliseconds of the first frame after each of the keys in turn, once the `first` ones were
    pressed, and of the longest of all frames after a key."""

    async def session() -> list[list[float]]:
        taken = []
        app = Watched(draft, screen)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.workspace.face(False)
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.press(*first)
            await pilot.pause()
            for _ in range(-(-PRESSED // len(keys))):
                for key in keys:
                    taken.append(await app.frames_of(key))
                    # What follows behind these frames is not part of the next.
                    await app.workers.wait_for_complete()
        return taken

    taken = asyncio.run(session())
    return statistics.median(first for first, *_ in taken), statistics.median(map(max, taken))


def layout() -> list[Frame]:
    """The cursor over the cells of a matrix, by array and by device."""
    found = []
    for mesh, devices in (("X=16,Y=32", 512), ("X=256,Y=256", 65_536)):
        draft = ProblemForm(mesh=mesh, targets="none")
        moves = [*["right"] * 6, *["down"] * 6, *["left"] * 3, *["up"] * 3, "end", "home"]
        found.append(("layout: the cursor moves, by array", devices, frames(draft, "layout", moves)))
        moves = ["v", *moves, "v"]
        found.append(("layout: the cursor moves, by device", devices, frames(draft, "layout", moves)))
    return found


def step() -> list[Frame]:
    """Rounds of collectives over all devices, and over groups of them, on a page and on a large one."""
    meshes = (("X=512", "X=8,Y=64", 512), ("X=65536", "X=256,Y=256", 65_536))
    found = []
    for one, two, devices in meshes:
        for mesh, collective in (
            (one, CollectiveFields("all_gather")),
            (two, CollectiveFields("psum")),
            (two, CollectiveFields("psum", "X")),
            (one, CollectiveFields("psum", algorithm="double-binary-tree")),
        ):
            draft = ProblemForm(mesh=mesh, specs=("__",) * 3, targets="none", collective=collective)
            played = f"{collective.op} by {collective.algorithm or 'default'} on {mesh}"
            what = f"step: a round of {played}, {collective.axis or 'all'}"
            for size in (SIZE, LARGE):
                taken = frames(draft, "step", ["right", "left"] * 4, (), size)
                found.append((f"{what}, {size[0]} columns", devices, taken))
        draft = ProblemForm(mesh=two, targets="none", collective=CollectiveFields("all_to_all"))
        keys = ["end", *["left"] * 6, "home"]
        taken = frames(draft, "step", keys)
        found.append((f"step: the last rounds of all_to_all on {two}", devices, taken))
    return found


def edit() -> list[Frame]:
    """An axis on and off a dimension, with each screen beside the problem."""
    found = []
    for mesh, devices in (("X=16,Y=32", 512), ("X=256,Y=256", 65_536)):
        draft = ProblemForm(mesh=mesh, targets="none")
        for screen in ("layout", "plan", "time"):
            taken = frames(draft, screen, ["space"] * 4, first=("p", *["down"] * 4))
            found.append((f"an edit on {screen}", devices, taken))
    return found


def dashboard() -> list[Frame]:
    """Three panes: the cursor moves in one, a device is marked in all, an edit redraws all."""
    found = []
    for mesh, devices in (("X=16,Y=32", 512), ("X=256,Y=256", 65_536)):
        draft = ProblemForm(mesh=mesh, targets="none")
        edit = ["p", *["down"] * 4]
        for what, keys, first in (
            ("the cursor moves", ["right"] * 6 + ["left"] * 6, ()),
            ("a device is marked", ["enter"] * 4, ()),
            ("the next step of the plan", ["down", "up"] * 4, ["2"]),
            ("an edit", ["space"] * 4, edit),
        ):
            taken = frames(draft, "layout", keys, first, DASHBOARD)
            found.append((f"dashboard: {what}", devices, taken))
    return found


def timeline(count: int) -> ProgramTimeline:
    """So many operations: compute, and on three lanes what runs beside it, some at once."""
    lanes = (Lane("compute", "compute"), Lane("copy", "HBM copies"), Lane("axis", "X"), Lane("axis", "Y"))
    ops = [
        TimedOp(
            f"fusion.{number}",
            ("matmul", "copy-start", "all-gather-start", "all-reduce")[number % 4],
            number % 4,
            number * 1e-6,
            (number + 2 + number % 7) * 1e-6,
            (2 + number % 7) * 1e-6,
            "compiler",
            after=(number - 1,) if number else (),
        )
        for number in range(count)
    ]
    end = max(op.end for op in ops)
    path = tuple(range(0, count, 3))
    return ProgramTimeline(
        "many", "v5e:2x4", lanes, tuple(ops), (), end, end, end, (), (), 0, None, critical_path=path
    )


def time_screen() -> list[tuple[str, tuple[float, float]]]:
    """Zooming, panning and moving on a long timeline, with its critical path marked."""
    from shardviz.tui.time import timelines

    long = timeline(OPERATIONS)
    timelines.tell_plan = lambda question, _: timelines.ToldTimelines(question, (("plan", long),))
    draft = ProblemForm(targets="none")
    zoom, pan = ["plus"] * 8 + ["minus"] * 8, ["greater_than_sign"] * 4 + ["less_than_sign"] * 4
    first = ["b", *["plus"] * 4]
    return [
        ("time: zoom", frames(draft, "time", zoom, ["b"])),
        ("time: pan", frames(draft, "time", pan, first)),
        ("time: to the next operation", frames(draft, "time", ["right", "left"] * 4, first)),
    ]


def report() -> None:
    # The application keeps its session when it ends: not where a person's is.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        _report()


def _report() -> None:
    for screen in (layout, step, edit, dashboard):
        for name, devices, taken in screen():
            budget = next(most for size, most in BUDGET_MS if devices <= size)
            line(f"{name}, {devices:,} devices", _words(taken), f"{budget} ms")
    for name, taken in time_screen():
        line(f"{name}, {OPERATIONS:,} operations", _words(taken), f"{TIME_MS} ms")


def _words(taken: tuple[float, float]) -> str:
    return "{:.1f} ms, longest frame {:.1f} ms".format(*taken)


if __name__ == "__main__":
    report()
