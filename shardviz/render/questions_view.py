"""The figures of a question beside its fields, with those of the question before; and questions as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.summary import BESIDE, is_same_question, summary, what_differs
from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.lines import GAP, bar, cut, rule
from shardviz.render.palette import DIM, SIGNS, Palette
from shardviz.render.plan_view import time_words
from shardviz.render.plans_compared import collective_counts
from shardviz.render.problem_picture import GUTTER, LABELS, parts_line
from shardviz.render.tables import columns, giving_way
from shardviz.units import human_bytes

VALUES = 8
"""Columns of most figures: ``99.9 MiB``, ``99.9 µs``."""
FIGURES: tuple[tuple[str, Callable[[PlanCost], str]], ...] = (
    ("time", lambda cost: time_words(cost.layers_seconds, not cost.unknown)),
    ("sent", lambda cost: human_bytes(cost.wire_bytes * cost.layers)),
    ("memory", lambda cost: human_bytes(cost.layers_peak_bytes)),
)
HEADINGS = (*(f">{name}" for name, _ in FIGURES), "collectives")
LEAST = 18
"""Columns of a question's name, for which figures give way."""
MARK = "▸"
"""Stands before the question that is shown now."""


def figures_beside(
    resolved: ResolvedProblem,
    before: ResolvedProblem | None,
    width: int,
    height: int,
    palette: Palette,
    is_beside_plan: bool = False,
) -> list[Text]:
    """The time, then bytes and memory, each with what it was in the question
    `before`; nothing where they do not fit. Beside a plan with one collective, its row has the bytes."""
    cost = resolved.cost
    state = "of the last valid problem" if resolved.faults else "planning …"
    lines = [rule([state] if resolved.faults or resolved.planning is not None else [], width)]
    for label, written in FIGURES:
        was = ""
        if before is not None and written(before.cost) != written(cost):
            was = f"{'':{GAP}}was {written(before.cost)}"
        elif label == "sent" and is_beside_plan and len(cost.plan.collectives) * cost.layers == 1:
            continue
        line = _labelled(label, written(cost)).append(was, DIM)
        line.stylize("bold" if label == "time" else "", GUTTER + LABELS)
        lines.append(cut(line, width))
    if len(lines) > height:
        return []
    if not cost.limit_bytes or len(lines) == height:
        return lines
    # The memory of a device that a program may use, and the part of it that the plan takes.
    share = cost.layers_peak_bytes / cost.limit_bytes
    line = _labelled("of HBM", human_bytes(cost.limit_bytes))
    percent = "< 0.1 %" if share < 0.001 else f"{share * 100:.{int(share < 0.1)}f} %"
    sign = "✗ " if cost.over_bytes else ""
    room = width - line.cell_len - len(f" {sign} {percent}")
    line.append(f" {bar(min(share, 1), 1, room)}", palette.lanes["memory"])
    line.pad_right(width - len(sign) - len(percent) - line.cell_len)
    return [*lines, line.append(sign, SIGNS["✗"]).append(percent)]


def question_rows(
    questions: Sequence[ResolvedProblem], now: ResolvedProblem, width: int, palette: Palette
) -> list[Text]:
    """Headings, and a line for each question: what differs from `now`, which is marked; figures that fit."""
    rows = []
    for question in questions:
        figures = (*(written(question.cost) for _, written in FIGURES), collective_counts(question.cost))
        rows.append([*map(Text, figures)])
    without = giving_way("collectives", "memory", "sent")
    texts = columns(rows, width - LEAST - GAP, 0, HEADINGS, without, "dim")
    texts = texts or columns(rows, width, 0, HEADINGS, without[-1:], "dim") or []
    room = width - max(text.cell_len for text in texts) - GAP
    names = [Text()]
    for question in questions:
        mark, own = "", what_differs(question, now)
        if is_same_question(question, now):
            mark, own = MARK, tuple(part for part in summary(question) if part.kind not in BESIDE)
        names.append(Text(mark.ljust(GAP)) + parts_line(own, question.problem.mesh, room - GAP, palette))
    for name in names:
        name.pad_right(room + GAP - name.cell_len)
    return [name + text for name, text in zip(names, texts, strict=True)]


def _labelled(label: str, value: str) -> Text:
    name = Text(label, DIM)
    name.truncate(LABELS - 1, overflow="ellipsis")
    name.pad_right(LABELS - name.cell_len)
    return Text.assemble(" " * GUTTER, name, f"{value:>{VALUES}}")
