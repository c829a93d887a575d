"""Pictures of the application itself: opened at a size, driven by keys, drawn as it stands."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from shardviz.compiler import Worker
from shardviz.forms.command_line import form_from_options
from shardviz.lessons.course import find
from shardviz.tui.app import ShardvizApp
from shardviz.tui.dialogs.export import screen_svg, strips_of

WIDE, SMALL = (120, 36), (40, 15)
PATIENCE = 6000
"""Looks at a screen that waits for a compiler, a hundredth of a second each."""
MLP: dict[str, Any] = {"einsum": "In[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]", "sizes": "B=8,D=2048,F=8192"}
TPU: dict[str, Any] = {
    "einsum": "bd,df->bf",
    "specs": "XY,_Y->XY",
    "sizes": "b=1024,d=2048,f=8192",
    "targets": "v5e:2x4",
}

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
    "tui-step": Picture("step", {**MLP, "sizes": "B=4,D=8,F=8"}, ("right", "right"), shows="✓"),
    "tui-compiler": Picture("compiler", TPU, ("j",), awaited=("v5e:2x4",), from_compiler=True),
    "tui-time": Picture(
        "time",
        LAYERS,
        ("n", "a", "a"),
        awaited=("v4:2x2x1", "v5e:2x2"),
        shows="ms on v5e",
        from_compiler=True,
    ),
    "tui-model": Picture(
        "layout",
        MLP,
        ("M", *("down",) * 6, "enter", *("backspace",) * 11, *"tensor data", "enter"),
        shows="what moves",
    ),
    "tui-small": Picture("layout", MLP, ("right",), SMALL),
    "lesson-predict": Picture("layout", lesson="four-cases", keys=("n", "down")),
    "lesson-reveal": Picture(
        "step", lesson="all-gather-hop-by-hop", keys=("n", "down", "enter"), shows="✓ every"
    ),
    "lesson-change": Picture(
        "layout",
        lesson="rows-columns-replicas",
        keys=("n", *("enter", "n") * 3, "n", "h", *("down",) * 4, "right", "backspace"),
    ),
}


def draw(name: str, worker: Worker) -> str:
    """The SVG of a picture. Raises `TimeoutError` where a target does not answer."""
    return asyncio.run(_draw(name, SCREENS[name], worker))


async def _draw(name: str, picture: Picture, worker: Worker) -> str:
    lesson = find(picture.lesson) if picture.lesson else None
    # A lesson is opened as by a guest: how far anybody has come in it is not in the picture.
    app = ShardvizApp(
        form_from_options(**picture.problem), picture.screen, worker, lesson is not None, lesson
    )
    app.animation_level = "none"
    async with app.run_test(size=picture.size) as pilot:
        for _ in range(PATIENCE):
            await pilot.pause(0.01)
            answers = app.state.queries.answers
            if {*picture.awaited} <= {each for each in answers if answers[each].state == "answered"}:
                break
            app.state.queries.ask_now()
        else:
            raise TimeoutError(f"{name}: no answer from {picture.awaited}")
        # A screen loads what it needs beside itself.
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press(*picture.keys)
        for _ in range(PATIENCE):
            await pilot.pause(0.01)
            strips = strips_of(app.screen)
            if any(picture.shows in strip.text for strip in strips):
                # Its scrollbar may come a moment later.
                await pilot.pause()
                return screen_svg(strips_of(app.screen), name)
        raise TimeoutError(f"{name}: no {picture.shows!r}")
