"""The plan as a list to choose from: each step a block of lines, one of them chosen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.planner.plan import LOCAL_OPS, Plan
from shardviz.planner.work_split import CASES
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.plans.plan_view import step_cells, totals
from shardviz.render.units import human_bytes
from shardviz.stepping.plan_step import StepCost

RIGHT = frozenset({3, 4})
MARK = "▌"
"""Stands before every line of the chosen step."""
MORE = " …"
INDENT = 2


class StepsPicture:
    """A plan in lines of at most `width` columns; what does not change with the choice is made once."""

    def __init__(self, plan: Plan, width: int, palette: Palette) -> None:
        self._plan = plan
        self._width = width
        self._palette = palette

    def lines(
        self, chosen: int, costs: Mapping[int, StepCost], height: int | None = None
    ) -> tuple[list[Text], range]:
        """All lines, and which of them are those of step `chosen`, from 1.

        The reason of that step is told in full. Where all lines are more than `height`, if there is a limit,
        as many of the other reasons are cut to a line as that takes, the last ones first. `costs` are those
        of the steps of which they are known.
        """
        first, last = [*self._case, Text()], [Text(), *self._totals(costs)]
        blocks = [self._block(number, costs) for number in range(1, len(self._heads) + 1)]
        excess = 0
        if height is not None:
            excess = len(first) + len(last) + sum(len(whole) for whole, _ in blocks) - height
        shown = []
        for number, (whole, cut) in reversed([*enumerate(blocks, 1)]):
            is_cut = excess > 0 and number != chosen
            excess -= (len(whole) - len(cut)) * is_cut
            shown.append(cut if is_cut else whole)
        lines, place = first, range(0)
        for number, block in enumerate(reversed(shown), 1):
            if number == chosen:
                place = range(len(lines), len(lines) + len(block))
            lines += map(_marked, block) if number == chosen else block
        return [*lines, *last], place

    def _block(self, number: int, costs: Mapping[int, StepCost]) -> tuple[list[Text], list[Text]]:
        """The lines of a step with its reason and what it costs; and with the reason cut to a line."""
        head, reason = self._heads[number - 1], self._reasons[number - 1]
        whole = [*head, *reason]
        if number in costs:
            whole += sentence(cost_words(costs[number]), self._width, INDENT + 3, style="dim")
        return whole, [*head, *_cut(reason, self._width)]

    @cached_property
    def _case(self) -> list[Text]:
        """Which case of the textbook each part is, and what that means."""
        said = "; ".join(self._plan.cases)
        meanings = {case: meaning for case, meaning in CASES.items() if case in said}
        if len(meanings) == 1:
            (meaning,) = meanings.values()
            return sentence(meaning, self._width, lead=f"{said}  ")
        lines = sentence(said, self._width, style="bold")
        for case, meaning in meanings.items():
            lines += sentence(f"{case}: {meaning}", self._width, style="dim")
        return lines

    @cached_property
    def _heads(self) -> list[list[Text]]:
        """The first line of every step, or more where it is wide: what it does to which array."""
        rows = [
            step_cells(number, step, self._plan, self._palette)
            for number, step in enumerate(self._plan.steps, 1)
        ]
        aligned = columns(rows, self._width, INDENT, RIGHT)
        if aligned is not None:
            return [[line] for line in aligned]
        return [records([row], self._width, INDENT) for row in rows]

    @cached_property
    def _reasons(self) -> list[list[Text]]:
        return [sentence(step.reason, self._width, INDENT + 3, style="dim") for step in self._plan.steps]

    def _totals(self, costs: Mapping[int, StepCost]) -> list[Text]:
        """What a device sends in all, beside the least."""
        lines = sentence(totals(self._plan), self._width, style="bold")
        moving = [number for number, step in enumerate(self._plan.steps, 1) if step.op not in LOCAL_OPS]
        if len(moving) > 1 and all(number in costs for number in moving):
            known = [costs[number] for number in moving]
            whole = StepCost(
                ", ".join(dict.fromkeys(cost.algorithm for cost in known)),
                sum(cost.rounds for cost in known),
                sum(cost.wire_bytes for cost in known),
                sum(cost.least_rounds for cost in known),
                sum(cost.least_wire_bytes for cost in known),
            )
            lines += sentence(cost_words(whole), self._width, style="dim")
        return lines


def cost_words(cost: StepCost) -> str:
    """``by ring: 12 MiB sent in 6 rounds; the least: 12 MiB, 2 rounds``."""
    return (
        f"by {cost.algorithm}: {human_bytes(cost.wire_bytes)} sent in {plural(cost.rounds, 'round')}; "
        f"the least: {human_bytes(cost.least_wire_bytes)}, {plural(cost.least_rounds, 'round')}"
    )


def _cut(reason: list[Text], width: int) -> list[Text]:
    """The first line, with a sign where there are more."""
    if len(reason) < 2:
        return reason
    first = reason[0].copy()
    if first.cell_len + len(MORE) > width:
        first = first[: first.plain.rstrip().rindex(" ")]
    return [first.append(MORE, "dim")]


def _marked(line: Text) -> Text:
    """A line of the chosen step."""
    rest = line[1:]
    rest.stylize(Style(dim=False))
    return Text.assemble((MARK, "bold")).append_text(rest)
