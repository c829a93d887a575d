"""The dialog of all meshes of the machine with the best shardings of the problem: a row opens as a
problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.options import with_shardings
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.lines import READABLE
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import commands_of

with LazyImports():
    from shardviz.answers import search as search_answer
    from shardviz.hardware import machine as machines
    from shardviz.planner import planner, ranking
    from shardviz.planner.pricing import costs as pricing
    from shardviz.planner.problem import reading
    from shardviz.render import caption, cost_view, plans_compared, search_view

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.ranking import Candidate
    from shardviz.planner.search.mesh_ranking import MeshRanking, MeshSharding
    from shardviz.planner.search.question import SearchQuestion
    from shardviz.render.palette import Palette


HIGH = 20
"""Lines of a window that has room for the figures that the table leaves out."""
MICROBATCHES = 8
"""Parts of the batch in a pipeline, as of `shardviz search`."""
(COMPARE,) = commands_of(
    "dialog",
    ("compare", "space", "Compare", "Put the line beside the others, or no longer.", "compare"),
)


class ShardingsDialog(FilteredList):
    """`space` keeps a line to compare the others with, `enter` leaves with its form."""

    title_text = "Meshes and their best shardings"
    nothing = "No mesh has these words; take some away."
    commands = (OPEN, MOVES[0], COMPARE, CLOSE)
    taken = (COMPARE,)
    DEFAULT_CSS = """
    ShardingsDialog.-broad.-high #choice { layout: vertical; }
    ShardingsDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    ShardingsDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 12; }
    ShardingsDialog #about { max-height: 11; }
    """

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette
        self._answer: MeshRanking | None = None
        self._beside: MeshSharding | None = None
        self._columns: int | None = None

    def on_mount(self) -> None:
        self.describe(Text("looking at the meshes …", "dim"))
        self._search()

    @work(thread=True, exit_on_error=False)
    def _search(self) -> None:
        from shardviz.planner.search.mesh_ranking import search_meshes, with_smallest_machine

        worker = get_current_worker()
        try:
            for answer in search_meshes(_question(self._resolved)):
                if worker.is_cancelled:
                    return
                if answer.is_complete:
                    answer = with_smallest_machine(answer)
                    if worker.is_cancelled:
                        return
                    self.app.call_from_thread(self._show, answer)
                elif answer.looked_at % 8 == 0:
                    words = f"{answer.looked_at:,} of {answer.meshes:,} meshes …"
                    self.app.call_from_thread(self.describe, Text(words, "dim"))
        except ShardvizError as error:
            self.app.call_from_thread(self.describe, Text(error_words(error)))

    def _show(self, answer: MeshRanking) -> None:
        self._answer = answer
        if not answer.found:
            self.describe(
                Text(
                    f"{search_view.infeasible_words(answer)}\n{search_view.larger_machine_words(answer)}".strip()
                )
            )
            return
        room = self.size.width - 8
        (head, *lines), columns = search_view.found_rows(answer.found, room, self._palette)
        if self.size.height >= HIGH:
            self._columns = columns
        rows = zip(lines, answer.found, strict=True)
        self.show_rows([ListRow(line, line.plain, found, head) for line, found in rows])

    def about(self, row: ListRow) -> Text | None:
        found: MeshSharding = row.value
        assert self._answer is not None
        if self._beside is not None and self._beside is not found:
            self._compare(self._answer, self._beside, found)
            return None
        lines = search_view.sharding_lines(self._answer, found, self._width, self._palette, self._columns)
        if self._beside is found:
            lines.insert(0, Text("kept: choose another to stand beside it", "dim"))
        return Text("\n").join(lines)

    @property
    def _width(self) -> int:
        return min(self.query_one("#choice").content_size.width, READABLE)

    @work(thread=True, exit_on_error=False, exclusive=True, group="compare")
    def _compare(self, answer: MeshRanking, one: MeshSharding, other: MeshSharding) -> None:
        from shardviz.planner.search.mesh_ranking import problem_of, shown_mesh

        worker = get_current_worker()
        costs = [
            pricing.price(planner.plan(problem_of(answer.question, each), each.placed), each.placed)
            for each in (one, other)
        ]
        meshes = [str(shown_mesh(answer.question, each)) for each in (one, other)]
        lines = plans_compared.versus_table(costs[0], costs[1], self._width, (meshes[0], meshes[1]))
        if not worker.is_cancelled:
            self.app.call_from_thread(self.describe, Text("\n").join(lines))

    def action_compare(self) -> None:
        """Keep the line under the cursor, or none where it is the one that is kept."""
        found = self.chosen.value if self.chosen is not None else None
        self._beside = None if self._beside is found else found
        self.describe_chosen()

    def leave_with(self, row: ListRow) -> None:
        from shardviz.planner.search.mesh_ranking import shown_mesh

        assert self._answer is not None
        mesh = shown_mesh(self._answer.question, row.value)
        self.dismiss(with_shardings(self._resolved.shown, mesh, dict(row.value.specs)))


def _question(resolved: ResolvedProblem) -> SearchQuestion:
    """The problem with all shardings open, on any mesh with its axes of the same machine."""
    form, mesh, machine = resolved.shown, resolved.problem.mesh, resolved.machine
    if machine.assumed:
        machine = machines.assumed_machine(machine.chip, mesh.size)
    return search_answer.search_question(
        form.einsum,
        machine,
        ",".join(mesh.axis_names),
        sizes=form.sizes,
        dtype=form.dtype,
        backward=form.backward == "yes",
        remat=form.remat,
        optimizer=form.optimizer,
        microbatches=MICROBATCHES,
    )


class RankingDialog(FilteredList):
    """Leaves with the form of a sharding. A train step is ranked by its forward pass."""

    title_text = "Ways to split the arrays over this mesh"
    nothing = "No sharding has these words; take some away."
    DEFAULT_CSS = """
    RankingDialog.-broad.-high #choice { layout: vertical; }
    RankingDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    RankingDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 9; }
    RankingDialog #about { max-height: 9; }
    """

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette

    def on_mount(self) -> None:
        self.describe(Text("planning each of them …", "dim"))
        self._rank()

    @work(thread=True, exit_on_error=False)
    def _rank(self) -> None:
        worker, form, problem = get_current_worker(), self._resolved.shown, self._resolved.problem
        try:
            question = reading.problem_from_text(
                form.einsum, mesh=problem.mesh, sizes=form.sizes, dtype=form.dtype, ranked=True
            )
            found = ranking.rank(question, self._resolved.placed)
        except ShardvizError as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self.describe, Text(error_words(error)))
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, found)

    def _show(self, found: tuple[Candidate, ...]) -> None:
        head, *lines = plans_compared.ranking_rows(found, self.size.width - 8, self._palette)
        rows = zip(lines, found, strict=True)
        self.show_rows([ListRow(line, line.plain, candidate, head) for line, candidate in rows])

    def about(self, row: ListRow) -> Text:
        candidate: Candidate = row.value
        beside = cost_view.comparison_words(
            candidate.cost, pricing.price(self._resolved.plan, self._resolved.placed)
        )
        moves = caption.collectives_text(candidate.plan, self._palette)
        return Text.assemble("collectives: ", moves, f"\nbeside the plan on screen: {beside}")

    def leave_with(self, row: ListRow) -> None:
        plan = row.value.plan
        specs = {array.name: array.spec for array in plan.problem.arguments if array.spec is not None}
        self.dismiss(with_shardings(self._resolved.shown, plan.problem.mesh, specs))
