"""The dialog of the questions of this session: one opens again, or stands beside the one that is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from shardviz.forms.questions import what_differs
from shardviz.render.cost_view import machine_words, total_words
from shardviz.render.lines import READABLE, sentence
from shardviz.render.questions_view import question_rows
from shardviz.render.versus_view import versus_table
from shardviz.tui.dialogs.dialog import CLOSE
from shardviz.tui.dialogs.lists import CHOOSE, OPEN, ListDialog
from shardviz.tui.registry import bindings, commands_of

if TYPE_CHECKING:
    from shardviz.forms.questions import AskedQuestions
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.render.palette import Palette

(COMPARE,) = commands_of(
    "dialog",
    ("compare", "equals_sign", "Compare", "Put it beside the question that is shown.", "compare", "="),
)


class QuestionsDialog(ListDialog):
    """Arrows choose, `=` puts the line beside the question that is shown, or no longer, `enter` leaves with
    its form."""

    title_text = "Questions of this session"
    commands = (OPEN, CHOOSE, COMPARE, CLOSE)
    BINDINGS = bindings([COMPARE])
    DEFAULT_CSS = """
    QuestionsDialog.-broad.-high #choice { layout: vertical; }
    QuestionsDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    QuestionsDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 60%; }
    QuestionsDialog #about { max-height: 60%; }
    """

    def __init__(self, asked: AskedQuestions, now: ResolvedProblem, palette: Palette) -> None:
        super().__init__()
        self._questions, self._now, self._palette = asked.newest_first, now, palette
        self._compares = False

    def on_mount(self) -> None:
        self.choices.focus()
        if self._questions:
            self.call_after_refresh(self._list)
        else:
            self.describe(Text("No question has been answered yet."))

    def _list(self) -> None:
        width = self.choices.content_size.width - 2
        head, *rows = question_rows(self._questions, self._now, width, self._palette)
        self.choices.add_option(Option(head, disabled=True))
        self.choices.add_options([Option(row) for row in rows])
        self.choices.highlighted = min(2, len(rows)) or None

    @property
    def _chosen(self) -> ResolvedProblem | None:
        place = self.choices.highlighted
        return self._questions[place - 1] if place else None

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        chosen = self._chosen
        if chosen is None:
            return
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
        self.describe(Text("\n").join(lines))

    def action_compare(self) -> None:
        self._compares = not self._compares
        self._describe()

    @on(OptionList.OptionSelected)
    def _open(self) -> None:
        if self._chosen is not None:
            self.dismiss(self._chosen.draft)
