"""The plan screen: a table of the steps with the reason of one, and what every target inserted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import group_along
from shardviz.render.lines import sentence
from shardviz.render.plan_view import adopted_lines
from shardviz.render.programs.target_answers import wait_lines
from shardviz.stepping.plan_step import collective_steps
from shardviz.tui.compiler_queries import ShownAnswer
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import BESIDE, GAP, Pane
from shardviz.tui.registry import PLAN, bindings
from shardviz.tui.targets_pane import reworded, wait_of

with LazyImports():
    from shardviz.codegen import plan as plan_program
    from shardviz.planner import planner
    from shardviz.render import cost_view, plan_pages, plan_view
    from shardviz.render.programs import target_answers

if TYPE_CHECKING:
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.tui.state import EditorState


class StepsView(LinesView, inherit_bindings=False):
    """Lines that scroll by the page; up and down belong to the pane, which chooses steps with them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
        ("home", "scroll_home", "Top"),
        ("end", "scroll_end", "Bottom"),
    ]


class PlanPane(Pane):
    """Steps, one of them chosen; and the targets' answers, as they arrive."""

    area = "plan"
    BINDINGS = bindings(PLAN)

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self._cost: PlanCost | None = None
        """The plan that is shown, priced; it keeps its totals, and the plans that others would choose, once
        they are known."""
        self._is_full = False
        """True where all is said of the chosen step and of the plan."""
        self._table: tuple[tuple[object, ...], plan_view.PlanTable] | None = None
        self._answered: tuple[tuple[object, ...], list[Text]] = (), []
        """The lines of the answers that are here, and what they were drawn of."""
        self._place = range(0)
        self._target = 0
        """The number of the target with the cursor, from 1; 0 while a step has it."""
        self._begins = False
        """True if the chosen step is to be brought into view as soon as the screen has a size."""

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield StepsView(id="steps")
            yield LinesView(id="targets")

    @property
    def idle(self) -> Collection[str]:
        idle = set() if self.state.resolved.targets else {"ask_now"}
        if self._cost is None:
            idle.add("open_step")
        return idle

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "beside")
        self.draw()
        if self._begins:
            self._begins = False
            self._bring_in()

    def jax_code(self) -> str:
        try:
            return plan_program.plan_code(self.exported())
        except QuestionError as error:
            hint = f"{error.hint}, or press c on 1 or 4 for jit's program"
            raise QuestionError(error.message, hint) from None

    def exported(self) -> Plan:
        return self.state.resolved.plan

    def show_problem(self) -> None:
        before, resolved = self._cost, self.state.resolved
        if before is None or before.plan is not resolved.plan or before.placed != resolved.placed:
            self._cost = resolved.cost
            self._target = 0
            self._find_totals(resolved.cost)
        self.draw()

    def begin(self, location: AnswerLocation) -> None:
        if self._cost is not None:
            self._begins = not self.size.width
            plan, wanted = self._cost.plan, next(iter(collective_steps(self._cost.plan)), 1)
            for number, step in reversed([*enumerate(plan.steps, 1)]):
                if location.operation == step.op or (location.array and location.array == step.array):
                    wanted = number
            self.state.set_step(wanted)
            self.show_step()

    def _take_totals(self, asked: PlanCost, cost: PlanCost) -> None:
        """Show a cost that knows more, in place of the same that was `asked` about."""
        if asked is self._cost:
            self._cost = cost
            self.draw()

    def show_step(self) -> None:
        self.draw()
        self._bring_in()

    def action_previous_step(self) -> None:
        if self._target:
            self._select_target(self._target - 1)
        elif self.state.step_number > 1 and self.query_one(StepsView).scroll_offset.y <= self._place.start:
            self.state.set_step(self.state.step_number - 1)
        else:
            self.query_one(StepsView).scroll_up(animate=False)

    def action_next_step(self) -> None:
        if self._cost is not None and self.state.step_number < len(self._cost.steps):
            self.state.set_step(self.state.step_number + 1)
        elif self._target < sum(one.compiled is not None for one in self.state.queries.answers.values()):
            self._select_target(self._target + 1)
        else:
            self.query_one(StepsView).scroll_down(animate=False)

    def _select_target(self, number: int) -> None:
        """Go to the row of a target below the last step; 0 goes back to that."""
        self._target = number
        self.show_step()

    def action_open_step(self) -> None:
        self.post_message(self.StepOpened(self.state.step_number))

    def action_details(self) -> None:
        self._is_full = not self._is_full
        self.show_step()

    def _bring_in(self) -> None:
        """Scroll as little as shows the step, its first line at any rate; at the top, all above too."""

        def scroll() -> None:
            view, lines = self.query_one(StepsView), self._place
            height, top = view.size.height, int(view.scroll_offset.y)
            if lines.stop > top + height:
                top = lines.stop - height
            view.scroll_to(y=min(top, lines.start) if lines.stop > height else 0, animate=False)

        self.call_after_refresh(scroll)

    @work(thread=True, exclusive=True, group="totals")
    def _find_totals(self, cost: PlanCost) -> None:
        """Work out above which sizes the plan is compute-bound, then make the plans beside it."""
        _ = cost.thresholds  # it keeps them, and is drawn with them
        self.call_later(self._take_totals, cost, cost)
        if planner.is_planned_quickly(cost.plan.question):
            _ = cost.alternatives
            self.call_later(self._take_totals, cost, cost)
        else:
            self.call_later(self._ask_for_alternatives, cost)

    def _ask_for_alternatives(self, cost: PlanCost) -> None:
        if cost is self._cost:
            take = partial(self.call_later, self._take_totals, cost)
            self.state.plans.price(cost.plan, cost.placed, take)

    def draw(self) -> None:
        width = self.size.width
        if self._cost is None or not width or self._cost.plan is not self.state.resolved.plan:
            return
        self.refresh_bindings()
        beside = self.has_class("beside")
        room = ((width - GAP) // 2 if beside else width) - 2  # a gap and the scroll bar
        answers = self.state.queries.answers
        targets, selected = self._target_lines(answers, room)
        above = adopted_lines(self._cost.plan, room)
        if self.state.resolved.planning is not None:
            words = "Planning your problem; this is still the previous plan."
            above = sentence(words, room, style="bold")
        is_quiet = self.state.is_quiet
        above += [] if is_quiet else cost_view.fit_lines(self._cost, room)
        above += cost_view.padding_lines(self._cost.plan.problem.padding, room)
        lens, axes, group = self.state.lens, self._cost.steps[self.state.step_number - 1].step.axes, None
        if lens is not None and axes:
            group = group_along(axes, self._cost.plan.problem.mesh, lens, self.palette)
        has_total = is_quiet or not self.is_beside("ProblemPanel")
        lines, span = self._drawn(self._cost, room).lines(self.state.step_number, group, has_total)
        self._place = range(span.start + len(above), span.stop + len(above))
        known = self._is_full, "thresholds" in vars(self._cost), "alternatives" in vars(self._cost)
        below = [] if is_quiet else plan_pages.below_table(self._cost, room, self.palette, *known)
        lines = [*above, *lines, *below]
        if beside:
            self.query_one("#targets", LinesView).show(TextLines(targets))
        else:
            above = [*lines, Text()]
            lines = [*above, *targets]
            if selected:
                self._place = range(selected.start + len(above), selected.stop + len(above))
        self.query_one(StepsView).show(TextLines(lines))
        self.keep_time()

    def _drawn(self, cost: PlanCost, width: int) -> plan_view.PlanTable:
        """The table of a plan: what does not change with the choice is drawn once."""
        key = cost, width, self.palette, self._is_full, self.state.is_quiet
        if self._table is None or any(a is not b for a, b in zip(self._table[0], key, strict=True)):
            self._table = key, plan_view.PlanTable(*key)
        return self._table[1]

    def _target_lines(self, answers: Mapping[str, ShownAnswer], width: int) -> tuple[list[Text], range]:
        """The answers that are here, drawn once, below them the targets that are still at work, and which of
        these lines are those of the selected target, with the reason why it differs."""
        if not answers:
            return sentence("No targets, so no compiler runs.", width, style="dim"), range(0)
        here = [(reworded(one.compiled), one.differences) for one in answers.values() if one.compiled]
        if self.state.is_quiet:
            here = [(replace(compiled, elapsed_s=0.0), differences) for compiled, differences in here]
        key = here, width, self.palette, self._is_full
        if key != self._answered[0]:
            question = here, self.state.resolved.problem, width, self.palette
            drawn = (
                target_answers.targets_view(*question)
                if self._is_full
                else target_answers.targets_table(*question, is_below_plan=True)[1:]
            )
            self._answered = key, drawn
        lines = self._answered[1]
        span = range(0)
        if 0 < self._target <= len(here):
            one, differences = here[self._target - 1]
            starts = [row for row, line in enumerate(lines) if line and not line.plain.startswith(" ")]
            row = next(row for row in starts if lines[row].plain.startswith(one.target))
            stop = next((other for other in starts if other > row), len(lines))
            reasons = [] if self._is_full else target_answers.difference_lines(differences, width, GAP)
            marked = lines[row].copy()
            marked.stylize("reverse", 0, len(one.target))
            lines = [*lines[:row], marked, *lines[row + 1 : stop], *reasons, *lines[stop:]]
            span = range(row, stop + len(reasons))
        waits = [wait_of(answer) for answer in answers.values() if answer.compiled is None]
        waiting = wait_lines(waits, width, self.is_moving)
        return [*lines, *[Text()] * bool(lines and waits), *waiting], span
