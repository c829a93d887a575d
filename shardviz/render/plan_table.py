"""A plan as a table to choose from: what each step moves, its time, and the reason of the chosen one; below
it the roofline as bars, of its arithmetic, its memory and its links, and its totals in words."""

from __future__ import annotations

from functools import cache, cached_property

from rich.style import Style
from rich.text import Text

from shardviz.planner.plan import repeated_work
from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.cost_view import (
    alternatives_view,
    faster_words,
    machine_words,
    threshold_words,
    total_words,
)
from shardviz.render.lines import GAP, bar, records, sentence, sentences
from shardviz.render.palette import DIM, Palette
from shardviz.render.plan_view import (
    BAR,
    BECOMES,
    BOUND,
    HEADINGS,
    INDENT,
    LEFT_OUT,
    MOVED,
    NUMBER,
    OPERATION,
    REASON_INDENT,
    TIME,
    StepRow,
    case_lines,
    exact_words,
    meaning_lines,
    phase_heading,
    step_row,
    step_rows,
    time_words,
    update_runs,
)
from shardviz.units import flops, human_bytes, seconds

MARK = "▌"
"""Stands before every line of the chosen step."""
LEAST_BAR, MOST_BAR = 4, 24


class PlanTable:
    """A priced plan's table. With `is_full` a row has the array that its step makes, the chosen one all
    details, and the plan its cases; with `is_quiet` rows have FLOPs, but no seconds or HBM bytes."""

    def __init__(
        self, cost: PlanCost, width: int, palette: Palette, is_full: bool = False, is_quiet: bool = False
    ) -> None:
        self._cost, self._width, self._palette, self._is_full = cost, width, palette, is_full
        self._plan, self._is_quiet = cost.plan, is_quiet
        self._runs = update_runs(cost.plan)
        self._rows = step_rows(cost.plan, palette, cost.steps)
        self._longest = max(row.seconds or 0.0 for row in self._rows.values())
        self._line = cache(lambda number: self._drawn(self._rows[number]))
        self._one = cache(lambda number: step_row(cost.plan, number, palette, cost.steps))

    def lines(
        self, chosen: int, group: Text | None = None, has_total: bool = True
    ) -> tuple[list[Text], range]:
        """All lines, and which are those of step `chosen`, from 1; `group` does it with the marked device."""
        lines: list[Text] = []
        if self._is_full or repeated_work(self._plan) is not None:
            lines += case_lines(self._plan, self._width)
        lines.append(self._joined([Text(heading.removeprefix(">"), "dim") for heading in HEADINGS]))
        span = range(0)
        for number in range(1, len(self._cost.steps) + 1):
            run = self._runs.get(number, range(0))
            if heading := phase_heading(self._plan, number):
                lines.append(Text(f" {heading}", "bold"))
            if number == chosen:
                block = self._chosen(number, group)
                span = range(len(lines), len(lines) + len(block))
                lines += block
            elif chosen in run:
                lines.append(self._drawn(self._one(number)))
            elif number in self._rows:
                lines.append(self._line(number))
        lines += [self._joined(self._total)] * (has_total or self._cost.layers > 1)
        return lines + (meaning_lines(self._plan, self._width) if self._is_full else []), span

    def _chosen(self, number: int, group: Text | None) -> list[Text]:
        """The row of the chosen step and its reason; in full also what was cut of the row, and figures."""
        priced, row = self._cost.steps[number - 1], self._one(number)
        reason = (not self._is_full and priced.step.short_reason) or priced.step.reason
        line, start = self._drawn(row), INDENT + self._widths[NUMBER] + GAP
        shown = row.short if self._is_cut else row.operation
        line.stylize("reverse", start, start + min(shown.cell_len, self._widths[OPERATION]))
        lines, indent = [line], REASON_INDENT
        if self._is_full and (self._is_cut or (BECOMES not in self._widths and row.becomes)):
            lines += records([[row.operation, row.becomes]], self._width, indent)
        lines += sentence(reason, self._width, indent)
        if self._is_full and not self._is_quiet:
            lines += sentence(exact_words(priced), self._width, indent, style="dim")
        if group is not None:
            lines += records([[Text.assemble("group ", group)]], self._width, indent)
        return [Text.assemble((MARK, "bold")).append_text(line[1:]) for line in lines]

    @cached_property
    def _total(self) -> list[Text]:
        cost = self._cost
        layers = f"in each of {cost.layers} layers" if cost.layers > 1 else "total"
        if self._is_quiet and (work := sum(step.flops for step in cost.steps)):
            layers += f": {flops(work)}"
        sent = f"{human_bytes(cost.wire_bytes)} sent" if self._plan.collectives else ""
        time = time_words(cost.serial_seconds, not cost.unknown)
        words = {OPERATION: layers, MOVED: sent, TIME: time}
        return [Text(words.get(column, ""), "bold") for column in range(BOUND)]

    @cached_property
    def _widths(self) -> dict[int, int]:
        """The columns of each cell; the bar has what is left over."""
        table = [self._total, *(row.cells[:-1] for row in self._rows.values())]
        widest: list[int] = [max(cell.cell_len for cell in column) for column in zip(*table, strict=True)]
        widest[BAR] = LEAST_BAR * (self._longest > 0 and not self._is_quiet)
        widest[TIME] *= not self._is_quiet
        widest[BECOMES] *= self._is_full
        widths = {i: max(wide, len(HEADINGS[i].removeprefix(">"))) for i, wide in enumerate(widest) if wide}

        def spare() -> int:
            return self._width - INDENT - sum(widths.values()) - GAP * (len(widths) - 1)

        for column, least in LEFT_OUT.items():
            if widths[OPERATION] + min(spare(), 0) >= min(widths[OPERATION], least):
                break
            widths.pop(column, None)
        left = spare()
        widths[OPERATION] += min(left, 0)
        if BAR in widths:
            widths[BAR] = min(widths[BAR] + max(left, 0), MOST_BAR)
        return widths

    @cached_property
    def _is_cut(self) -> bool:
        """The operations are said in fewer words, as not all rows have room for more."""
        return any(row.operation.cell_len > self._widths[OPERATION] for row in self._rows.values())

    def _drawn(self, row: StepRow) -> Text:
        cells, step = row.cells[:-1], row.step
        if self._is_cut:
            cells[OPERATION] = row.short
        colour = Style(color=self._palette.lanes["matmul" if step.op == "einsum" else "compute"])
        if step.axes and not row.is_update:
            colour = self._palette.axis(self._plan.problem.mesh, step.axes[0])
        room = self._widths.get(BAR, 0)
        if self._is_quiet and not row.is_moving:
            work = sum(step.flops for step in row.priced)
            cells[MOVED] = Text(flops(work) if work else "")
        cells[BAR] = Text(bar(row.seconds or 0.0, self._longest, room), colour)
        return self._joined(cells)

    def _joined(self, cells: list[Text]) -> Text:
        line = Text(" " * INDENT)
        for index, (column, width) in enumerate(self._widths.items()):
            cell = cells[column].copy()
            cell.truncate(width, overflow="ellipsis")
            cell.align("right" if HEADINGS[column].startswith(">") else "left", width)
            line.append(" " * GAP * bool(index)).append_text(cell)
        line.rstrip()
        return line


CROSSING = "┊"
LABELS, VALUES, LEAST, MOST = 9, 9, 4, 48


def roofline(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The seconds of arithmetic, memory and links as bars on one scale; none where a time is unknown. What
    goes beyond `CROSSING` is not compute-bound. A figure that is one step's stands in its row alone."""
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
    """The roofline, the size above which the plan is compute-bound, and how much faster another would be;
    with `is_full` all totals, and every plan that others would choose, as far as they are known."""
    lines = [Text(), *roofline(cost, width, palette)]
    if not is_full:
        bound = threshold_words(cost.thresholds).partition(";")[0].partition(" (now")[0] if has_totals else ""
        fastest = [one.cost for one in cost.alternatives if one.name == "fastest"] if has_alternatives else []
        faster = [faster_words(one, cost).partition(":")[0].removesuffix(".") + "." for one in fastest]
        unknown = total_words(cost)[:1] if cost.unknown else []
        return lines + sentences([*unknown, bound, *faster], width, INDENT)
    others = sentence("Searching for alternative plans …", width, INDENT, style="dim")
    if has_alternatives:
        others = alternatives_view(cost, width, palette)
    time = sentence(machine_words(cost), width, lead="time  ")
    return [*others, *lines, *time, *sentences(total_words(cost) if has_totals else (), width, INDENT)]
