"""The list of questions, of sessions before too: one opens again, or stands beside the one that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from shardviz.forms.questions import earlier_questions, is_same_question, what_differs
from shardviz.render.cost_view import machine_words, total_words
from shardviz.render.lines import READABLE, sentence
from shardviz.render.plans_compared import versus_table
from shardviz.render.questions_view import question_rows
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, OPEN, FilteredList, ListRow
from shardviz.tui.registry import commands_of

if TYPE_CHECKING:
    from shardviz.forms.form import History
    from shardviz.forms.questions import AskedQuestions
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.render.palette import Palette

(COMPARE,) = commands_of(
    "dialog",
    ("compare", "equals_sign", "Compare", "Put it beside the question that is shown.", "compare", "="),
)


class QuestionsDialog(FilteredList):
    """`=` puts the line beside the question that is shown, or no longer, `enter` leaves with its form."""

    title_text = "Questions"
    nothing = "No question has these words; take some away."
    commands = (OPEN, MOVES[0], COMPARE, CLOSE)
    taken = (COMPARE,)
    DEFAULT_CSS = """
    QuestionsDialog.-broad.-high #choice { layout: vertical; }
    QuestionsDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    QuestionsDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 60%; }
    QuestionsDialog #about { max-height: 60%; }
    QuestionsDialog.comparing #about { max-height: 75%; }
    """

    def __init__(
        self, asked: AskedQuestions, history: History, now: ResolvedProblem, palette: Palette
    ) -> None:
        super().__init__()
        self._asked, self._history, self._now, self._palette = asked, history, now, palette
        self._compares = False

    def on_mount(self) -> None:
        self.describe(Text("No question has been answered yet."))
        self.call_after_refresh(self._list)
        self._look_back()

    @work(thread=True, exit_on_error=False)
    def _look_back(self) -> None:
        """Find what was asked in sessions before: planning it takes a while."""
        for resolved in earlier_questions(self._history, self._asked):
            if get_current_worker().is_cancelled:
                return
            self.app.call_from_thread(self._asked.add_earlier, resolved)
        self.app.call_from_thread(self._list)

    def _list(self) -> None:
        """The questions, the cursor where it is, or on the newest that is not shown now."""
        questions = self._asked.newest_first
        if not questions or not self.is_attached:
            return
        width = self.choices.content_size.width - 2
        head, *lines = question_rows(questions, self._now, width, self._palette)
        rows = zip(lines, questions, strict=True)
        first = next((each for each in questions if not is_same_question(each, self._now)), None)
        if self.chosen is not None:
            first = self.chosen.value
        self.show_rows([ListRow(line, line.plain, each, head) for line, each in rows], first)

    def about(self, row: ListRow) -> Text:
        chosen: ResolvedProblem = row.value
        width = min(self.query_one("#choice").content_size.width, READABLE)
        if self._compares:
            names = [
                "  ".join(part.text for part in what_differs(*pair))
                for pair in ((chosen, self._now), (self._now, chosen))
            ]
            lines = versus_table(chosen.cost, self._now.cost, width, (names[0], names[1]))
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
