"""The dialog of all ways to split the arrays over the mesh on screen: a line opens as the problem."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.options import with_shardings
from shardviz.forms.wording import error_words
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.ranking import Candidate
    from shardviz.render.palette import Palette


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
        from shardviz.planner import rank
        from shardviz.planner.problem.reading import problem_from_text

        worker, form, problem = get_current_worker(), self._resolved.shown, self._resolved.problem
        try:
            question = problem_from_text(
                form.einsum, mesh=problem.mesh, sizes=form.sizes, dtype=form.dtype, ranked=True
            )
            found = rank(question, self._resolved.placed)
        except ShardvizError as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self.describe, Text(error_words(error)))
            return
        if not worker.is_cancelled:
            self.app.call_from_thread(self._show, found)

    def _show(self, found: tuple[Candidate, ...]) -> None:
        from shardviz.render.plans_compared import ranking_rows

        head, *lines = ranking_rows(found, self.size.width - 8, self._palette)
        rows = zip(lines, found, strict=True)
        self.show_rows([ListRow(line, line.plain, candidate, head) for line, candidate in rows])

    def about(self, row: ListRow) -> Text:
        from shardviz.planner.pricing.costs import price
        from shardviz.render.caption import collectives_text
        from shardviz.render.cost_view import comparison_words

        candidate: Candidate = row.value
        beside = comparison_words(candidate.cost, price(self._resolved.plan, self._resolved.placed))
        moves = collectives_text(candidate.plan, self._palette)
        return Text.assemble("collectives: ", moves, f"\nbeside the plan on screen: {beside}")

    def leave_with(self, row: ListRow) -> None:
        plan = row.value.plan
        specs = {array.name: array.spec for array in plan.problem.arguments if array.spec is not None}
        self.dismiss(with_shardings(self._resolved.shown, plan.problem.mesh, specs))
