"""The map of a round's picture that is larger than its window: who sends and receives, or has which chunks.

Only the devices that it shows are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from rich.text import Text

from shardviz.render.minimap import LENS, Minimap, Place, Sample
from shardviz.render.palette import DIM, as_letters
from shardviz.render.rounds.buffer_table import BufferTable
from shardviz.render.rounds.device_picture import FULL, SOME, DevicePicture
from shardviz.render.rounds.switch_lanes import SwitchLanes

SENDS, RECEIVES, BOTH, NEITHER = "→", "←", "●", "·"
MOVES = Text(f"{SENDS} sends  {RECEIVES} gets  {BOTH} both  {NEITHER} neither", DIM)
CHUNKS = Text(f"{FULL} has all  {SOME} some  {NEITHER} none", DIM)
ACTIVE = Style(bold=True)

Mapped = DevicePicture | SwitchLanes | BufferTable


def round_map(canvas: Mapped, width: int, height: int) -> Minimap:
    """The map of a picture of boxes or lanes, or of a table, in so many columns and lines."""
    places = canvas.places
    if isinstance(canvas, BufferTable) and canvas.has_cells:
        rows, columns = canvas.size
        # The sample of a region takes as many chunks as that has.
        span = Minimap(rows, columns, _nothing, "", "", width, height).step.column
        return Minimap(rows, columns, _chunks_of(canvas, span), "", "chunk", width, height, CHUNKS)
    return Minimap(places.rows, places.columns, _moves_of(canvas), "", "device", width, height, MOVES)


def lens_mark(canvas: Mapped, member: int | None, style: Style) -> Mapping[Place, tuple[str, Style]]:
    """The mark of a member; none where none is marked."""
    return {} if member is None else {Place(*canvas.places.place(member)): (LENS, style)}


def _moves_of(canvas: Mapped) -> Sample:
    """Show if the device at a place sends or gets something in the round."""
    traffic, places = canvas.traffic, canvas.places

    def sample(place: Place) -> tuple[str, Style] | None:
        member = places.member(*place)
        if member is None:
            return None
        sends, receives = traffic.is_sender(member), traffic.is_receiver(member)
        if not sends and not receives:
            return NEITHER, DIM
        return (BOTH if sends and receives else SENDS if sends else RECEIVES), ACTIVE

    return sample


def _nothing(_place: Place) -> None:
    return None


def _chunks_of(table: BufferTable, span: int) -> Sample:
    """Show how many of so many chunks a device has, in the colour of the first that it has."""

    def sample(place: Place) -> tuple[str, Style]:
        first = place.column // span * span
        held = table.held(place.row, range(first, first + span))
        if not held:
            return NEITHER, DIM
        count = min(span, table.size[1] - first)
        return (FULL if len(held) == count else SOME), as_letters(held[0])

    return sample
