"""Shades for a figure in which devices differ: a glyph and a colour each, from the least to the most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.style import Style
from rich.text import Text

from shardviz.render.palette import PLAIN, SHADES, Palette
from shardviz.units import exact_bytes, human_bytes, seconds, whole_bytes

if TYPE_CHECKING:
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.sharding import Layout

Tint = Literal["data", "memory", "sent", "time"]
TINTS: tuple[Tint, ...] = ("data", "memory", "sent", "time")
"""By what cells are coloured, in the order of the key."""


@dataclass(frozen=True)
class Heat:
    """The shades between the `least` and the `most` of a figure, bytes or `seconds`; both differ."""

    least: float
    most: float
    palette: Palette
    is_seconds: bool = False

    def shade(self, value: float) -> tuple[str, Style]:
        """The glyph and the style of a cell."""
        part = (value - self.least) / (self.most - self.least)
        level = min(len(SHADES) - 1, int(part * len(SHADES)))
        return SHADES[level], self.palette.heat(level)

    def legend(self) -> Text:
        """``○ 0 B … ● 64 KiB``."""
        ends = ((*self.shade(end), self.words(end)) for end in (self.least, self.most))
        (low, low_style, least), (high, high_style, most) = ends
        return Text.assemble((low, low_style), f" {least} … ", (high, high_style), f" {most}")

    def words(self, value: float) -> str:
        """A figure as people read it."""
        return seconds(value) if self.is_seconds else human_bytes(int(value))

    def exact(self, value: float) -> str:
        """The figure of one device."""
        return seconds(value) if self.is_seconds else exact_bytes(int(value))


Shade = Callable[[int], tuple[str, Style]]
"""The glyph and the style of a member of a group."""


def layout_heat(layouts: Sequence[Layout], palette: Palette) -> Heat | None:
    """The shades of the bytes that devices hold of some arrays; None where of each all hold the same."""
    ranges = [layout.held_range for layout in layouts]
    if all(least == most for least, most in ranges):
        return None
    return Heat(min(least for least, _ in ranges), max(most for _, most in ranges), palette)


def layout_words(tint: Tint, layouts: Sequence[Layout], cost: PlanCost) -> str:
    """A sentence on what every device holds, sends or takes; of what they differ in, how much at most."""
    if tint == "memory":
        held = ", ".join(map(_held, layouts))
        if layout_heat(layouts, PLAIN) is None:
            padding = ", padding included" if cost.plan.problem.padding else ""
            return f"Every device holds {held}{padding}."
        return f"Devices hold at most {held}."
    if tint == "sent":
        if not cost.wire_bytes:
            return "The plan sends nothing."
        sent = f"{whole_bytes(cost.wire_bytes)} in the collectives of the plan"
        if any(each.step.op == "ppermute" for each in cost.steps):
            return f"A device sends at most {sent}: by ppermute some send nothing. Step shows each."
        return f"Every device sends {sent}."
    if cost.unknown:
        return f"The time is not known: {cost.missing_figure}."
    compute, moving = seconds(cost.compute_seconds), seconds(cost.communication_seconds)
    return f"Every device computes for {compute} and takes part in collectives for {moving}."


def _held(layout: Layout) -> str:
    only = layout.spec.only_device
    where = "" if only is None else f" on device {only} alone"
    return f"{human_bytes(layout.bytes_per_device)} of {layout.array.name}{where}"
