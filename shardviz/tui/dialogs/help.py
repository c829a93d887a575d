"""Help for the screen that is shown: how to read it, and which keys work."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widget import Widget

from shardviz.render.key_list import Keys, key_list
from shardviz.render.lines import sentence
from shardviz.tui.dialogs.dialog import CLOSE, Dialog
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import AREAS, COMMANDS, Command, bindings

READING = {
    "problem": (
        "What is asked. The arrows go over its cells: an axis of the mesh, a dimension of an array, a text."
        " Single keys change the cell under the cursor, and enter lets you type it in any notation."
    ),
    "layout": (
        "Which device holds what: each tile is a part of an array, its colour and Greek letter name the data,"
        " the numbers in it the devices. One letter on several devices is a copy; ╱ marks sums to be added."
    ),
    "plan": (
        "The steps from split operands to the split result, each with its reason, its bytes and the least"
        " that any device must send; beside it what each compiler inserted, and why that differs (≠)."
    ),
    "step": (
        "One collective, round by round: a row or a box is a device, a letter a chunk of the data. ▸ has just"
        " arrived, ╱3+7╱ is a partial sum with its addends, and below runs the account of bytes."
    ),
    "compiler": (
        "The program that a compiler made, its collectives marked; to the left its passes, from Shardy's"
        " propagation to the final schedule. Slower targets answer after a pause in typing."
    ),
    "lesson": (
        "First something to see, then questions: predict, and the answer shows beside the picture, in which"
        " you can move (p goes there and back). Then change the sandbox until its goal is met. Nothing goes"
        " on by itself. Before a class: larger letters are the terminal's business, mostly ctrl and +."
    ),
}
"""How to read each part, in a sentence or two."""

CLOSE_HELP = Command(
    "dialog", "close", ("question_mark", "f1", "escape", "q"), "Close", CLOSE.help, "close", "?"
)
SCROLL = Command("dialog", "scroll", (), "Scroll", "See what is below.", "scroll", "↑↓")


class HelpDialog(Dialog):
    """The keys of some areas, first of that which has the focus, then those that work everywhere."""

    commands = (CLOSE_HELP, SCROLL)
    BINDINGS = bindings([CLOSE_HELP])

    def __init__(self, areas: Sequence[str]) -> None:
        super().__init__()
        self._areas = areas
        self.title_text = f"Help: {AREAS[areas[0]]}"

    def content(self) -> Sequence[Widget]:
        return [LinesView(id="keys")]

    def on_mount(self) -> None:
        self.query_one(LinesView).focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.query_one(LinesView)
        view.show(TextLines(help_lines(self._areas, max(20, view.size.width - 1))))


def help_lines(areas: Sequence[str], width: int) -> list[Text]:
    """What the dialog says, in lines of `width` columns."""
    sections = [_keys(each) for each in (*areas, "app")]
    return [
        *sentence(READING[areas[0]], width),
        Text(),
        *key_list([section for section in sections if section.rows], width),
    ]


def _keys(area: str) -> Keys:
    rows = tuple(
        (command.key_text, command.title, command.help) for command in COMMANDS if command.area == area
    )
    return Keys(AREAS[area], rows)
