"""The figure by which the devices of a group are shaded after a round: bytes held or sent, or seconds."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from shardviz.collectives.values import Ints, Reals
from shardviz.render.heat import Heat, Shade, Tint
from shardviz.render.minimap import LENS
from shardviz.render.palette import DIM, Palette
from shardviz.stepping.collective_run import PreparedRun

WORDS = {"memory": "held", "sent": "sent so far", "time": "busy so far"}
"""The names of the figures: bytes of chunks that a device has and still needs, bytes that it has sent, and
seconds of the rounds in which it has sent or received."""


@dataclass(frozen=True)
class RoundHeat:
    """The figure `tint` of every member after round `number`: one of `figures` each, None where they are not
    known."""

    prepared: PreparedRun
    tint: Tint
    number: int
    palette: Palette

    def figures(self) -> Ints | Reals | None:
        """Bytes, or seconds."""
        run = self.prepared.run
        if self.tint == "memory":
            held = self.prepared.held_bytes
            return None if held is None else held.after(self.number)
        if run.cost is None or not run.cost.is_exact:
            return None
        return run.cost.busy(self.number) if self.tint == "time" else run.cost.sent(self.number)

    def seen(self, member: int | None) -> tuple[Shade | None, list[Text]]:
        """The shades of the members, None where all are alike; the scale, and the figure of a `member`."""
        figures, name = self.figures(), WORDS[self.tint]
        if figures is None:
            why = "too many chunks to track" if self.tint == "memory" else "too many rounds to add up"
            return None, [Text.assemble((name, "bold"), (f"  {why}", DIM))]
        least, most = figures.min().item(), figures.max().item()
        heat = Heat(least, most, self.palette, self.tint == "time")
        if least == most:
            return None, [Text.assemble((name, "bold"), f"  each device {heat.exact(least)}")]
        words = [Text(name, "bold"), heat.legend()]
        if member is not None:
            words.append(Text.assemble((f"{LENS} ", DIM), (heat.exact(figures[member].item()), "bold")))
        return lambda each: heat.shade(figures[each].item()), words
