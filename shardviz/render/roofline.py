"""The roofline of a plan as bars: its arithmetic, its memory and its links; and its totals in words."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.cost_view import (
    alternatives_view,
    faster_words,
    machine_words,
    threshold_words,
    total_words,
)
from shardviz.render.lines import GAP, bar, sentence, sentences
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import INDENT
from shardviz.units import seconds

CROSSING = "┊"
LABELS, VALUES, LEAST, MOST = 9, 9, 4, 48


def roofline(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The seconds of a device's arithmetic, its memory and its links as bars on one scale: the longest bounds
    the plan, where all overlaps. The arithmetic ends at `CROSSING` on every line: what goes beyond is not
    compute-bound. A figure that is the time of one step stands in its row alone. Nothing where the time of a
    step is unknown."""
    if cost.unknown:
        return []
    said = {seconds(step.seconds or 0.0) for step in cost.steps}
    local = [step for step in cost.steps if not step.is_collective]
    lanes, mesh, layers = palette.lanes, cost.plan.problem.mesh, cost.layers
    parts = {
        "compute": [(sum(step.compute_seconds or 0.0 for step in local), Style(color=lanes["matmul"]))],
        "HBM": [(sum(step.hbm_seconds or 0.0 for step in local), Style(color=lanes["memory"]))],
        "links": [
            (duration, palette.axis(mesh, axes[0]) if axes else DIM)
            for axes, duration in cost.communication_by_axes.items()
        ],
    }
    totals = {name: sum(size for size, _ in pieces) for name, pieces in parts.items()}
    most, room = max(totals.values()), min(width - LABELS - VALUES - GAP, MOST)
    if not most or room < LEAST:
        return []
    crossing = LABELS + min(round(room * totals["compute"] / most), room - 1)
    lines = []
    for name, pieces in parts.items():
        if not totals[name]:
            continue
        line = Text(f" {name:<{LABELS - 1}}", DIM)
        for size, style in pieces:
            line.append(bar(size, most, room), style)
        line.pad_right(LABELS + room - line.cell_len)
        if name != "compute":
            line = Text.assemble(line[:crossing], (CROSSING, "bold"), line[crossing + 1 :])
        value = seconds(totals[name] * layers)
        line = line[: LABELS + room].append(f" {value:>{VALUES}}" * (value not in said))
        line.rstrip()
        lines.append(line)
    return lines


def below_table(
    cost: PlanCost, width: int, palette: Palette, is_full: bool, has_totals: bool, has_alternatives: bool
) -> list[Text]:
    """The roofline of the plan, the size above which it is compute-bound, and how much faster another would
    be; with `is_full` all totals, and every plan that others would choose, as far as they are known."""
    lines = [Text(), *roofline(cost, width, palette)]
    if not is_full:
        bound = threshold_words(cost.thresholds).partition(";")[0].partition(" (now")[0] if has_totals else ""
        fastest = [one.cost for one in cost.alternatives if one.name == "fastest"] if has_alternatives else []
        faster = [faster_words(one, cost).partition(":")[0].removesuffix(".") + "." for one in fastest]
        unknown = total_words(cost)[:1] if cost.unknown else []
        return lines + sentences([*unknown, bound, *faster], width, INDENT)
    words = "Looking for the plans that others would choose …"
    others = sentence(words, width, INDENT, style="dim")
    if has_alternatives:
        others = alternatives_view(cost, width, palette)
    time = sentence(machine_words(cost), width, lead="time  ")
    return [*others, *lines, *time, *sentences(total_words(cost) if has_totals else (), width, INDENT)]
