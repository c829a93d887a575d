"""Plans against one another: two side by side, by their figures and their steps, and many ranked by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.notation.spec_string import SpecPart, write_named_specs, write_specs
from shardviz.planner.plan import LOCAL_OPS, Plan
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.pricing.priced_plan import PricedPlan, overtaking
from shardviz.planner.problem import Problem
from shardviz.planner.ranking import Candidate
from shardviz.render.caption import collectives_text
from shardviz.render.cost_view import machine_words, overtaking_words
from shardviz.render.lines import GAP, sentence, shelve
from shardviz.render.palette import BEST, Palette
from shardviz.render.plan_pages import headline, statement_lines
from shardviz.render.plan_view import AT_LEAST, plan_view, time_words
from shardviz.render.tables import Cell, as_text, columns, giving_way, records, table
from shardviz.units import flops, human_bytes, seconds

ORDINALS = ("first", "second")
"""Names of the plans where there is no room for others."""


def versus_view(
    first: PlanCost, second: PlanCost, width: int, palette: Palette, verbose: bool = False
) -> list[Text]:
    """The problem and the machine, a row for each figure, then both plans' steps, side by side if it fits."""
    room = (width - GAP - 1) // 2
    each = room if room >= 56 else width
    blocks = [
        [
            *records([[Text(named_specs_text(cost.plan), "bold")]], each),
            *plan_view(cost.plan, each, palette, cost.steps, verbose),
        ]
        for cost in (first, second)
    ]
    return [
        *headline(first.plan.problem, width, palette),
        *sentence(machine_words(first), width, lead="time  "),
        Text(),
        *versus_table(first, second, width),
        Text(),
        *(shelve(blocks, width, GAP + 1) if each == room else [*blocks[0], Text(), *blocks[1]]),
    ]


def versus_table(
    first: PlanCost, second: PlanCost, width: int, names: tuple[str, str] | None = None
) -> list[Text]:
    """A row for each figure: of both plans, called by `names` or else their specs, and their ratio."""
    names = names or (named_specs_text(first.plan), named_specs_text(second.plan))
    figures: list[list[Cell]] = []
    for title, value, written in _FIGURES:
        old, new = value(first), value(second)
        partial = [title in OF_ALL_STEPS and bool(cost.unknown) for cost in (first, second)]
        told = [AT_LEAST * flag + written(number) for flag, number in zip(partial, (old, new), strict=True)]
        ratio = "same" if old == new else ""
        if old != new and old and new:
            ratio = f"× {new / old:.{3 if f'{new / old:.2g}' == '1' else 2}g}"
        figures.append([title, *told, (ratio * (not any(partial)), "dim")])
    last: list[Cell] = ["collectives", *map(collective_counts, (first, second))]
    lines = _in_columns(figures, last, names, first.plan.problem.layers, width)
    times = [(cost.serial_seconds, cost.overlapped_seconds) for cost in (first, second)]
    for other, faster in ((0, 1), (1, 0)):
        if not (first.unknown or second.unknown) and overtaking([times[other], times[faster]]):
            named = ORDINALS[other], ORDINALS[faster]
            lines += sentence(f"the {named[0]} is faster without overlap, the {named[1]} with overlap", width)
    for number, cost in enumerate((first, second)):
        if cost.unknown:
            lines += sentence(
                f"some times of the {ORDINALS[number]} are unknown: "
                f"{cost.missing_figure}; the totals are lower bounds",
                width,
            )
        if cost.over_bytes:
            over = human_bytes(cost.over_bytes)
            lines += sentence(f"the {ORDINALS[number]} does not fit: {over} too much", width)
    return lines


def _in_columns(
    figures: list[list[Cell]], last: list[Cell], names: tuple[str, str], layers: int, width: int
) -> list[Text]:
    """The table under the plans' names, collectives in or below it; else the names above, without ratios."""
    of_layers = f"one of {layers:,} layers" if layers > 1 else ""
    head = (of_layers, *map(">{}".format, names), ">")
    if texts := columns([*figures, last], width, 0, head):
        return texts
    if texts := columns(figures, width, 0, head):
        return [*texts, *records([last], width)]
    lines = []
    for called, name, done in zip(ORDINALS, names, last[1:], strict=True):
        lines += sentence(f"{name}: {done}", width, lead=f"{called}  ")
    return lines + table([row[:3] for row in figures], width, 0, (of_layers, *map(">{}".format, ORDINALS)))


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
OF_ALL_STEPS = ("no overlap", "overlapped", "compute")
"""Figures that are lower bounds where the time of a step is not known, and have no ratio."""


def collective_counts(cost: PricedPlan) -> str:
    """``2 all_gather, psum``, or none."""
    counts = Counter(step.op for step in cost.plan.steps if step.op not in LOCAL_OPS)
    return ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts.items()) or "none"


HEADINGS = (">", "", "specs", ">time", "bound", ">sent", ">memory", ">work", "collectives", "case")
GIVING_WAY = giving_way("case", "collectives", "work", "bound", "memory", "sent")
"""The cases follow from the collectives, and these from the specs, so they go first; then work and bound."""
TOO_LARGE = "!"


def ranking_view(
    problem: Problem,
    candidates: Sequence[Candidate],
    width: int,
    palette: Palette,
    limit: int,
    verbose: bool = False,
) -> list[Text]:
    """The first `limit` candidates, what marks mean, how many more there are; if `verbose`, assumptions."""
    shown = candidates[:limit]
    rows = _ranking_cells(shown, palette)
    without = GIVING_WAY[: 2 if verbose else 5]
    first = candidates[0].cost
    words = []
    if any(one.cost.unknown for one in candidates):
        words.append(f"{BEST} Pareto-optimal in bytes sent, memory and compute; not ranked by time.")
    elif any(one.best for one in candidates):
        words.append(f"{BEST} Pareto-optimal: nothing faster uses less memory.")
    if any(one.cost.over_bytes for one in candidates):
        words.append(f"{TOO_LARGE} does not fit in {human_bytes(first.limit_bytes or 0)}.")
    if verbose:
        words += ["Times are without overlap."] * (not any(one.cost.unknown for one in candidates))
        words += [f"On {machine_words(first)}.", "All figures are per device."]
    else:
        assumed = ", assumed" if first.machine.assumed else ""
        words.append(f"Per device, on {first.machine.name}{assumed}.")
    times = [(one.cost.serial_seconds, one.cost.overlapped_seconds) for one in shown if not one.cost.unknown]
    words += filter(None, [overtaking_words(times if len(times) == len(shown) else [])])
    if more := len(candidates) - len(shown):
        words.append(f"{plural(more, 'more sharding')}: --limit {len(candidates)} or --json shows all.")
    return [
        *headline(problem, width, palette),
        *statement_lines(problem, width),
        Text(),
        *(columns(rows, width, 0, HEADINGS, without) or records(rows, width)),
        *sentence(" ".join(words), width, style="dim"),
    ]


def ranking_rows(candidates: Sequence[Candidate], width: int, palette: Palette) -> list[Text]:
    """The heads of the columns that fit, then a line for each candidate."""
    rows = _ranking_cells(candidates, palette)
    texts = columns(rows, width, 0, HEADINGS, GIVING_WAY)
    return texts or [Text("specs  time", "bold"), *(Text("  ").join(map(as_text, row[2:4])) for row in rows)]


def _ranking_cells(candidates: Sequence[Candidate], palette: Palette) -> list[list[Cell]]:
    return [
        [
            (str(number), "dim"),
            (BEST if candidate.best else "", "bold"),
            (specs_text(cost.plan), "bold"),
            time_words(cost.serial_seconds, not cost.unknown),
            "" if cost.unknown else cost.bound,
            human_bytes(cost.plan.wire_bytes),
            human_bytes(cost.peak_bytes) + TOO_LARGE * bool(cost.over_bytes),
            flops(cost.flops),
            collectives_text(cost.plan, palette),
            ("; ".join(cost.plan.cases), "dim"),
        ]
        for number, candidate in enumerate(candidates, 1)
        for cost in (candidate.cost,)
    ]


def specs_text(plan: Plan) -> str:
    """The specs of a plan's operands and result as `--specs` takes them: ``XY,Y_->X_``."""
    parts = [
        SpecPart(tuple(operand.spec for operand in part.operands), part.result.spec)
        for part in plan.problem.parts
    ]
    parts[-1] = SpecPart(parts[-1].operands, plan.result_spec)
    return write_specs(parts)


def named_specs_text(plan: Plan) -> str:
    """The specs of a plan as `--specs` takes them: by the names of the arrays of a program."""
    problem = plan.problem
    if problem.is_chain:
        return specs_text(plan)
    given = {array.name: array.spec for array in (*problem.arguments, problem.result)}
    return write_named_specs({name: spec for name, spec in given.items() if spec is not None and spec.axes})
