"""A matmul beside a collective: which block every device multiplies in which slot, and when that is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from rich.text import Text

from shardviz.render.caption import DeviceLabels
from shardviz.render.lines import GAP, LineBuilder, cut, sentence
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.pieces import NOTHING, chunk_name, chunk_names, chunk_style
from shardviz.render.rounds.step_notes import headline
from shardviz.stepping.collective_matmul import BlockwiseMatmul
from shardviz.units import seconds

MARKS = "× is multiplied   slot n: after round n of a gather, before round n + 1 of a sum"


class MatmulPicture:
    """Slot `number` of one group as a canvas: which block every device multiplies in which slot, above it the
    sentence on this slot, below it when work and rounds take place. The `lens` is a member that is marked."""

    def __init__(
        self,
        matmul: BlockwiseMatmul,
        group: int,
        number: int,
        width: int,
        palette: Palette,
        lens: int | None = None,
    ) -> None:
        self._matmul, self._group, self._number = matmul, group, number
        self._palette, self._lens = palette, lens
        run = matmul.run
        self._size = run.schedule.pattern.group_size
        self._labels = DeviceLabels(run.mesh, [*run.groups[group]], palette, width // 4)
        self._gutter = self._labels.width + GAP
        self._columns = matmul.rounds + 1
        room = (width - self._gutter) // self._columns - 1
        least = len(chunk_name(run, run.schedule.chunks - 1, group)) + 2
        self._cell = min(max(room, least, 4), 12)
        self.width = max(width, self._gutter + self._columns * (self._cell + 1))
        self._page = width
        self._below = self._bars
        self.height = len(self._above) + 1 + self._size + 1 + len(self._below)

    def line(self, y: int, left: int, right: int) -> Text:
        index = y - len(self._above)
        if index < 0:
            return self._above[y][left:right]
        if index > self._size:
            below = index - self._size - 2
            return self._below[below][left:right] if below >= 0 else Text()
        builder = LineBuilder(left, right)
        pitch = self._cell + 1
        first = max(0, (left - self._gutter) // pitch)
        last = min(self._columns, (right - self._gutter) // pitch + 1)
        member = index - 1
        label = Text("slot", DIM)
        if index:
            position = self._matmul.run.groups[self._group][member]
            label = self._labels.of(position, member == self._lens)
        builder.put_text(0, label)
        for slot in range(first, max(first, last)):
            is_here = slot == self._number
            heading = Text(f"{'▸' * is_here}{slot}".center(self._cell), "bold" if is_here else DIM)
            builder.put_text(self._gutter + slot * pitch, self._block(slot, member) if index else heading)
        text = builder.text()
        text.rstrip()
        return text

    def member_at(self, _x: int, y: int) -> int | None:
        """The member whose row a line belongs to; None where there is none."""
        member = y - len(self._above) - 1
        return member if 0 <= member < self._size else None

    def _block(self, slot: int, member: int) -> Text:
        blocks = self._matmul.blocks(slot, member)
        if not blocks:
            return Text(NOTHING.center(self._cell), DIM)
        names = chunk_names(self._matmul.run, blocks, self._group, self._palette)
        word = f"{names.plain}{'×' if slot <= self._number else ''}"
        if len(word) > self._cell:
            word = f"{len(blocks)}"
        style = chunk_style(self._palette, self._matmul.run, blocks[0], self._group)
        return Text(word.center(self._cell), style if slot <= self._number else DIM)

    @cached_property
    def _above(self) -> list[Text]:
        matmul = self._matmul
        einsum = matmul.einsum.einsum
        assert einsum is not None
        member = 0 if self._lens is None else self._lens
        device = matmul.run.mesh.device_id(matmul.run.groups[self._group][member])
        if self._number > matmul.rounds:
            said = Text("all blocks are multiplied; the remaining rounds distribute the sums")
            return [said, Text()]
        blocks = matmul.blocks(self._number, member)
        if not blocks:
            return [Text(f"device {device} multiplies nothing in this slot"), Text()]
        names = chunk_names(matmul.run, blocks, self._group, self._palette).plain

        def array(name: str, dims: Sequence[str]) -> str:
            return f"{name}[{', '.join(f'{dim}:{names}' if dim == matmul.letter else dim for dim in dims)}]"

        operands = zip(matmul.einsum.operands, einsum.operands, strict=True)
        factors = [array(name, dims) for name, dims in operands]
        result = array(matmul.einsum.array, einsum.result)
        is_sum = matmul.is_gather and matmul.letter in einsum.contracted
        which = "" if matmul.letter else f", part {names} of it"
        line = Text.assemble(
            f"device {device} multiplies ",
            (" × ".join(factors), "bold"),
            f", {'added to' if is_sum else 'which is' if matmul.is_gather else 'its addend of'} ",
            (result, "bold"),
            which,
        )
        return [cut(line, self._page), Text()]

    @property
    def _bars(self) -> list[Text]:
        """The times of the matmul and the rounds, and totals; then those of a gather that is prefetched."""
        matmul = self._matmul
        gather = matmul.run.timeline.seconds
        lines = self._drawn(
            matmul.seconds,
            ("matmul", "█", [slot.work for slot in matmul.slots]),
            ("links", "▒", [slot.sends for slot in matmul.slots]),
        )
        lines += self._totals(("together", matmul.seconds), ("without overlap", matmul.apart_seconds))
        if matmul.before is not None:
            index, before = matmul.before
            total = matmul.prefetched_seconds
            left = matmul.exposed_seconds
            rest = f"{seconds(left)} of it is exposed" if left else "all of it is hidden"
            lines += [Text(), Text(f"or fully prefetched while step {index} multiplies: {rest}")]
            spans = [(0.0, before), (total - matmul.matmul_seconds, total)]
            lines += self._drawn(total, ("matmul", "█", spans), ("links", "▒", [(0.0, gather)]))
            lines += self._totals(
                (f"with step {index} prefetched", total),
                ("block by block", before + matmul.seconds),
                ("without overlap", before + matmul.apart_seconds),
            )
        for line in lines:
            line.truncate(self._page, overflow="ellipsis")
        return lines

    def _drawn(self, total: float, *rows: tuple[str, str, Sequence[tuple[float, float]]]) -> list[Text]:
        """Stretches of time as bars on one scale; none where there is no room."""
        room = self._page - self._gutter
        if room < 20 or total <= 0:
            return []
        lines = []
        for name, mark, spans in rows:
            bar = ["·"] * room
            for number, (begin, end) in enumerate(spans):
                first, last = (round(room * time / total) for time in (begin, end))
                bar[first:last] = mark * (min(last, room) - first)
                if number and last - first >= 4:  # begins a slot's part of the bar
                    bar[first] = "▏"
            lines.append(Text.assemble((name.ljust(self._gutter), "dim"), "".join(bar)))
        return [*lines, Text()]

    def _totals(self, *named: tuple[str, float]) -> list[Text]:
        """``together 1.4 ms   one after the other 2.05 ms``, or below one another: the shortest in bold."""
        least = min(took for _, took in named)
        parts = [
            Text.assemble((f"{name} ", "dim"), (seconds(took), "bold" if took == least else ""))
            for name, took in named
        ]
        line = Text("   ").join(parts)
        return [line] if line.cell_len <= self._page else parts


def matmul_lines(
    matmul: BlockwiseMatmul, width: int, palette: Palette, number: int | None = None
) -> list[Text]:
    """The picture on a page: at a slot, or when all is done."""
    picture = MatmulPicture(matmul, 0, matmul.rounds if number is None else number, width, palette)
    lines = [picture.line(y, 0, width) for y in range(picture.height)]
    return [*headline(matmul.run, width, palette), Text(), *lines, *sentence(MARKS, width, style="dim")]
