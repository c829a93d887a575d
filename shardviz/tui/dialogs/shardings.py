"""The dialog of all meshes of the machine with the best shardings of the problem: a row opens as a
problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from shardviz.forms.options import with_shardings
from shardviz.lazy_names import LazyImports
from shardviz.render.lines import READABLE
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import TABLES

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
    from shardviz.render.palette import Palette


HIGH = 20
"""Lines of a window that has room for the figures that the table leaves out."""
MICROBATCHES = 8
"""Parts of the batch in a pipeline, as of `shardviz search`."""
(COMPARE,) = TABLES["SHARDINGS"]


class ShardingsDialog(FilteredList):
    """`space` keeps a line to compare the others with, `enter` leaves with its form."""

    title_text = "Meshes and their best shardings"
    nothing = "No mesh has these words; take some away."
    commands = (OPEN, MOVES[0], COMPARE, CLOSE)
    taken = (COMPARE,)
    is_table = True

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette
        self._answer: MeshRanking | None = None
        self._beside: MeshSharding | None = None
        self._columns: int | None = None

    def on_mount(self) -> None:
        self.describe(Text("looking at the meshes …", "dim"))
        self.beside(self._search)

    def _search(self) -> Iterator[Callable[[], object]]:
        """The problem with all shardings open, on any mesh with its axes of the same machine."""
        from shardviz.planner.search.mesh_ranking import search_meshes, with_smallest_machine

        form, mesh, machine = self._resolved.shown, self._resolved.problem.mesh, self._resolved.machine
        if machine.assumed:
            machine = machines.assumed_machine(machine.chip, mesh.size)
        question = search_answer.search_question(
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
        for answer in search_meshes(question):
            words = f"{answer.looked_at:,} of {answer.meshes:,} meshes …"
            yield partial(self.describe, Text(words, "dim"))
            if answer.is_complete:
                yield partial(self._show, with_smallest_machine(answer))

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
        lines, columns = search_view.found_rows(answer.found, room, self._palette)
        if self.size.height >= HIGH:
            self._columns = columns
        self.show_table(lines, answer.found)

    def about(self, row: ListRow) -> Text | None:
        sharding: MeshSharding = row.value
        assert self._answer is not None
        if self._beside is not None and self._beside is not sharding:
            self._compare(self._answer, self._beside, sharding)
            return None
        lines = search_view.sharding_lines(self._answer, sharding, self._width, self._palette, self._columns)
        if self._beside is sharding:
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
            pricing.price(
                planner.plan(problem_of(answer.question, sharding), sharding.placed), sharding.placed
            )
            for sharding in (one, other)
        ]
        meshes = [str(shown_mesh(answer.question, sharding)) for sharding in (one, other)]
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


class RankingDialog(FilteredList):
    """Leaves with the form of a sharding. A train step is ranked by its forward pass."""

    title_text = "Ways to split the arrays over this mesh"
    nothing = "No sharding has these words; take some away."
    is_table = True

    def __init__(self, resolved: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._resolved, self._palette = resolved, palette

    def on_mount(self) -> None:
        self.describe(Text("planning each of them …", "dim"))
        self.beside(self._rank)

    def _rank(self) -> Iterator[Callable[[], object]]:
        form, problem = self._resolved.shown, self._resolved.problem
        question = reading.problem_from_text(
            form.einsum, mesh=problem.mesh, sizes=form.sizes, dtype=form.dtype, ranked=True
        )
        candidates = ranking.rank(question, self._resolved.placed)
        lines = plans_compared.ranking_rows(candidates, self.size.width - 8, self._palette)
        yield partial(self.show_table, lines, candidates)

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
