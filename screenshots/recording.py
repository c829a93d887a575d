"""A recording of the application: keys with time to read, as an asciicast and as an SVG that moves.

The asciicast (v2, https://docs.asciinema.org/manual/asciicast/v2/) has the captions as markers, the SVG under
the screen. The SVG needs no script and loads nothing, so it plays wherever a picture is shown.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from html import escape
from itertools import groupby, takewhile
from time import perf_counter
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from screens import DASHBOARD, Picture, app_of, until_answered, until_shown
from textual.pilot import Pilot

from shardviz.compiler import Worker
from shardviz.render.exports.pictures import ASPECT, THEME
from shardviz.tui.app import ShardvizApp
from shardviz.tui.dialogs.export import strips_of

COMMAND = (
    "shardviz tui 'bd,df->bf; bf,fd->bd' --mesh X=4,Y=2 --specs 'X _, _ Y -> X Y; ?, Y _ -> X _'"
    " --sizes b=32Ki,d=8Ki,f=28Ki --target v6e:2x4"
)
"""Opens the problem of the recording."""
OPENED = Picture("layout", DASHBOARD, size=(154, 42), awaited=("v6e:2x4",))
WIDTH, HEIGHT = OPENED.size


class Act(NamedTuple):
    """Keys, as they are named under the screen, and a caption.

    The screen stays for `rest` seconds after the last key, for `pause` after each of the others. `shows` is
    waited for, off the record. `plays`: the screen moves by itself while it stays.
    """

    label: str
    caption: str
    keys: Sequence[str]
    rest: float
    pause: float = 0.3
    shows: str = ""
    plays: bool = False


ACTS = (
    Act("", "two matmuls on 8 devices: who holds what, the plan, and when it runs", ["1"], 3.2),
    Act("→ ↓", "a block, its slice, and its devices", [*["right"] * 4, *["down"] * 2], 1.0),
    Act(": 5 enter", "device 5, wherever it is", ["colon", "5", "enter"], 2.6, 0.6),
    Act("p ↓", "the problem: what if W1's d were split, too?", ["p", *["down"] * 5], 0.9, 0.12),
    Act("X", "the plan gathers W1 now, and a device keeps a quarter of it", ["X"], 3.0),
    Act("X", "the same for W2's d: fully sharded weights", ["down", "down", "down", "right", "X"], 2.4, 0.15),
    Act("Y", "Out's d over Y: a reduce-scatter in place of the all-reduce", ["down", "Y"], 2.6, 0.4),
    Act(
        "5 a", "the plan, and below it the program that XLA makes for TPUs", ["5", "a"], 4.0, 0.8, "v6e:2x4 ✓"
    ),
    Act("2 ↑", "why each step is there, and what it costs", ["2", "up", "up"], 2.0, 0.5),
    Act("space", "the all-gather itself plays, chunk by chunk", ["space"], 5.2, plays=True),
    Act("end", "every value is what JAX computes", ["end"], 2.4, shows="every value equal"),
    Act("1", "and all of it again", ["1"], 2.2),
)
TYPED_S = 2.0
"""Seconds in which the command is typed."""
LOOKS_A_SECOND = 20

Line = tuple[Segment, ...]


class Frame(NamedTuple):
    """The lines on screen from a time on, the keys that led there, and their caption."""

    time: float
    label: str
    caption: str
    lines: tuple[Line, ...]


def record(
    worker: Worker, acts: Sequence[Act] = ACTS, awaited: Collection[str] = OPENED.awaited
) -> list[Frame]:
    """All frames, the last at the end of the recording. It begins when the `awaited` have answered."""
    return asyncio.run(_recorded(worker, acts, awaited))


async def _recorded(worker: Worker, acts: Sequence[Act], awaited: Collection[str]) -> list[Frame]:
    app = app_of(OPENED, worker)
    app.animation_level = "full"
    frames, time = [*_typed()], TYPED_S
    async with app.run_test(size=OPENED.size) as pilot:
        await until_answered(app, pilot, awaited)
        for act in acts:
            for key in act.keys[:-1]:
                await pilot.press(key)
                await _settle(app, pilot)
                frames.append(_frame(time, act, app))
                time += act.pause
            await pilot.press(act.keys[-1])
            if act.plays:
                frames += [frame async for frame in _played(time, act, app, pilot)]
            else:
                await _settle(app, pilot)
                await until_shown(app, pilot, act.shows)
                frames.append(_frame(time, act, app))
            time += act.rest
    return [*frames, frames[-1]._replace(time=time)]


def _typed() -> Iterator[Frame]:
    """The command as it is typed after a prompt."""
    for typed in range(0, len(COMMAND) + 1, 4):
        line = (Segment("$ ", Style(color="green", bold=True)), Segment(COMMAND[:typed]), Segment("█"))
        yield Frame(typed * TYPED_S / len(COMMAND), "", "", (line, *[()] * (HEIGHT - 1)))


async def _settle(app: ShardvizApp, pilot: Pilot[Any]) -> None:
    """Wait until every pane has drawn what has changed, and what is worked out beside them."""
    for _ in range(3):
        await pilot.pause(0.02)
        await app.workers.wait_for_complete()
    await pilot.pause(0.02)


async def _played(time: float, act: Act, app: ShardvizApp, pilot: Pilot[Any]) -> AsyncIterator[Frame]:
    """Looks at a screen that moves by itself."""
    begin = perf_counter()
    while (passed := perf_counter() - begin) < act.rest:
        yield _frame(time + passed, act, app)
        await pilot.pause(1 / LOOKS_A_SECOND)


def _frame(time: float, act: Act, app: ShardvizApp) -> Frame:
    return Frame(time, act.label, act.caption, tuple(tuple(strip) for strip in strips_of(app.screen)))


def cast_of(frames: Sequence[Frame]) -> str:
    """The asciicast: of each frame the lines that differ from those before."""
    title = "shardviz: one key, and the layout, the plan and the time follow"
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "title": title}
    events: list[tuple[float, str, str]] = [(0.0, "o", "\x1b[?25l\x1b[?7l\x1b[2J")]
    caption, before = "", ((),) * HEIGHT
    for frame in frames:
        if frame.caption != caption:
            caption = frame.caption
            events.append((frame.time, "m", f"{frame.label}  {caption}".strip()))
        if drawn := "".join(map(_redrawn, range(1, HEIGHT + 1), before, frame.lines)):
            events.append((frame.time, "o", drawn))
        before = frame.lines
    events.append((frames[-1].time, "o", "\x1b[?7h\x1b[?25h"))
    lines = (json.dumps((round(time, 3), *event), ensure_ascii=False) for time, *event in events)
    return "\n".join([json.dumps(header), *lines]) + "\n"


def _redrawn(row: int, before: Line, line: Line) -> str:
    """The characters that make a line of the one before, on a row from 1; nothing where they are the same."""
    if line == before:
        return ""
    first, last = _alike(before, line), 0
    if Segment.get_line_length([*before]) == Segment.get_line_length([*line]):
        last = _alike(before[first:][::-1], line[first:][::-1])
    words = "".join(
        (style or Style()).render("".join(each.text for each in alike), color_system=ColorSystem.TRUECOLOR)
        for style, alike in groupby(line[first : len(line) - last], lambda each: each.style)
    )
    column = 1 + Segment.get_line_length([*line[:first]])
    return f"\x1b[{row};{column}H{words}" + ("" if last else "\x1b[K")


def _alike(before: Line, line: Line) -> int:
    """Segments at the beginning that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, line, strict=False)))


SIZE, PITCH = 14, 17
"""Of a character and of a line, in the units of the picture."""
CELL = SIZE * ASPECT
INK, GROUND = (Color.from_triplet(each) for each in (THEME.foreground_color, THEME.background_color))
"""Colours of what has none."""
MARGIN, BAR = 12, 34
"""Units around the screen, and for the caption below it."""
STILL = ": 5 enter"
"""The keys of the frame that is shown where pictures do not move."""
BARS = {char: ((number + 1) / 8, 1.0) for number, char in enumerate("▏▎▍▌▋▊▉█")}
BARS |= {char: (1.0, (number + 1) / 8) for number, char in enumerate("▁▂▃▄▅▆▇")}
"""Characters that are drawn as rectangles, without gaps: the part of their width, from the left, and of their
height, from below."""
WORDS = re.compile(
    "|".join(f"{char}+" for char in BARS) + f"|[^\\s{''.join(BARS)}]+(?: [^\\s{''.join(BARS)}]+)*"
)
_PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}">
<style>
text{{font:{size}px "Fira Code","JetBrains Mono","DejaVu Sans Mono",Menlo,Consolas,monospace;fill:{ink}}}
rect{{shape-rendering:crispEdges}}
.caption{{font-size:18px}}
.keys{{font-weight:bold;fill:{accent}}}
{classes}
@keyframes film{{{keys}}}
@keyframes time{{to{{transform:scaleX(1)}}}}
#film{{animation:film {seconds:g}s step-end infinite}}
#time{{transform:scaleX(0);animation:time {seconds:g}s linear infinite}}
@media (prefers-reduced-motion){{#film,#time{{animation:none}}}}
</style>
<defs>
<clipPath id="window"><rect width="{inner:g}" height="{pitch:g}"/></clipPath>
{lines}
</defs>
<rect width="{width:g}" height="{height:g}" rx="8" fill="{ground}"/>
<g transform="translate({margin} {margin})" clip-path="url(#window)">
<g id="film" transform="translate(0 {still:g})">
{film}
</g>
</g>
<rect id="time" y="{below:g}" width="{width:g}" height="3" fill="{ink}"/>
</svg>
"""


def svg_of(frames: Sequence[Frame]) -> str:
    """A film: the frames below one another, of which a window shows one. Equal lines are drawn once."""
    inner, pitch, end = WIDTH * CELL, HEIGHT * PITCH + BAR, frames[-1].time
    names: dict[Line, str] = {}
    classes: dict[str, str] = {}
    film, keys, still = [], [], 0
    shown = [next(same) for _, same in groupby(frames, lambda frame: frame[1:])]
    for number, frame in enumerate(shown):
        uses = "".join(
            f'<use href="#{names.setdefault(line, f"l{len(names)}")}" y="{row * PITCH}"/>'
            for row, line in enumerate(frame.lines)
            if any(each.text.strip() or _colours(each.style)[1] != GROUND for each in line)
        )
        label = (
            f'<tspan class="keys">{escape(frame.label)}</tspan><tspan dx="14"> </tspan>'
            if frame.label
            else ""
        )
        caption = f'<text class="caption" y="{pitch - 10}">{label}{escape(frame.caption)}</text>'
        film.append(f'<g transform="translate(0 {number * pitch})">{uses}{caption}</g>')
        keys.append(f"{frame.time / end * 100:.3f}%{{transform:translateY({-number * pitch}px)}}")
        if frame.label == STILL:
            still = number
    lines = [f'<g id="{name}">{"".join(_drawn(line, classes))}</g>' for line, name in names.items()]
    return _PAGE.format(
        title="A recording of the application: keys change a sharding, and all screens follow",
        width=inner + 2 * MARGIN,
        height=pitch + MARGIN,
        inner=inner,
        pitch=pitch,
        below=pitch + MARGIN - 3,
        margin=MARGIN,
        size=SIZE,
        ink=INK.get_truecolor().hex,
        ground=GROUND.get_truecolor().hex,
        accent=THEME.ansi_colors[4].hex,
        classes="\n".join(f".{name}{{{rules}}}" for rules, name in classes.items()),
        seconds=end,
        keys="".join(keys),
        still=-still * pitch,
        lines="\n".join(lines),
        film="\n".join(film),
    )


def _drawn(line: Line, classes: dict[str, str]) -> Iterator[str]:
    """The grounds, bars and words of a line, each style as a class of its own."""
    x = 0
    for ground, alike in groupby(line, lambda segment: _colours(segment.style)[1]):
        width = Segment.get_line_length([*alike])
        if ground != GROUND:
            yield _box(x, width, ground)
        x += width
    x = 0
    for style, alike in groupby(line, lambda segment: segment.style or Style()):
        text, ink = "".join(segment.text for segment in alike), _colours(style)[0]
        for found in WORDS.finditer(text):
            at, length, first = x + cell_len(text[: found.start()]), cell_len(found[0]), found[0][0]
            if first in BARS:
                wide, high = BARS[first]
                yield _box(at, length if high < 1 else length - 1 + wide, ink, high)
            else:
                name = classes.setdefault(_rules(style, ink), f"s{len(classes)}")
                place = f'x="{at * CELL:.1f}" y="{SIZE - 1}" textLength="{length * CELL:.1f}"'
                yield f'<text class="{name}" {place}>{escape(found[0], quote=False)}</text>'
        x += cell_len(text)


def _colours(style: Style | None) -> tuple[Color, Color]:
    """Of the characters and of the ground, without dimming."""
    if style is None:
        return INK, GROUND
    ink, ground = style.color or INK, style.bgcolor or GROUND
    return (ground, ink) if style.reverse else (ink, ground)


def _box(x: float, width: float, colour: Color, part: float = 1.0) -> str:
    """Columns of a line in one colour; `part` of its height, from below."""
    top = f' y="{(1 - part) * PITCH:.1f}"' if part < 1 else ""
    place = f'x="{x * CELL:.1f}"{top} width="{width * CELL:.1f}" height="{part * PITCH:g}"'
    return f'<rect {place} fill="{colour.get_truecolor(THEME).hex}"/>'


def _rules(style: Style, ink: Color) -> str:
    """The style in CSS."""
    rules = [f"fill:{ink.get_truecolor(THEME).hex}"]
    rules += ["font-weight:bold"] * bool(style.bold) + ["opacity:.6"] * bool(style.dim)
    return ";".join([*rules, *["text-decoration:underline"] * bool(style.underline)])
