"""The lines of a user's program, each with the value that every device has after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import sentence, trimmed
from shardviz.render.palette import DIM, Palette
from shardviz.render.rounds.array_lines import devices_picture
from shardviz.units import shaped

if TYPE_CHECKING:
    from shardviz.reports.lowered_module import ProgramValues


def values_view(values: ProgramValues, width: int, palette: Palette) -> list[Text]:
    """A line of source, what it makes, and below that an array for all devices that hold the same."""
    page: list[Text] = []
    before, mesh = ("", 0), values.mesh
    for each in values.lines:
        if before != (each.file, each.line):
            source = Text(f"{each.line:>4}  {each.text}", "bold")
            source.truncate(width, overflow="ellipsis")
            page += [Text(), source]
        before = each.file, each.line
        said = [f"{each.name}:" * bool(each.name), shaped(each.dtype, each.shape), each.spec, each.note]
        if each.is_cut:
            said.append(f"the first numbers of {shaped(each.dtype, each.shard_shape)} per device")
        page += sentence("  ".join(filter(None, said)), width, 6, style=DIM)
        held = ((mesh.device_id(place), part, None) for place, part in each.devices)
        page += [Text.assemble(" " * 6, line) for line in devices_picture(held, width - 6)]
    ran = f"run by JAX {values.jax_version} on {plural(mesh.size, 'simulated CPU device')}, as one program"
    page += [Text(), *sentence(f"{ran} that also returns the value of each line", width, style=DIM)]
    return [trimmed(line, palette) for line in page[1:]]
