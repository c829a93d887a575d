"""Pages of a collective that is played: lines above the picture of a round, the picture, lines below it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import isclose
from typing import Literal

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import array_text, axes_text
from shardviz.render.lines import GAP, GLUE, Canvas, cut, sentence
from shardviz.render.palette import DONE, NEXT_PHASE, TO_DO, Palette
from shardviz.render.rounds.device_picture import FULL, SOME, DevicePicture, GroupBoxes
from shardviz.render.rounds.matmul_picture import MARKS as MATMUL_MARKS, MatmulPicture
from shardviz.render.rounds.pieces import NOTHING, FrameStats, TableShape, drawn_columns, sampled
from shardviz.render.rounds.round_traffic import LONGEST, link_lines, round_words
from shardviz.render.rounds.step_notes import SEPARATOR, after_words, duration, marks
from shardviz.stepping.collective_matmul import BlockwiseMatmul
from shardviz.stepping.collective_run import CollectiveRun, PreparedRun
from shardviz.units import human_bytes, rate, seconds, shaped, times

View = Literal["devices", "matmul", "values"]
LOW = 18
"""Lines below which a picture leaves room for nothing but the most important."""
HIGH = 28
"""Lines from which the bytes on each link stand below the picture."""
BARS = f"{FULL * 4} chunks that are there, in order   {SOME} some of them   {NOTHING} none"


class PlayerPage:
    """A collective on a page of `width` columns, `height` lines. `links_of` is the target whose links they
    are, `verdict` the lines for JAX's verdict, `matmul` one that can run beside it."""

    def __init__(
        self,
        prepared: PreparedRun,
        view: View,
        group: int,
        width: int,
        height: int,
        palette: Palette,
        lead: str,
        links_of: str | None = "",
        verdict: int = 1,
        matmul: BlockwiseMatmul | None = None,
    ) -> None:
        self._run, self._drawn, self._view, self._group = prepared.run, prepared.drawn, view, group
        self._width, self._height, self.palette, self._lead = width, height, palette, lead
        self._links_of, self._matmul = links_of, matmul
        self.verdict_lines = verdict
        self.is_low = height < LOW
        self._last: tuple[tuple[int, int | None], Canvas] | None = None
        self.lens: int | None = None
        """The position in the mesh of the device that is marked; None where none is."""
        self._said: dict[int, Text] = {}
        self._noted: dict[int, list[Text]] = {}

    def head(self, number: int, speed: str) -> list[Text]:
        """The collective, the progress, the round in words; before and after, what every device has."""
        run, width = self._run, self._width
        # Rounds that are alike have one sentence.
        key = number
        if number and isinstance(run.chunk_bytes, int):
            phase, within = run.schedule.phase(number)
            key = number - within if phase.alike else number
        if key not in self._said:
            self._said[key] = words_line(run, number, width)
        state = state_line(run, self._drawn, number, width)
        lines = [title_line(run, width, self.palette, self._lead), progress_line(run, number, width, speed)]
        if self.is_low:
            return [*lines, state if state is not None else self._said[key]]
        return [*lines, self._said[key], state if state is not None else Text()]

    def foot(self, number: int, verdict: Sequence[Text]) -> list[Text]:
        """The cost, JAX's verdict and the marks: the beginning of each, and as much more as fits."""
        parts = self._parts(number, verdict)
        least = sum(kept for _, kept in parts)
        lines: list[Text] = []
        spare = self._height - len(self.head(number, "")) - self.canvas(number).height - 1 - least
        for part, kept in parts:
            more = max(0, min(len(part) - kept, spare))
            spare -= more
            lines += part[: kept + more]
        return lines

    def _parts(self, number: int, verdict: Sequence[Text]) -> list[tuple[Sequence[Text], int]]:
        """The bytes on each link, the cost, the verdict and the marks, each with its fewest lines."""
        cost, notes = cost_summary(self._run, self._links_of, number, self._width), self._notes(number)
        links: list[Text] = []
        if self._height >= HIGH and self._view == "devices":
            links = link_lines(self._run, self._group, number, self._width)
        if self.is_low:
            return [(links, 0), (cost, 1), (verdict, 0), (notes, 0)]
        return [
            (links, len(links)),
            (cost, min(len(cost), 2)),
            (verdict, len(verdict)),
            (notes, min(len(notes), 2)),
        ]

    def canvas(self, number: int) -> Canvas:
        """The picture of a round; the last one is kept."""
        key = number, self.lens
        if self._last is None or self._last[0] != key:
            # The member that is marked, unless it belongs to another group. Many places take long to list.
            places = {} if self.lens is None else self._run.places
            group, member = places.get(self.lens or 0, (-1, -1))
            lens = member if group == self._group else None
            canvas: Canvas
            if self._view == "matmul" and self._matmul is not None:
                # A column is the scrollbar's.
                page = self._width - 1, self.palette
                canvas = MatmulPicture(self._matmul, self._group, number, *page, lens)
            else:
                canvas = DevicePicture(self._boxes, number, lens)
            self._last = key, canvas
        return self._last[1]

    def position_at(self, number: int, x: int, y: int) -> int | None:
        """The position in the mesh of the device at a column of a line; None where there is none."""
        canvas = self.canvas(number)
        member = canvas.member_at(x, y) if isinstance(canvas, DevicePicture | MatmulPicture) else None
        return None if member is None else self._run.groups[self._group][member]

    @cached_property
    def _boxes(self) -> GroupBoxes:
        least = sum(kept for _, kept in self._parts(0, [Text()] * self.verdict_lines))
        beside = len(self.head(0, "")) + least + (not self.is_low)
        room = self._height - beside
        boxes = GroupBoxes(self._drawn, self._group, self._width, room, self.palette)
        if boxes.height <= room:
            return boxes
        # A column is the scrollbar's.
        return GroupBoxes(self._drawn, self._group, self._width - 1, room, self.palette)

    def _notes(self, number: int) -> list[Text]:
        """The marks of all frames, with a sum that is seen in this one, and what other groups do."""
        count = self._count(number)
        if count not in self._noted:
            if self._view == "matmul":
                words = MATMUL_MARKS
            elif self._look is None:
                words = BARS if self._drawn.followed else "too many chunks to track"
            else:
                form = max((form for form, _ in self._look.labels()), default=0)
                words = marks(self._drawn, [(self._look, TableShape(form))], count)
            others, said = len(self._run.groups) - 1, [words]
            if others:
                does = "does" if others == 1 else "do"
                words = f"group {self._group + 1} of {others + 1}: {plural(others, 'other')} {does} the same"
                said.append(words.replace(" ", GLUE))
            self._noted[count] = sentence(SEPARATOR.join(filter(None, said)), self._width, style="dim")
        return self._noted[count]

    @cached_property
    def _look(self) -> FrameStats | None:
        columns = drawn_columns(self._drawn)
        return None if columns is None else sampled(self._drawn, self._group, columns, self.palette)

    def _count(self, number: int) -> int:
        """Of how many addends a sum is that a round shows; the smallest one where it shows none."""
        pattern = self._drawn.schedule.pattern
        if self._look is None or not pattern.reduces:
            return 0
        size, frame = pattern.group_size, self._drawn.frames[number]
        added = frame.sends is not None and bool(frame.sends.reduce.any())
        pieces = (piece for member in range(min(size, 16)) for piece in frame.pieces(member))
        counts = {piece.count for piece in pieces if piece.count < size or (added and piece.arrived)} - {1}
        return min(counts, default=2)


def title_line(run: CollectiveRun, width: int, palette: Palette, lead: str = "") -> Text:
    """``psum_scatter over Y ring bf16[1024,8192] X_{U_Y}`` after its `lead`, as much as there is room for."""
    layout = run.question.layout
    array = layout.array
    parts = [
        Text.assemble(
            (lead, "dim"),
            (run.operation.name, "bold"),
            " over ",
            axes_text(run.operation.axes, run.mesh, palette),
        ),
        Text(f"by {run.schedule.algorithm}"),
        array_text(array, layout.mesh, palette),
        Text(f"{shaped(array.dtype, array.shape)}, {times(layout.shard_shape)} per device", "dim"),
    ]
    room = width - parts[0].cell_len - GAP - 1
    if len("by ring…") <= room < parts[1].cell_len:
        # Who goes from one algorithm to the next has to see which it is.
        parts[1].truncate(room, overflow="ellipsis")
    return _fitting(parts, width)


def progress_line(run: CollectiveRun, number: int, width: int, playing: str = "") -> Text:
    """A bar with the place where each phase begins; `playing` is the speed."""
    rounds = run.schedule.rounds
    width -= len(playing) + GAP if playing else 0
    where = f"round {number:,} of {rounds:,}".ljust(len(f"round {rounds:,} of {rounds:,}"))
    room = max(4, min(width - len(where) - GAP, 60))
    done = room * number // rounds if rounds else room
    marks = [TO_DO] * room
    marks[:done] = [DONE] * done
    first = 0
    for phase in run.schedule.phases[:-1]:
        first += phase.rounds
        marks[min(room - 1, room * first // rounds)] = NEXT_PHASE
    bar = Text("".join(marks), "dim")
    bar.stylize("not dim bold", 0, done)
    line = Text.assemble((where, "bold"), " " * GAP, bar)
    return line.append(f"{' ' * GAP}{playing}") if playing else line


def words_line(run: CollectiveRun, number: int, width: int) -> Text:
    """The phase, with all of them before the first round, and what is sent in the round."""
    if not run.schedule.rounds:
        return Text("one device: nothing is sent")
    if number:
        phase, _ = run.schedule.phase(number)
        line = Text.assemble((run.phase_name(phase), "bold"), f"  {round_words(run, number)}")
    else:
        phases = dict.fromkeys(map(run.phase_name, run.schedule.phases))
        line = Text(" → ".join(phases), "bold")
    return cut(line, width)


def state_line(run: CollectiveRun, drawn: CollectiveRun, number: int, width: int) -> Text | None:
    """Every device's data before the first round and after the last, as in `drawn`; None between."""
    pattern, smaller = run.schedule.pattern, []
    if drawn.question.layout != run.question.layout:
        shape = times(drawn.question.layout.array.shape)
        smaller = [Text(f"shown on a smaller array, {shape}", "dim")]
    if not number:
        has = "each device has one addend" if pattern.reduces else "each device has one shard"
        if pattern.kind == "broadcast":
            has = "one device has the data for all"
        line = Text.assemble(("BEFORE", "bold"), f"  {has}")
        shape = f", {times(run.question.layout.shard_shape)}"
        if line.cell_len + len(shape) <= width:
            line.append(shape)
        return _fitting([line, *smaller], width)
    if number < run.schedule.rounds:
        return None
    after = drawn.frames.after
    if after is None:
        return Text.assemble(("AFTER", "bold"), "  every device has its result")
    dtype = drawn.result_dtype
    parts = [Text.assemble(("AFTER", "bold"), f"  {shaped(dtype, after.shape[1:])} per device")]
    parts += [Text(words) for words in after_words(drawn)]
    if drawn.final is not None:
        result = f"  {shaped(dtype, drawn.final.shape)} {drawn.question.final_spec}"
        parts.append(Text.assemble(("FINAL RESULT", "bold"), result))
    return _fitting([*parts, *smaller], width)


def cost_summary(run: CollectiveRun, links_of: str | None, number: int, width: int) -> list[Text]:
    """``sent 12 KiB of 24 KiB per device, min 24 KiB``: the cost up to a round; rounds and time. `links_of`
    is the target whose links they are; empty for assumed ones, None where times are not shown."""
    bound, rounds = run.bound, run.schedule.rounds
    if run.cost is None:
        fewest = f"min {human_bytes(bound.wire_bytes)}, {plural(bound.rounds, 'round')}"
        return [_fitting([Text("too many rounds to sum", "dim"), Text(fewest, "dim")], width)]
    cost = run.cost
    waiting, least = run.timeline.waiting, bound.wire_bytes
    latency, formula = rounds * run.used_links.spec.latency, run.closed_form.seconds
    # What a plan's price, which is the formula's, leaves out; or that price, where another way is played.
    is_told = isclose(cost.seconds(rounds), formula + latency, rel_tol=0.01)
    is_other = not isclose(cost.seconds(rounds), formula, rel_tol=0.01)
    sent = Text.assemble(
        ("sent ", "dim"),
        (human_bytes(cost.bytes(number)).rjust(LONGEST), "bold"),
        f" of {human_bytes(cost.bytes(rounds))}{' per device' if width >= 44 else ''}",
        (", optimal" if least == cost.bytes(rounds) else f", min {human_bytes(least)}", "dim"),
    )
    took = Text.assemble(
        ("time ", "dim"),
        (duration(cost.seconds(number) if number else 0.0, 0).rjust(LONGEST), "bold"),
        f" of {duration(cost.seconds(rounds), waiting)}",
        (f", {seconds(latency)} of it latency" if is_told and latency else "", "dim"),
    )
    on = f"on {links_of}" if links_of else "as given" if run.links.machine is None else "assumed"
    links = Text(f"{run.links.topology} {on}, {rate(run.links.spec.bandwidth)} per {run.links.each}", "dim")
    rest = [Text(f"min {plural(bound.rounds, 'round')}", "dim")] * (bound.rounds < rounds)
    if links_of is None:
        return flowed([sent, *rest], width)
    if is_other and not is_told:
        rest.insert(0, Text(f"{seconds(formula)} by formula", "dim"))
    return flowed([sent, took, links, *rest], width)


def flowed(parts: list[Text], width: int) -> list[Text]:
    """All parts, as many to a line as fit."""
    lines: list[Text] = []
    for part in parts:
        if lines and lines[-1].cell_len + GAP + 1 + part.cell_len <= width:
            lines[-1].append(" " * (GAP + 1)).append_text(part)
        else:
            lines.append(_fitting([part], width))
    return lines


def _fitting(parts: list[Text], width: int) -> Text:
    """The first parts of a line, as many as fit; the first is cut where it must be."""
    line = parts[0].copy()
    if line.cell_len > width:
        return cut(line, width)
    for part in parts[1:]:
        if line.cell_len + GAP + 1 + part.cell_len > width:
            break
        line.append(" " * (GAP + 1)).append_text(part)
    return line
