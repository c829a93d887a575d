"""What pictures of a collective need said: their marks, and what happens after the last round."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rich.text import Text

from shardviz.render.layouts.picture import repetition
from shardviz.render.lines import GLUE, sentence
from shardviz.render.palette import PARTIAL, Palette
from shardviz.render.rounds.buffer_picture import NOTHING, BufferPicture, Shape
from shardviz.render.rounds.chunk_names import chunk_name
from shardviz.render.rounds.piece_label import ARRIVED, EMPTY, FORMS, Cell
from shardviz.stepping.collective_run import CollectiveRun

SEPARATOR = "   "
ARROW = re.compile(r"([^ →]+)→([0-9]+)(?: |$)")
COUNT = re.compile(r"(?:Σ|of )([0-9]+)$")


def legend_lines(
    walk: CollectiveRun,
    drawn: Sequence[BufferPicture],
    width: int,
    palette: Palette,
    shape: Shape | None = None,
) -> list[Text]:
    """The marks that pictures have, and whether colours repeat; `shape` where it is not each one's own."""
    lines = sentence(legend(walk, drawn, shape), width, style="dim")
    groups = max((len(picture.groups) for picture in drawn), default=1)
    for note in repetition(groups * walk.schedule.chunks, palette):
        lines += sentence(note.plain, width, style="dim")
    return lines


def legend(walk: CollectiveRun, drawn: Sequence[BufferPicture], shape: Shape | None = None) -> str:
    """``▸ has just arrived   ╱ partial sum``: an entry for each mark that is there."""
    return marks(walk, [(picture, shape or picture.shape) for picture in drawn])


class Drawn(Protocol):
    """What is told about pictures with cells: see `BufferPicture`."""

    @property
    def cells(self) -> Iterable[Cell]: ...
    @property
    def vacant(self) -> bool: ...
    @property
    def passing(self) -> bool: ...
    @property
    def sent(self) -> str: ...


def marks(walk: CollectiveRun, drawn: Sequence[tuple[Drawn, Shape]], count: int = 0) -> str:
    """`legend`, of anything that is drawn in a shape; `count` is the sum that is named, 0 for the largest."""
    return SEPARATOR.join(entry.replace(" ", GLUE) for entry in _entries(walk, drawn, count))


def after_words(walk: CollectiveRun) -> Iterator[str]:
    """What the operation does beyond the rounds: a mean's division, zeros where nothing arrived."""
    size, pattern = walk.schedule.pattern.group_size, walk.schedule.pattern
    if walk.operation.name == "pmean":
        yield f"every total ÷ {size}"
    if pattern.kind == "permute" and len({target for _, target in pattern.perm}) < size:
        yield "0 on devices to which nobody sends"
    if walk.operation.name == "ragged_all_to_all" and _padded(walk):
        yield "0 in rows that nobody fills"


def _padded(walk: CollectiveRun) -> bool:
    """Whether some result has elements that no chunk fills."""
    cuts, size = walk.frames.cuts, walk.schedule.pattern.group_size
    if cuts is None or walk.frames.after is None:
        return False
    elements = walk.frames.after[0].size
    return any(int(cuts.sizes[walk.held_chunks(member, True)].sum()) < elements for member in range(size))


def _entries(walk: CollectiveRun, drawn: Sequence[tuple[Drawn, Shape]], count: int) -> Iterator[str]:
    pairs = [(cell, FORMS[shape.form]) for picture, shape in drawn for cell in picture.cells]
    full = [(cell, form) for cell, form in pairs if not cell.empty]
    combined = {"pmax": "largest", "pmin": "smallest"}.get(walk.operation.name, "")
    if any(cell.arrived and cell.needed for cell, _ in full):
        yield f"{ARRIVED} has just arrived"
    if any(cell.partial and cell.needed for cell, _ in full):
        yield f"{PARTIAL} {f'{combined} so far' if combined else 'partial sum'}"
    counts = [COUNT.search(cell.label(form) or "") for cell, form in full if cell.count]
    most = max((int(found[1]) for found in counts if found), default=0)
    if most:
        most = count or most
        yield f"of {most} the {combined} of {most}" if combined else f"Σ{most} the sum of {most}"
    if any(not cell.needed for cell, _ in full):
        yield "( ) no longer needed"
    if any(picture.vacant for picture, _ in drawn):
        yield f"{NOTHING} not here"
    if any(cell.empty for cell, _ in pairs):
        yield f"{EMPTY} empty"
    if any(picture.passing for picture, _ in drawn):
        yield "│ waiting to go on"
    for picture, each in drawn:
        arrow = ARROW.match(picture.sent) if each.sent_at is not None else None
        if arrow:
            yield f"{arrow[0].strip()} sent {arrow[1]} to device {arrow[2]}"
            break
    if walk.schedule.pattern.kind == "all_to_all":
        yield from _slots(walk)
    if any(cell.wraps and form.addends for cell, form in full):
        yield f"{walk.result_dtype} wraps around"


def _slots(walk: CollectiveRun) -> Iterator[str]:
    """How the names of an all-to-all are to be read, and its columns."""
    schedule, group = walk.schedule, walk.groups[0]
    if len(group) > 1:
        name = chunk_name(schedule.pattern, schedule.chunks, schedule.pattern.pieces(schedule.chunks))
        sender, receiver = (walk.mesh.device_id(position) for position in group[:2])
        yield f"{name} from device {sender} to device {receiver}"
    yield "columns: the device it goes to, or came from"
