"""Two plans side by side: their times, bytes, memory and collectives, then the steps of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rich.text import Text

from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.lines import GAP, columns, records, sentence, shelve, table
from shardviz.render.palette import Palette
from shardviz.render.plan_view import headline, named_specs_text, plan_view
from shardviz.units import flops, human_bytes, seconds

LEAST_WIDTH = 56
"""Columns that the steps of a plan take at least beside those of another."""
RIGHT = frozenset({1, 2, 3})


def versus_view(first: PlanCost, second: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The problem and the machine, a row for each figure, then the steps."""
    from shardviz.render.cost_view import machine_words

    return [
        *headline(first.plan.problem, width, palette),
        *sentence(machine_words(first), width, lead="time  "),
        Text(),
        *versus_table(first, second, width),
        Text(),
        *_steps(first, second, width, palette),
    ]


def versus_table(
    first: PlanCost, second: PlanCost, width: int, names: tuple[str, str] | None = None
) -> list[Text]:
    """A row for each figure: of the first plan, of the second, and how many times as much that is. Without
    `names` the plans are called by their specs."""
    names = names or (named_specs_text(first.plan), named_specs_text(second.plan))
    layers = first.plan.problem.layers
    of_layers = Text(f"one of {layers:,} layers" if layers > 1 else "", "dim")
    rows = [[of_layers, Text(names[0], "bold"), Text(names[1], "bold"), Text()]]
    for title, value, written in _FIGURES:
        old, new = value(first), value(second)
        rows.append([Text(title), Text(written(old)), Text(written(new)), Text(_ratio(old, new), "dim")])
    last = [Text("collectives"), *(Text(_collectives(cost)) for cost in (first, second))]
    # The longest row does not take the figures out of their columns.
    lines = columns([*rows, last], width, right=RIGHT) or [
        *table(rows, width, right=RIGHT),
        *records([last], width),
    ]
    for number, cost in enumerate((first, second), 1):
        if cost.unknown:
            lines += sentence(
                f"some times of the {'first' if number == 1 else 'second'} are not known: "
                f"{cost.missing_figure}; the totals leave them out",
                width,
            )
        if cost.over_bytes:
            which = "first" if number == 1 else "second"
            over = human_bytes(cost.over_bytes)
            lines += sentence(f"the {which} does not fit: it is {over} over", width)
    return lines


_FIGURES: tuple[tuple[str, Callable[[PlanCost], float], Callable[[float], str]], ...] = (
    ("in sequence", lambda cost: cost.serial_seconds, seconds),
    ("overlapped", lambda cost: cost.overlapped_seconds, seconds),
    ("compute", lambda cost: cost.compute_seconds, seconds),
    ("communication", lambda cost: cost.communication_seconds, seconds),
    ("sent", lambda cost: cost.wire_bytes, lambda value: human_bytes(int(value))),
    ("work", lambda cost: cost.flops, lambda value: flops(int(value))),
    ("memory", lambda cost: cost.peak_bytes, lambda value: human_bytes(int(value))),
)
"""Title, value and words of each figure."""


def _ratio(old: float, new: float) -> str:
    """``1.8 ×``, or that they are the same; nothing against nothing."""
    if old == new:
        return "same"
    return f"× {new / old:.2g}" if old and new else ""


def _collectives(cost: PlanCost) -> str:
    """``2 all_gather, psum``, or none."""
    counts = Counter(step.op for step in cost.plan.steps if step.op not in LOCAL_OPS)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items()) or "none"


def _steps(first: PlanCost, second: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The steps of both plans: side by side where there is room, else one below the other."""
    room = (width - GAP - 1) // 2
    each = room if room >= LEAST_WIDTH else width
    blocks = [
        [
            *records([[Text(named_specs_text(cost.plan), "bold")]], each),
            *plan_view(cost.plan, each, palette),
        ]
        for cost in (first, second)
    ]
    if each == room:
        return shelve(blocks, width, GAP + 1)
    return [*blocks[0], Text(), *blocks[1]]
