"""Two plans side by side: their times, bytes, memory and collectives, then the steps of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from rich.text import Text

from shardviz.planner.plan import LOCAL_OPS
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.render.lines import GAP, Cell, columns, records, sentence, shelve
from shardviz.render.palette import Palette
from shardviz.render.plan_view import headline, named_specs_text, plan_view
from shardviz.units import flops, human_bytes, seconds

LEAST_WIDTH = 56
"""Columns that the steps of a plan take at least beside those of another."""
ORDINALS = ("first", "second")
"""Names of the plans where there is no room for others."""


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
    figures: list[list[Cell]] = []
    for title, value, written in _FIGURES:
        old, new = value(first), value(second)
        figures.append([title, written(old), written(new), (_ratio(old, new), "dim")])
    last: list[Cell] = ["collectives", *map(collective_counts, (first, second))]
    lines = _in_columns(figures, last, names, first.plan.problem.layers, width)
    for number, cost in enumerate((first, second)):
        if cost.unknown:
            lines += sentence(
                f"some times of the {ORDINALS[number]} are not known: "
                f"{cost.missing_figure}; the totals leave them out",
                width,
            )
        if cost.over_bytes:
            over = human_bytes(cost.over_bytes)
            lines += sentence(f"the {ORDINALS[number]} does not fit: it is {over} over", width)
    return lines


def _in_columns(
    figures: list[list[Cell]], last: list[Cell], names: tuple[str, str], layers: int, width: int
) -> list[Text]:
    """The table under the plans' names; where there is no room for those they stand above it, and where there
    is none for how many times as much a figure is, it is left out."""
    of_layers = (f"one of {layers:,} layers" if layers > 1 else "", "dim")

    def fitting(called: tuple[str, str], rows: list[list[Cell]]) -> list[Text] | None:
        head = [of_layers, (called[0], "bold"), (called[1], "bold")]
        return columns([head, *rows], width, 0, {1, 2, 3})

    found = fitting(names, [*figures, last])
    if found is not None:
        return found
    # The longest row does not take the figures out of their columns.
    found = fitting(names, figures)
    if found is not None:
        return [*found, *records([last], width)]
    above = [
        line
        for called, name, done in zip(ORDINALS, names, last[1:], strict=True)
        for line in sentence(f"{name}: {done}", width, lead=f"{called}  ")
    ]
    narrow = [row[:3] for row in figures]
    found = fitting(ORDINALS, figures) or fitting(ORDINALS, narrow)
    head = [of_layers, *((each, "bold") for each in ORDINALS)]
    return [*above, *(found or records([head, *narrow], width))]


_FIGURES: tuple[tuple[str, Callable[[PlanCost], float], Callable[[float], str]], ...] = (
    ("no overlap", lambda cost: cost.serial_seconds, seconds),
    ("overlapped", lambda cost: cost.overlapped_seconds, seconds),
    ("sent", lambda cost: cost.wire_bytes, lambda value: human_bytes(int(value))),
    ("memory", lambda cost: cost.peak_bytes, lambda value: human_bytes(int(value))),
    ("compute", lambda cost: cost.compute_seconds, seconds),
    ("communication", lambda cost: cost.communication_seconds, seconds),
    ("work", lambda cost: cost.flops, lambda value: flops(int(value))),
)
"""Title, value and words of each figure; where there is little room, only the first are seen."""


def _ratio(old: float, new: float) -> str:
    """``1.8 ×``, or that they are the same; nothing against nothing."""
    if old == new:
        return "same"
    if not old or not new:
        return ""
    ratio = f"{new / old:.2g}"
    return f"× {new / old:.3g}" if ratio == "1" else f"× {ratio}"


def collective_counts(cost: PricedPlan) -> str:
    """``2 all_gather, psum``, or none."""
    counts = Counter(step.op for step in cost.plan.steps if step.op not in LOCAL_OPS)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items()) or "none"


def _steps(first: PlanCost, second: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The steps of both plans: side by side where there is room, else one below the other."""
    room = (width - GAP - 1) // 2
    each = room if room >= LEAST_WIDTH else width
    blocks = [
        [*records([[Text(named_specs_text(cost.plan), "bold")]], each), *plan_view(cost.plan, each, palette)]
        for cost in (first, second)
    ]
    if each == room:
        return shelve(blocks, width, GAP + 1)
    return [*blocks[0], Text(), *blocks[1]]
