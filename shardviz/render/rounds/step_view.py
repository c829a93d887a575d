"""A collective from BEFORE over its rounds to AFTER, and its cost; one round, its buffers as a table; a
summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby

from rich.text import Text

from shardviz.collectives.algorithms import ALGORITHMS
from shardviz.collectives.trace import MAX_PIECES
from shardviz.errors import QuestionError, plural
from shardviz.render.caption import DeviceLabels, coordinates, repetition
from shardviz.render.lines import GAP, SHELF_GAP, sentence, sentences, shelve, trimmed, visible
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.device_values import final_picture, shards_picture
from shardviz.render.rounds.pieces import (
    FORMS,
    MAX_ROWS,
    NAMES,
    BufferRow,
    BufferRows,
    FrameStats,
    TableShape,
    cell_text,
    chunk_columns,
    chunk_name,
    empty_note,
)
from shardviz.render.rounds.round_traffic import RoundTraffic, round_words, sends_line
from shardviz.render.rounds.step_notes import after_words, cost_lines, duration, headline, marks
from shardviz.render.tables import Cell, as_text, columns, table
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
    head = ("", "rounds", "sends per round", ">per device", ">per round")
    lines = columns(rows, width, 0, head)
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


def legend_lines(
    run: CollectiveRun, drawn: Sequence[BufferTable], width: int, palette: Palette
) -> list[Text]:
    """The marks that pictures have, and whether colours repeat."""
    said = marks(run, [(table.stats, table.shape) for table in drawn])
    lines = sentence(said, width, style="dim")
    groups = max((len(table.groups) for table in drawn), default=1)
    notes = (note.plain for note in repetition(groups * run.schedule.chunks, palette))
    return lines + sentences(notes, width, style="dim")


class BufferTable:
    """Frame `number` of some groups: a line that names a group's chunks, then one a device; the first and the
    last of more than `max_rows`, and of chunks that do not fit. `moving`: arrivals are marked, and rows end
    with what was sent. `ended`: only what is part of the result."""

    def __init__(
        self,
        run: CollectiveRun,
        number: int,
        groups: Sequence[int],
        width: int,
        palette: Palette,
        max_rows: int = MAX_ROWS,
        moving: bool = True,
        ended: bool = False,
    ) -> None:
        self._run, self.groups, self.page = run, groups, width
        self._members = visible(run.schedule.pattern.group_size, max_rows)
        positions = [run.groups[group][member] for group in groups for member in self._shown]
        self._labels = DeviceLabels(run.mesh, positions, palette, width // 4)
        # The coordinates of each group along the other axes; nothing where there is only one group.
        others = [axis for axis in run.mesh.axis_names if axis not in run.operation.axes]
        others = others if len(run.groups) > 1 else []
        self._titles = [coordinates(run.mesh, run.groups[group][0], palette, others) for group in groups]
        for title in self._titles:
            title.truncate(width // 4, overflow="ellipsis")
        self._gutter = max(self._labels.width, *(title.cell_len for title in self._titles)) + GAP
        every = chunk_columns(run)
        fits = (width - self._gutter + 1) // 4
        chosen = visible(len(every), fits)
        if None in chosen:
            chosen = visible(len(every), min(fits - 1, 6))
        self._columns = [None if index is None else every[index] for index in chosen]
        traffic = RoundTraffic(run, number) if moving else None
        self._maker = BufferRows(run, run.frames[number], self._columns, palette, moving, ended, traffic)

    @property
    def _shown(self) -> list[int]:
        return [member for member in self._members if member is not None]

    @property
    def summarised(self) -> bool:
        return None in self._members or None in self._columns

    @cached_property
    def shape(self) -> TableShape:
        """The richest form in which the table fits the page. What was sent gives way, but only to richer
        numbers."""
        stats, lengths = self.stats, dict(self.stats.labels())
        passing = max((sum(len(cell.name) + 3 for cell in row.passing) for row in stats.rows), default=0)
        passing += 3 * bool(passing)  # with the line before what waits to go on
        sent = max((len(row.sent) for row in stats.rows), default=0)
        sent += GAP * bool(sent)
        rooms = [self._room(tail) for tail in dict.fromkeys((passing + sent, passing, 0))]
        forms = [next((form for form in lengths if lengths[form] + 2 <= room), NAMES) for room in rooms]
        form = next(name for name in forms if FORMS[name].rank == FORMS[forms[-1]].rank)
        cell = min(lengths.get(form, 1) + 2, self._room(0))
        # The column after the last cell if all are that wide; that of a gap is one.
        end = self._gutter + len(self._columns) * (cell + 1) - (cell - 1) * self._columns.count(None) - 1
        used = end + passing
        return TableShape(form, cell, used + GAP if sent and used + sent <= self.page else None)

    @cached_property
    def _rows(self) -> dict[tuple[int, int], BufferRow]:
        return {
            (group, member): self._maker.row(group, member) for group in self.groups for member in self._shown
        }

    @cached_property
    def stats(self) -> FrameStats:
        return FrameStats([*self._rows.values()])

    def lines(self) -> list[Text]:
        run, schedule = self._run, self._run.schedule

        def heading(group: int, column: int) -> str:
            """The name of a chunk, or the device of a slot."""
            if schedule.pattern.kind != "all_to_all":
                return chunk_name(run, column, group)
            member = column // schedule.pattern.pieces(schedule.chunks)
            return str(run.mesh.device_id(run.groups[group][member]))

        lines = []
        cell = self.shape.cell
        for group, title in zip(self.groups, self._titles, strict=True):
            names = (None if chunk is None else heading(group, chunk) for chunk in self._columns)
            cells = [Text(" " if name is None else name[:cell].center(cell), DIM) for name in names]
            lines.append(self._line(title, cells))
            lines[-1].rstrip()
            for member in self._members:
                if member is None:
                    lines.append(Text("⋮".rjust(self._gutter - GAP), DIM))
                    continue
                row = self._rows[group, member]
                held = iter(row.cells)
                cells = [
                    Text("…", DIM) if column is None else cell_text(next(held), cell, FORMS[self.shape.form])
                    for column in self._columns
                ]
                lines.append(self._line(self._labels.of(run.groups[group][member]), cells))
                self._append_rest(lines[-1], row)
        return lines

    def _line(self, label: Text, cells: Sequence[Text]) -> Text:
        return Text.assemble(label, " " * (self._gutter - label.cell_len), Text(" ").join(cells))

    def _room(self, tail: int) -> int:
        """The width of cells that leaves `tail` columns of the page after them."""
        gaps = self._columns.count(None)
        room = self.page - tail - self._gutter - 2 * gaps + 1
        return max(room // max(len(self._columns) - gaps, 1) - 1, 3)

    def _append_rest(self, line: Text, row: BufferRow) -> None:
        for number, cell in enumerate(row.passing):
            text = cell.text(len(cell.name) + 2, FORMS[NAMES])
            rest = f" +{len(row.passing) - number}"
            needed = 1 + text.cell_len + (len(rest) if number + 1 < len(row.passing) else 0)
            if line.cell_len + 3 + needed > self.page:
                if line.cell_len + len(rest) <= self.page:
                    line.append(rest, DIM)
                break
            line.append(" " if number else "  │ ", DIM).append_text(text)
        if self.shape.sent_at is not None and row.sent:
            line.append(" " * (self.shape.sent_at - line.cell_len)).append(row.sent, DIM)
        line.truncate(self.page)


def shown_groups(run: CollectiveRun) -> range:
    """The groups that are drawn: all if they fit, else the first."""
    size = run.schedule.pattern.group_size
    count = len(run.groups) if run.frames.before is not None else 1
    return range(count if count * size <= MAX_ROWS else 1)
