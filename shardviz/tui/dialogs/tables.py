"""The tables to choose from: questions so far, shardings, algorithms of a collective."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.forms.options import with_shardings
from shardviz.forms.summary import is_same_question, what_differs
from shardviz.forms.wording import as_sentence
from shardviz.lazy_names import LazyImports
from shardviz.render.caption import collectives_text
from shardviz.render.cost_view import comparison_words, machine_words, total_words
from shardviz.render.lines import READABLE, sentence
from shardviz.render.plans_compared import ranking_rows, versus_table
from shardviz.render.questions_view import question_rows
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import TABLES, bindings
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.answers import search
    from shardviz.hardware import machine as machines, timelines
    from shardviz.planner import ranking
    from shardviz.planner.pricing import costs as pricing
    from shardviz.planner.problem import reading
    from shardviz.planner.search import mesh_ranking
    from shardviz.render import search_view
    from shardviz.render.rounds import step_notes

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.tui.state import EditorState


(COMPARE,) = TABLES["QUESTIONS"]


class QuestionsDialog(FilteredList):
    """`=` puts the line beside the question that is shown, or no longer, `enter` leaves with its form."""

    title_text = "Questions"
    nothing = "No question matches; remove some words."
    commands = (OPEN, MOVES[0], COMPARE, CLOSE)
    taken = (COMPARE,)
    BINDINGS = bindings(taken, priority=True)
    kind = "table fitted"
    subject: EditorState
    _compares = False

    def on_mount(self) -> None:
        self.describe(Text("No question has been answered yet."))
        self.call_after_refresh(self._list)

    def _list(self) -> None:
        """The questions, the cursor where it is, or on the newest that is not shown now."""
        questions, now = self.subject.questions.newest_first, self.subject.resolved
        if not questions or not self.is_attached:
            return
        width = self.choices.content_size.width - 2
        first = next((question for question in questions if not is_same_question(question, now)), None)
        if self.chosen is not None:
            first = self.chosen.value
        self.show_table(question_rows(questions, now, width, self.palette), questions, first)

    def about(self, row: ListRow) -> Text:
        chosen, now = row.value, self.subject.resolved
        width = min(self.query_one("#choice").content_size.width, READABLE)
        if self._compares and is_same_question(chosen, now):
            lines = sentence("This question is on screen: choose another to compare with it.", width)
        elif self._compares:
            differing = what_differs(chosen, now), what_differs(now, chosen)
            one, other = ("  ".join(part.text for part in parts) for parts in differing)
            lines = versus_table(chosen.cost, now.cost, width, (one, other))
        else:
            lines = sentence(machine_words(chosen.cost), width, lead="time  ")
            lines += [line for words in total_words(chosen.cost) for line in sentence(words, width, 1)]
        return Text("\n").join(lines)

    def action_compare(self) -> None:
        self._compares = not self._compares
        self.set_class(self._compares, "comparing")
        self.describe_chosen()

    def leave_with(self, row: ListRow) -> None:
        self.dismiss(row.value.draft)


HIGH = 20
"""Lines of a window that has room for the figures that the table leaves out."""


class ShardingsDialog(FilteredList):
    """Leaves with the form of a line."""

    title_text = "Meshes and their best shardings"
    nothing = "No mesh matches; remove some words."
    searching = "searching the meshes …"
    kind = "table fitted"
    subject: ResolvedProblem
    _answer: mesh_ranking.MeshRanking | None = None
    _columns: int | None = None

    def find(self) -> Iterator[Callable[[], object]]:
        """The problem with all shardings open, on any mesh with its axes of the same machine."""
        form, mesh, machine = self.subject.shown, self.subject.problem.mesh, self.subject.machine
        if machine.assumed:
            machine = machines.assumed_machine(machine.chip, mesh.size)
        question = search.search_question(
            form.einsum,
            machine,
            ",".join(mesh.axis_names),
            sizes=form.sizes,
            dtype=form.dtype,
            backward=form.backward == "yes",
            remat=form.remat,
            optimizer=form.optimizer,
            frozen=form.frozen,
        )
        for answer in mesh_ranking.search_meshes(question):
            words = f"{answer.looked_at:,} of {answer.meshes:,} meshes …"
            yield partial(self.describe, Text(words, "dim"))
            if answer.is_complete:
                yield partial(self._show, mesh_ranking.with_smallest_machine(answer))

    def _show(self, answer: mesh_ranking.MeshRanking) -> None:
        self._answer = answer
        if not answer.found:
            words = search_view.infeasible_words(answer), search_view.larger_machine_words(answer)
            self.describe(Text("\n".join(words).strip()))
            return
        room = self.size.width - 8
        lines, columns = search_view.found_rows([first for first, *_ in answer.alike], room, self.palette)
        if self.size.height >= HIGH:
            self._columns = columns
        self.show_table(lines, answer.alike)

    def about(self, row: ListRow) -> Text:
        assert self._answer is not None
        width = min(self.query_one("#choice").content_size.width, READABLE)
        same = search_view.same_words(row.value)
        lines = search_view.sharding_lines(self._answer, row.value[0], width, self.palette, self._columns)
        lines += sentence(same, width, lead="the same: ") if same else []
        return Text("\n").join(lines)

    def leave_with(self, row: ListRow) -> None:
        assert self._answer is not None
        first = row.value[0]
        mesh = mesh_ranking.shown_mesh(self._answer.question, first)
        form = with_shardings(self.subject.shown, mesh, dict(first.specs))
        self.dismiss(replace(form, optimizer=str(first.optimizer or form.optimizer)))


class RankingDialog(FilteredList):
    """Leaves with the form of a sharding. A train step is ranked by its forward pass."""

    title_text = "Shardings over this mesh, fastest first"
    nothing = "No sharding matches; remove some words."
    searching = "planning each sharding …"
    kind = "table fitted"
    subject: ResolvedProblem

    def find(self) -> Iterator[Callable[[], object]]:
        form, problem = self.subject.shown, self.subject.problem
        question = reading.problem_from_text(
            form.einsum, mesh=problem.mesh, sizes=form.sizes, dtype=form.dtype, ranked=True
        )
        candidates = ranking.rank(question, self.subject.placed)
        lines = ranking_rows(candidates, self.size.width - 8, self.palette)
        yield partial(self.show_table, lines, candidates)

    def about(self, row: ListRow) -> Text:
        candidate: ranking.Candidate = row.value
        beside = comparison_words(candidate.cost, pricing.price(self.subject.plan, self.subject.placed))
        moves = collectives_text(candidate.plan, self.palette)
        return Text.assemble("collectives: ", moves, f"\nbeside the plan on screen: {beside}")

    def leave_with(self, row: ListRow) -> None:
        plan = row.value.plan
        specs = {array.name: array.spec for array in plan.problem.arguments if array.spec is not None}
        self.dismiss(with_shardings(self.subject.shown, plan.problem.mesh, specs))


class AlgorithmsDialog(FilteredList):
    """`enter` leaves with the name of an algorithm."""

    nothing = "No algorithm has this name."
    searching = "comparing …"
    kind = "table fitted"
    subject: CollectiveRun

    def __init__(self, run: CollectiveRun) -> None:
        super().__init__(run)
        what = f"{run.operation.name} over {', '.join(run.operation.axes)}"
        self.title_text = f"Algorithms for {what}: {human_bytes(run.bytes)} on a {run.links.topology}"

    def find(self) -> Iterator[Callable[[], object]]:
        for row in self.subject.rows:
            _ = isinstance(row, timelines.NotCompared) or (row.seconds, row.device_bytes)
        yield self._show

    def _show(self) -> None:
        head, lines = step_notes.algorithm_lines(self.subject, self.size.width - 8)
        able = [row for row in self.subject.rows if not isinstance(row, timelines.NotCompared)]
        rows = [
            ListRow(line, row.algorithm, row.algorithm, head) for line, row in zip(lines, able, strict=True)
        ]
        cannot = Text("not possible here")
        rows += [
            ListRow(Text(f"   {row.algorithm}", "dim"), row.algorithm, row.algorithm, cannot)
            for row in self.subject.rows
            if isinstance(row, timelines.NotCompared)
        ]
        self.show_rows(rows, self.subject.schedule.algorithm)

    def about(self, row: ListRow) -> Text:
        from shardviz.collectives.algorithms import ALGORITHMS

        algorithm = ALGORITHMS[row.value]
        said = Text.assemble((algorithm.name, "bold"), f": {as_sentence(algorithm.summary)}")
        for line in step_notes.formula_lines(self.subject, self.size.width):
            said.append("\n").append_text(line)
        if reason := self._reason(row):
            said.append(f"\n✗ {as_sentence(reason)}")
        return said

    def leave_with(self, row: ListRow) -> None:
        if not self._reason(row):
            super().leave_with(row)

    def _reason(self, row: ListRow) -> str:
        """Why an algorithm cannot do it; empty where it can."""
        reasons = dict(row for row in self.subject.rows if isinstance(row, timelines.NotCompared))
        return reasons.get(row.value, "")
