"""A collective from BEFORE over its rounds to AFTER, and its cost; one round; a summary; every device's shard
as JAX prints it, each number in the colour of its chunk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain, groupby

import numpy as np
from rich.style import Style
from rich.text import Text

from shardviz.collectives.algorithms import ALGORITHMS
from shardviz.collectives.trace import MAX_PIECES
from shardviz.errors import QuestionError, plural
from shardviz.render.caption import DeviceLabels
from shardviz.render.lines import (
    GAP,
    SHELF_GAP,
    Cell,
    as_text,
    fitting_columns,
    sentence,
    sentences,
    shelve,
    table,
    trimmed,
    visible,
)
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.array_lines import SHARD_LINES, StyleOf, array_lines, digits_of
from shardviz.render.rounds.buffer_table import MAX_ROWS, BufferTable, shown_groups
from shardviz.render.rounds.pieces import chunk_style, empty_note
from shardviz.render.rounds.round_traffic import round_words, sends_line
from shardviz.render.rounds.step_notes import after_words, cost_lines, duration, headline, legend_lines
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.units import human_bytes, shaped

SHORT, FOR_TWO = 38, 80
"""Lines of a page, beyond which its rounds take half its width each, and the columns that this takes. A
command adds two lines."""
MAX_RUNS = 12


def step_view(
    run: CollectiveRun, width: int, palette: Palette, number: int | None = None, verbose: bool = False
) -> list[Text]:
    """BEFORE, every round, AFTER and the result where they fit a screen or two, else a summary; drawn closer
    on more than `SHORT` lines, unless `verbose`, which has all costs, too. `number` shows one round (0:
    before any); `QuestionError` for a round that does not exist."""
    algorithm = ALGORITHMS[run.schedule.algorithm]
    said = [f"{algorithm.name}: {algorithm.summary}"]
    said += ["the numbers 0, 1, 2, … are only examples"] * run.question.counted
    above = [*headline(run, width, palette), *sentences(said, width, style="dim"), Text()]
    size, groups = run.schedule.pattern.group_size, len(shown_groups(run))
    is_small = size <= MAX_ROWS and run.schedule.rounds * groups * (size + 2) <= 200
    is_drawn = number is None and is_small
    is_drawn = is_drawn and not BufferTable(run, 0, [0], width, palette, MAX_ROWS).summarised
    if number is not None:
        lines = one_round(run, number, width, palette)
    elif is_drawn:
        lines = [*_before(run, width, palette, MAX_ROWS), Text(), *_rounds(run, width, palette)]
        lines += [*_after(run, width, palette, MAX_ROWS), *_final(run, width, palette)]
    else:
        if run.question.shards is None and not run.followed:
            words = f"there are more than {MAX_PIECES:,} chunks: their places are not tracked"
            lines = [*round_table(run, width), *sentence(words, width, style="dim")]
        else:  # the rounds in a table, between some of the devices before and after them
            lines = [*_before(run, width, palette, 6), Text(), *round_table(run, width), Text()]
            lines += [*_after(run, width, palette, 6), *_final(run, width, palette)]
            hint = "--round N shows one round" + ("" if run.unlisted() else ", --json all of them")
            lines += [*sentence(empty_note(run), width, style="dim"), *sentence(hint, width, style="dim")]
    below = [Text(), *cost_lines(run, width, verbose)]
    if is_drawn and not verbose and width >= FOR_TWO and len(above) + len(lines) + len(below) > SHORT:
        # BEFORE beside AFTER, then the rounds, two beside one another.
        half = (width - SHELF_GAP) // 2
        ends = [draw(run, half, palette, MAX_ROWS) for draw in (_before, _after)]
        lines = [*shelve(ends, width), Text(), *_rounds(run, width, palette, half)[:-1]]
        after, final = run.frames.after, run.final
        if after is None or final is None or final.shape != after.shape[1:]:
            lines += _final(run, width, palette)
    return [trimmed(line, palette) for line in [*above, *lines, *below]]


def one_round(run: CollectiveRun, number: int, width: int, palette: Palette) -> list[Text]:
    if number:
        phase, _ = run.schedule.phase(number)
        lines = sentence(run.phase_name(phase), width, lead=f"round {number} of {run.schedule.rounds}  ")
        lines += sentence(round_words(run, number), width, 2)
        load = run.timeline[number - 1]
        said = f"{human_bytes(load.bytes)} total"
        if load.busiest_link is not None:
            named = [*map(str, map(run.mesh.device_id, run.groups[0])), "switch"]
            ends = "→".join(named[node] for node in load.busiest_link)
            said += f", {human_bytes(load.busiest_bytes)} on the busiest link ({ends})"
        if load.waiting:
            said += f", {plural(load.waiting, 'message')} must wait for a link"
        said += f"; {duration(load.seconds, load.waiting)}"
        lines += sentence(said, width, 2, style="dim")
    else:
        lines = [Text("before any round", "bold")]
    lines += sentence(empty_note(run), width, 2, style="dim")
    groups = shown_groups(run)
    drawn = BufferTable(run, number, groups, width, palette, MAX_ROWS)
    lines += drawn.lines()
    return [*lines, *_other_groups(run, groups, width), *legend_lines(run, [drawn], width, palette)]


def _before(run: CollectiveRun, width: int, palette: Palette, rows: int) -> list[Text]:
    title = Text("BEFORE", "bold")
    if run.frames.before is not None:
        return [title, *shards_picture(run, False, width, palette, rows)]
    drawn = BufferTable(run, 0, [0], width, palette, rows, moving=False)
    return [title, *drawn.lines()]


def _after(run: CollectiveRun, width: int, palette: Palette, rows: int) -> list[Text]:
    after = run.frames.after
    if after is None:
        drawn = BufferTable(run, run.schedule.rounds, [0], width, palette, rows, moving=False, ended=True)
        return [Text("AFTER", "bold"), *drawn.lines()]
    title = [Text("AFTER", "bold"), Text(f"{shaped(run.result_dtype, after.shape[1:])} per device")]
    title += [Text(said) for said in after_words(run)]
    return [*table([title], width), *shards_picture(run, True, width, palette, rows)]


def _final(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    after = run.frames.after
    if run.final is not None:
        heading = [Text("FINAL RESULT", "bold"), Text(shaped(run.result_dtype, run.final.shape))]
        heading.append(Text(run.question.final_spec))
        return [Text(), *table([heading], width), *final_picture(run, width, palette)]
    if after is not None and after.ndim == 1 and len(run.question.final_positions) > 1:
        said = "no FINAL RESULT: shard_map joins results along a dimension, and these are scalars"
        return [Text(), *sentence(said, width, style="dim")]
    return []


def _rounds(run: CollectiveRun, width: int, palette: Palette, limit: int = 0) -> list[Text]:
    """Every phase's heading and rounds, side by side as far as they fit; `limit`: columns of each round."""
    headings: list[list[Text]] = []
    blocks: list[list[list[Text]]] = []
    every: list[BufferTable] = []
    groups = shown_groups(run)
    first = 1
    for name, phases in groupby(run.schedule.phases, key=run.phase_name):
        numbers = range(first, first + sum(phase.rounds for phase in phases))
        first = numbers.stop
        if not numbers:
            continue
        words = [round_words(run, number) for number in numbers]
        alike = len(set(words)) == 1
        heading = plural(len(numbers), "round") + (f"; {words[0]}" if alike else "")
        headings.append(sentence(heading, width, lead=f"{name}  "))
        drawn = [BufferTable(run, number, groups, limit or width, palette, MAX_ROWS) for number in numbers]
        bodies = [picture.lines() for picture in drawn]
        under: list[list[Text]] = [[] for _ in numbers]
        if not alike:
            wide = max(line.cell_len for body in bodies for line in body)
            room = limit or max(wide, 36)
            under = [sentence(said, room if 2 * room < width else width) for said in words]
        # Pictures beside one another stand at one height.
        deep = max(map(len, under))
        blocks.append(
            [
                [Text(f"round {number}", "bold"), *said, *[Text()] * (deep - len(said)), *body, Text()]
                for number, said, body in zip(numbers, under, bodies, strict=True)
            ]
        )
        every += drawn
    if limit:
        headings, blocks = [[*chain(*headings)]], [[*chain(*blocks)]]
    shelves = zip(headings, (shelve(phase, width) for phase in blocks), strict=True)
    lines = [line for heading, shelf in shelves for line in (*heading, *shelf)]
    notes = [*_other_groups(run, groups, width), *sentence(empty_note(run), width, style="dim")]
    notes = [*notes, *legend_lines(run, every, width, palette)]
    return [*lines, *notes, Text()] if notes else lines


def _other_groups(run: CollectiveRun, groups: range, width: int) -> list[Text]:
    more = len(run.groups) - len(groups)
    if not more:
        return []
    said = f"{plural(more, 'other group')} of {plural(run.schedule.pattern.group_size, 'device')}"
    return sentence(f"{said} {'does' if more == 1 else 'do'} the same at the same time", width, style="dim")


def round_table(run: CollectiveRun, width: int) -> list[Text]:
    """Alike rounds in a row on a line, of many the first and last. `QuestionError` for too many to add up."""
    if run.timeline.too_long:
        problem = f"{run.schedule.algorithm} on {plural(run.mesh.size, 'device')}: {run.timeline.too_long}"
        raise QuestionError(problem, "use a smaller mesh, fewer axes in --axis, or --round N")
    rows: list[list[Cell]] = []
    groups = [(key, [*spans]) for key, spans in groupby(_spans(run), key=lambda span: span[1:])]
    shown = groups if len(groups) <= MAX_RUNS else [*groups[: MAX_RUNS - 2], groups[-1]]
    for (phase, words, sent, time), spans in shown:
        first, last = spans[0][0][0], spans[-1][0][1]
        numbers = f"{first:,}" if first == last else f"{first:,}–{last:,}"
        rows.append([(phase, "bold"), numbers, words, sent, (time, "dim")])
    head = ("", "rounds", "sends per round", "per device", "per round")
    lines = fitting_columns(rows, width, 0, {3, 4}, head)
    if lines is None:
        lines = []
        for name, which, *rest in ([as_text(cell).plain for cell in row] for row in rows):
            said = "{}: {}, {} per device, {} per round".format(name, *rest)
            lines += sentence(said, width, lead=f"round{'s' if '–' in which else ''} {which}  ")
    if len(groups) > MAX_RUNS:
        left_out = groups[-1][1][0][0][0] - shown[-2][1][-1][0][1] - 1
        lines += sentence(f"{plural(left_out, 'round')} before the last not shown", width, style="dim")
    return lines


def _spans(run: CollectiveRun) -> Iterator[tuple[tuple[int, int], str, str, str, str]]:
    """(first and last number, phase, words, bytes, time) of rounds. Rounds that are alike are looked at once;
    of many that are not, the first ones and the last."""
    schedule, timeline = run.schedule, run.timeline
    first = 1
    for phase in schedule.phases:
        last = first + phase.rounds - 1
        spans = [(first, last)] if phase.alike else [(number, number) for number in range(first, last + 1)]
        # Rounds that are not alike are looked at one by one, 64 at most, and 2**20 sends.
        most = max(3, min(64, 2**20 // max(1, len(phase.sends(phase.rounds // 2)))))
        if len(spans) > most:
            spans = [*spans[: most - 2], (first + most - 2, last - 1), (last, last)]
        name = run.phase_name(phase)
        for start, stop in spans:
            if stop > start and not phase.alike:
                yield (start, stop), name, "…", "", ""
                continue
            load = timeline[start - 1]
            words = sends_line(phase.sends(start - first), schedule.pattern, run.operation.axes)
            sent, time = human_bytes(load.device_bytes), duration(load.seconds, load.waiting)
            yield (start, stop), name, words, sent, time
        first = last + 1


def shards_picture(
    run: CollectiveRun, ended: bool, width: int, palette: Palette, max_devices: int = MAX_ROWS
) -> list[Text]:
    """BEFORE (or, `ended`, AFTER): a row a device; shards of several lines stand beside one another."""
    values = run.frames.after if ended else run.frames.before
    assert values is not None
    places = visible(run.mesh.size, max_devices)
    shown = [index for index in places if index is not None]
    named = DeviceLabels(run.mesh, shown, palette, width // 4)
    labels = [named.of(index) for index in shown]
    gutter = named.width + GAP
    room = width - gutter
    digits = max(digits_of(values[index], room, SHARD_LINES) for index in shown)
    striped = not ended and run.schedule.pattern.reduces
    blocks = [
        array_lines(values[index], _styles(run, index, ended, palette), room, digits, striped)
        for index in shown
    ]
    if values.ndim < 3 or all(len(block) == 1 for block in blocks):
        lines = [
            Text.assemble(label if not number else " " * label.cell_len, " " * GAP, row)
            for label, block in zip(labels, blocks, strict=True)
            for number, row in enumerate(block)
        ]
        if None in places:
            first = sum(map(len, blocks[: places.index(None)]))
            lines.insert(first, Text("⋮".rjust(gutter - GAP), DIM))
        return lines
    stacks = [[label, *block, Text()] for label, block in zip(labels, blocks, strict=True)]
    if None in places:
        stacks.insert(places.index(None), [Text("…", DIM)])
    return shelve(stacks, width)[:-1]


def final_picture(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    """The result of `shard_map`, put together from those of `run.question.final_positions`."""
    values = run.final
    assert values is not None
    period = max(values.size // len(run.question.final_positions), 1)
    of_device = cache(lambda number: _styles(run, run.question.final_positions[number], True, palette))

    def style(index: int) -> Style | None:
        shard_style: Style | None = of_device(index // period)(index % period)
        return shard_style

    lines = 2 * SHARD_LINES
    return array_lines(values, style, width, digits_of(values, width, lines), False, lines, period)


def _styles(run: CollectiveRun, place: int, ended: bool, palette: Palette) -> StyleOf:
    cuts = run.frames.cuts
    values = run.frames.after if ended else run.frames.before
    assert cuts is not None
    assert values is not None
    group, member = run.places[place]
    chunks = run.held_chunks(member, ended)
    index = (cuts.end if ended else cuts.start)[chunks]
    owner = np.full(values[place].size, -1)
    used = index >= 0
    owner[index[used]] = np.broadcast_to(chunks[:, None], index.shape)[used]

    def style(number: int) -> Style | None:
        chunk = int(owner[number])
        return None if chunk < 0 else chunk_style(palette, run, chunk, group)

    return style
