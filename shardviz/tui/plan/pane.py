"""The plan screen: the steps with their reasons and their times, and what every target inserted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.worker import get_current_worker

from shardviz.errors import QuestionError, ShardvizError
from shardviz.render.caption import group_along
from shardviz.render.lines import records, sentence
from shardviz.render.plan_view import StepsPicture, adopted_lines
from shardviz.render.programs.target_status import wait_lines
from shardviz.stepping.plan_step import StepCost, collective_steps, played_steps, step_cost
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Pane
from shardviz.tui.registry import PLAN, bindings
from shardviz.tui.target_answers import reworded, wait_of

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner import Plan
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.tui.state import EditorState
    from shardviz.tui.target_answers import ShownAnswer

WIDE = 110
"""Columns from which on the targets stand beside the plan; on fewer they stand below it."""
GAP = 3
TICK_S = 0.1


class StepsView(LinesView, inherit_bindings=False):
    """Lines that scroll by the page; up and down belong to the pane, which chooses steps with them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
        ("home", "scroll_home", "Top"),
        ("end", "scroll_end", "Bottom"),
    ]

    def bring_in(self, lines: range) -> None:
        """Scroll as little as shows these lines, the first of them at any rate; at the top, all above too."""
        height = self.size.height
        top = int(self.scroll_offset.y)
        if lines.stop > top + height:
            top = lines.stop - height
        top = min(top, lines.start)
        self.scroll_to(y=top if lines.stop > height else 0, animate=False)


class PlanPane(Pane):
    """Steps, one of them chosen; and the targets' answers, as they arrive."""

    area = "plan"
    BINDINGS = bindings(PLAN)
    DEFAULT_CSS = f"""
    PlanPane LinesView {{ overflow-x: hidden; }}
    PlanPane #targets {{ display: none; margin-left: {GAP}; }}
    PlanPane.beside #targets {{ display: block; }}
    """

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self.chosen = 1
        """The number of the chosen step, from 1."""
        self._plan: Plan | None = None
        self._costs: Mapping[int, StepCost] = {}
        self._cost: PlanCost | None = None
        self._has_alternatives = False
        """True if the cost has the plans beside it, which may take long to find."""
        self._compared: PlanCost | None = None
        """The cost of the plan that later ones stand beside."""
        self._priced: tuple[object, ...] = ()
        """The plan of the cost, and the texts that name its machine."""
        self._picture: tuple[tuple[object, ...], StepsPicture] | None = None
        self._answered: tuple[tuple[object, ...], list[Text]] = (), []
        """The lines of the answers that are here, and what they were drawn of."""
        self._place = range(0)
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
            idle.add("compare")
        if self._plan is None or self.chosen not in played_steps(self._plan):
            idle.add("open_step")
        return idle

    def on_mount(self) -> None:
        self._clock = self.set_interval(TICK_S, self._tick, pause=True)

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= WIDE, "beside")
        self._draw()
        if self._begins:
            self._begins = False
            self._bring_in()

    def on_show(self) -> None:
        self._draw()

    def jax_code(self) -> str:
        from shardviz.codegen.plan import plan_code

        try:
            return plan_code(self.exported())
        except QuestionError as error:
            raise QuestionError(
                error.message, f"{error.hint}, or press c on 1 or 4 for jit's program"
            ) from None

    def exported(self) -> Plan:
        return self.state.resolved.plan

    def show_problem(self, resolved: ResolvedProblem) -> None:
        before, self._plan = self._plan, resolved.plan
        if before is None or not _same_step(before, self._plan, self.chosen):
            self.chosen = _first_collective(self._plan)
            self._steps.scroll_home(animate=False)
        if self._plan is not before:
            self._costs = {}
            self._count(self._plan)
        priced = self._plan, resolved.shown.machine, resolved.targets
        if priced != self._priced:
            self._priced, self._cost = priced, None
            self._price(priced, resolved.plan, resolved.placed)
        self._draw()

    def begin(self, place: AnswerLocation) -> None:
        if self._plan is not None:
            self._begins = not self.size.width
            self._choose(_first_about(self._plan, place))

    def show_answers(self, _answers: Mapping[str, ShownAnswer]) -> None:
        self._draw()

    def _take_costs(self, plan: Plan, costs: Mapping[int, StepCost]) -> None:
        """Show the costs of a plan's collectives, by the number of the step."""
        if plan is self._plan:
            self._costs = costs
            self._draw()

    def _take_cost(self, priced: tuple[object, ...], cost: PlanCost, has_alternatives: bool) -> None:
        """Show what a plan costs on its machine."""
        if priced is self._priced:
            self._cost, self._has_alternatives = cost, has_alternatives
            self._draw()

    def show_lens(self) -> None:
        self._draw()

    def show_step(self, number: int) -> None:
        if self._plan is not None and number <= len(self._plan.steps):
            self._choose(number)

    def action_previous_step(self) -> None:
        if self.chosen > 1 and self._steps.scroll_offset.y <= self._place.start:
            self._choose(self.chosen - 1)
            self.post_message(self.StepChosen(self.area, self.chosen))
        else:
            self._steps.scroll_up(animate=False)

    def action_next_step(self) -> None:
        if self._plan is not None and self.chosen < len(self._plan.steps):
            self._choose(self.chosen + 1)
            self.post_message(self.StepChosen(self.area, self.chosen))
        else:
            self._steps.scroll_down(animate=False)

    def action_open_step(self) -> None:
        op = self.exported().steps[self.chosen - 1].op
        if self.chosen not in played_steps(self.exported()):
            self.notify(f"Step {self.chosen}, {op}, sends nothing that could be played.", markup=False)
        else:
            self.post_message(self.StepOpened(self.chosen))

    def action_compare(self) -> None:
        if self._compared is None and self._cost is not None:
            self._compared = self._cost
            self.notify("Change the problem: its next plans stand beside this one.", markup=False)
        else:
            self._compared = None
        self._draw()

    def action_ask_now(self) -> None:
        self.state.queries.ask_now()

    @property
    def _steps(self) -> StepsView:
        return self.query_one("#steps", StepsView)

    def _choose(self, number: int) -> None:
        self.chosen = number
        self._draw()
        self._bring_in()

    def _bring_in(self) -> None:
        self.call_after_refresh(lambda: self._steps.bring_in(self._place))

    @work(thread=True, exit_on_error=False, exclusive=True, group="costs")
    def _count(self, plan: Plan) -> None:
        """Work out what the collectives cost: for a large mesh that takes a while."""
        costs = {}
        for number in collective_steps(plan):
            if get_current_worker().is_cancelled:
                return
            try:
                costs[number] = step_cost(plan, number)
            except ShardvizError:
                # Too large to be followed round by round: the plan itself says what must be sent.
                continue
        self.call_later(self._take_costs, plan, costs)

    @work(thread=True, exit_on_error=False, exclusive=True, group="price")
    def _price(self, priced: tuple[object, ...], plan: Plan, placed: PlacedMesh) -> None:
        """Work out what the plan costs on the machine of the problem, then the plans beside it."""
        from shardviz.planner.planner import is_planned_quickly
        from shardviz.planner.pricing.costs import price

        cost = price(plan, placed)
        if is_planned_quickly(plan.question):
            _ = cost.alternatives  # it keeps them, and is drawn with them
            self.call_later(self._take_cost, priced, cost, True)
        else:
            self.call_later(self._take_cost, priced, cost, False)
            self.call_later(self._ask_for_alternatives, priced, plan, placed)

    def _ask_for_alternatives(self, priced: tuple[object, ...], plan: Plan, placed: PlacedMesh) -> None:
        if priced is self._priced:

            def take(cost: PlanCost) -> None:
                self.call_later(self._take_cost, priced, cost, True)

            self.state.plans.price(plan, placed, take)

    def _tick(self) -> None:
        if self.display:
            self._draw()
        else:
            self._clock.pause()

    def _draw(self) -> None:
        width, height = self.size
        if self._plan is None or not width:
            return
        self.update_commands()
        beside = self.has_class("beside")
        # The last columns are a gap and the scroll bar.
        room = (width - GAP) // 2 - 2 if beside else width - 2
        answers = self.state.queries.answers
        targets = self._target_lines(answers, room)
        misfit, costs = self._cost_lines(room)
        misfit = [*self._status_lines(self._plan, room), *misfit]
        limit = height if beside else max(height // 2, height - 1 - len(targets))
        limit = max(height // 2, limit - len(misfit) - len(costs))
        lines, place = self._drawn(self._plan, room).lines(self.chosen, self._costs, limit)
        marked = self._marked_group(self._plan, room)
        lines[place.stop : place.stop] = marked
        self._place = range(place.start + len(misfit), place.stop + len(marked) + len(misfit))
        lines = [*misfit, *lines, *costs]
        if beside:
            self.query_one("#targets", LinesView).show(TextLines(targets))
        else:
            lines += [Text(), *targets]
        self._steps.show(TextLines(lines))
        if any(answer.state == "asked" for answer in answers.values()):
            self._clock.resume()
        else:
            self._clock.pause()

    def _marked_group(self, plan: Plan, width: int) -> list[Text]:
        """The group that does the chosen step with the device that is marked, where one is."""
        lens, axes = self.state.lens, plan.steps[self.chosen - 1].axes
        if lens is None or not axes:
            return []
        group = group_along(axes, plan.problem.mesh, lens, self.palette)
        return records([[Text.assemble("▌   group ", group)]], width)

    def _cost_lines(self, width: int) -> tuple[list[Text], list[Text]]:
        """The lines of what does not fit, what is padded and how the plan compares, which come first, and
        those of what the plan costs, after a blank line."""
        if self._cost is None:
            return [], []
        # Loaded with the first cost: until then the screen needs none of it.
        from shardviz.render.cost_view import cost_view, fit_lines, padding_lines

        above = [*fit_lines(self._cost, width), *padding_lines(self._cost, width)]
        below = [
            *self._alternatives(self._cost, width),
            Text(),
            *cost_view(self._cost, width, self.palette),
        ]
        return [*above, *self._comparison(self._cost, width)], below

    def _alternatives(self, cost: PlanCost, width: int) -> list[Text]:
        """The plans beside the one that is shown; where they are not known yet, that they are looked for."""
        from shardviz.render.alternatives_view import INDENT, alternatives_view

        if self._has_alternatives:
            return alternatives_view(cost, width, self.palette)
        return sentence("Looking for the plans that others would choose …", width, INDENT, style="dim")

    def _comparison(self, cost: PlanCost, width: int) -> list[Text]:
        """The figures of the plan beside those of the one that it is compared with."""
        if self._compared is None or self._compared.plan == cost.plan:
            return []
        from shardviz.render.versus_view import versus_table

        return [*versus_table(self._compared, cost, width), Text()]

    def _status_lines(self, plan: Plan, width: int) -> list[Text]:
        """Says that another plan is being made, or that this one is Shardy's."""
        if self.state.resolved.planning is not None:
            return sentence(
                "Planning what you entered; this is still the plan before it.", width, style="bold"
            )
        return adopted_lines(plan, width)

    def _drawn(self, plan: Plan, width: int) -> StepsPicture:
        """The picture of a plan: what does not change with the choice is drawn once."""
        key = plan, width, self.palette
        if self._picture is None or any(a is not b for a, b in zip(self._picture[0], key, strict=True)):
            self._picture = key, StepsPicture(*key)
        return self._picture[1]

    def _target_lines(self, answers: Mapping[str, ShownAnswer], width: int) -> list[Text]:
        """The answers that are here, drawn once, and below them the targets that are still at work."""
        if not answers:
            return sentence("No targets: no compiler is asked.", width, style="dim")
        here = [(each.compiled, each.differences) for each in answers.values() if each.compiled is not None]
        key = here, (*answers,), width, self.palette
        if key != self._answered[0]:
            lines: list[Text] = []
            if here:
                # Loaded with the first answer: until then the screen needs none of it.
                from shardviz.render.programs.target_answers import answers_view

                given = [(reworded(compiled), differences) for compiled, differences in here]
                lines = answers_view(given, self.state.resolved.problem, width, self.palette, (*answers,))[1:]
            self._answered = key, lines
        lines = self._answered[1]
        waits = [wait_of(answer) for answer in answers.values() if answer.compiled is None]
        between = [Text()] if lines and waits else []
        return [*lines, *between, *wait_lines(waits, width, self.app.animation_level != "none")]


def _first_collective(plan: Plan) -> int:
    """The number of the first step that sends something; 1 where none does."""
    return next(iter(collective_steps(plan)), 1)


def _first_about(plan: Plan, place: AnswerLocation) -> int:
    """The number of the first step with the operation or the array of a place, where there is one."""
    for number, step in enumerate(plan.steps, 1):
        if place.operation == step.op or (place.array and place.array == step.array):
            return number
    return _first_collective(plan)


def _same_step(before: Plan, after: Plan, number: int) -> bool:
    """True if the step of that number does the same to the same array in both plans."""
    steps = [plan.steps[number - 1] for plan in (before, after) if number <= len(plan.steps)]
    return len(steps) == 2 and (steps[0].op, steps[0].array) == (steps[1].op, steps[1].array)
