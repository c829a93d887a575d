"""Pictures of the application itself: opened at a size, driven by keys, drawn as it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from shardviz.compiler import Worker
from shardviz.forms.command_line import form_from_options
from shardviz.lessons.course import find
from shardviz.tui.app import ShardvizApp
from shardviz.tui.dialogs.export import screen_svg, strips_of

SMALL, WIDE, LARGE, HUGE = (40, 15), (120, 36), (160, 45), (200, 60)
PATIENCE = 6000
"""Looks at a screen that waits for a compiler, a hundredth of a second each."""
MLP: dict[str, Any] = {"einsum": "In[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", "sizes": "B=8,D=2048,F=8192"}
TPU: dict[str, Any] = {
    "einsum": "bd,df->bf",
    "specs": "XY,_Y->XY",
    "sizes": "b=1024,d=2048,f=8192",
    "targets": "v5e:2x4",
}

DASHBOARD: dict[str, Any] = {
    "mesh": "X=4,Y=2",
    "einsum": "bd,df->bf; bf,fd->bd",
    "specs": "X _, _ Y -> X Y; ?, Y _ -> X _",
    "sizes": "b=32Ki,d=8Ki,f=28Ki",
    "targets": "v6e:2x4",
}
FSDP = "X _, X Y -> X Y; ?, Y X -> X _"
"""The same with each weight split over both axes."""
LAYERS: dict[str, Any] = {
    "mesh": "axis=4",
    "einsum": "be,ef->bf; bf,fg->bg; bg,gh->bh; bh,hi->bi",
    "specs": "axis _, _ axis; ?, _ axis; ?, _ axis; ?, _ axis",
    "sizes": "b=16384,e=16384,f=16384,g=16384,h=16384,i=16384",
    "targets": "v4:2x2x1,v5e:2x2",
}


@dataclass(frozen=True)
class Picture:
    """One screen of the application.

    `problem` are options of `shardviz tui`, `lesson` is the name of a lesson; `keys` are pressed once every
    target in `awaited` has answered, and the picture is drawn once it shows `shows`. `from_compiler`: it
    depends on the compilers' versions.
    """

    screen: str
    problem: dict[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = WIDE
    awaited: tuple[str, ...] = ()
    shows: str = ""
    from_compiler: bool = False
    lesson: str = ""


SCREENS = {
    "tui-layout": Picture("layout", MLP, ("p", "right", "m")),
    "tui-plan": Picture("plan", MLP, awaited=("shardy", "cpu"), from_compiler=True),
    "tui-step": Picture(
        "step", {**MLP, "sizes": "B=4,D=8,F=8"}, ("right", "right"), shows="every value equal"
    ),
    "tui-compiler": Picture(
        "compiler", TPU, ("j",), size=(138, 36), awaited=("v5e:2x4",), from_compiler=True
    ),
    "tui-time": Picture(
        "time",
        LAYERS,
        ("n", "a", "a"),
        awaited=("v4:2x2x1", "v5e:2x2"),
        shows="ms on v5e",
        from_compiler=True,
    ),
    "dashboard": Picture(
        "layout",
        {**DASHBOARD, "specs": FSDP},
        (*["down"] * 9, "right", "Y", "colon", "5", "enter", "5", "a"),
        HUGE,
        ("v6e:2x4",),
        "v6e:2x4 ✓",
        from_compiler=True,
    ),
    "lens": Picture(
        "layout",
        {**DASHBOARD, "specs": FSDP, "targets": "cpu", "machine": "v6e:2x4"},
        ("colon", "5", "enter", "4", "j"),
        LARGE,
        ("cpu",),
        from_compiler=True,
    ),
    "tui-search": Picture(
        "layout",
        {
            "einsum": "btd,df->btf; btf,fd->btd x 80",
            "mesh": "X=16,Y=8",
            "sizes": "b=8,t=4Ki,d=8Ki,f=28Ki",
            "machine": "v5p:4x4x8",
            "targets": "none",
            "backward": "yes",
            "remat": "layer",
            "optimizer": "adam",
        },
        ("R",),
        shows="results",
    ),
    "tui-small": Picture("layout", MLP, ("right",), SMALL),
    "lesson-predict": Picture("layout", lesson="four-cases", keys=("n", "down"), size=(80, 16)),
    "lesson-reveal": Picture(
        "step", lesson="all-gather-hop-by-hop", keys=("n", "down", "enter"), shows="every value equal"
    ),
    "lesson-change": Picture(
        "layout",
        lesson="rows-columns-replicas",
        keys=("n", *("enter", "n") * 4, "n", "h", *("down",) * 4, "right", "backspace"),
    ),
}


def draw(name: str, worker: Worker) -> str:
    """The SVG of a picture. Raises `TimeoutError` where a target does not answer."""
    return asyncio.run(_draw(name, SCREENS[name], worker))


def app_of(picture: Picture, worker: Worker) -> ShardvizApp:
    """The application as it opens, nothing moves in it.

    A lesson is opened as by a guest: how far anybody has come in it is not in the picture.
    """
    lesson = find(picture.lesson) if picture.lesson else None
    form = form_from_options(**picture.problem)
    app = ShardvizApp(form, picture.screen, worker, lesson is not None, lesson)
    app.animation_level = "none"
    return app


async def until_answered(app: ShardvizApp, pilot: Pilot[Any], targets: Collection[str]) -> None:
    """Wait for the plan, the answers of these targets, and for what a screen loads beside itself."""
    for _ in range(PATIENCE):
        await pilot.pause(0.01)
        answers = app.state.queries.answers
        answered = {each for each in answers if answers[each].state == "answered"}
        if {*targets} <= answered and app.state.resolved.planning is None:
            break
        app.state.queries.ask_now()
    else:
        raise TimeoutError(f"no answer from {', '.join(targets)}")
    await app.workers.wait_for_complete()
    await pilot.pause()


async def until_shown(app: ShardvizApp, pilot: Pilot[Any], text: str) -> Sequence[Strip]:
    """The lines of the screen as soon as one of them has the text."""
    for _ in range(PATIENCE):
        await pilot.pause(0.01)
        if any(text in strip.text for strip in strips_of(app.screen)):
            for field in app.screen.query(Input):
                field.cursor_blink = False
            # Its scrollbar may come a moment later.
            await pilot.pause()
            return strips_of(app.screen)
    raise TimeoutError(f"no {text!r} on screen")


async def _draw(name: str, picture: Picture, worker: Worker) -> str:
    app = app_of(picture, worker)
    async with app.run_test(size=picture.size) as pilot:
        await until_answered(app, pilot, picture.awaited)
        await pilot.press(*picture.keys)
        return screen_svg(await until_shown(app, pilot, picture.shows), name)
