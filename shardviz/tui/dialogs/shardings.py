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
from shardviz.render.lines import READABLE
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import commands_of

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.search import MeshRanking, MeshSharding, SearchQuestion
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
        from shardviz.planner.search import search_meshes, with_smallest_machine

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
        from shardviz.render.search_view import (
            found_rows,
            infeasible_words,
            larger_machine_words,
            shown_columns,
        )

        self._answer = answer
        if not answer.found:
            self.describe(Text(f"{infeasible_words(answer)}\n{larger_machine_words(answer)}".strip()))
            return
        room = self.size.width - 8
        if self.size.height >= HIGH:
            self._columns = shown_columns(answer.found, room, self._palette)
        head, *lines = found_rows(answer.found, room, self._palette)
        rows = zip(lines, answer.found, strict=True)
        self.show_rows([ListRow(line, line.plain, found, head) for line, found in rows])

    def about(self, row: ListRow) -> Text | None:
        from shardviz.render.search_view import sharding_lines

        found: MeshSharding = row.value
        assert self._answer is not None
        if self._beside is not None and self._beside is not found:
            self._compare(self._answer, self._beside, found)
            return None
        lines = sharding_lines(self._answer, found, self._width, self._palette, self._columns)
        if self._beside is found:
            lines.insert(0, Text("kept: choose another to stand beside it", "dim"))
        return Text("\n").join(lines)

    @property
    def _width(self) -> int:
        return min(self.query_one("#choice").content_size.width, READABLE)

    @work(thread=True, exit_on_error=False, exclusive=True, group="compare")
    def _compare(self, answer: MeshRanking, one: MeshSharding, other: MeshSharding) -> None:
        """Plan both, and show the figures of the plans side by side."""
        from shardviz.planner import plan
        from shardviz.planner.pricing.costs import price
        from shardviz.planner.search import problem_of, shown_mesh
        from shardviz.render.plans_compared import versus_table

        worker = get_current_worker()
        costs = [
            price(plan(problem_of(answer.question, each), each.placed), each.placed) for each in (one, other)
        ]
        meshes = [str(shown_mesh(answer.question, each)) for each in (one, other)]
        lines = versus_table(costs[0], costs[1], self._width, (meshes[0], meshes[1]))
        if not worker.is_cancelled:
            self.app.call_from_thread(self.describe, Text("\n").join(lines))

    def action_compare(self) -> None:
        """Keep the line under the cursor, or none where it is the one that is kept."""
        found = self.chosen.value if self.chosen is not None else None
        self._beside = None if self._beside is found else found
        self.describe_chosen()

    def leave_with(self, row: ListRow) -> None:
        from shardviz.planner.search import shown_mesh

        assert self._answer is not None
        mesh = shown_mesh(self._answer.question, row.value)
        self.dismiss(with_shardings(self._resolved.shown, mesh, dict(row.value.specs)))


def _question(resolved: ResolvedProblem) -> SearchQuestion:
    """The problem with all shardings open, on any mesh with its axes of the same machine."""
    from shardviz.answers.search import search_question
    from shardviz.hardware.machine import assumed_machine

    form, mesh, machine = resolved.shown, resolved.problem.mesh, resolved.machine
    if machine.assumed:
        machine = assumed_machine(machine.chip, mesh.size)
    return search_question(
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
