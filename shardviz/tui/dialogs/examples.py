"""The menu of examples: by document, found by typing, with what each shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual import on
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from shardviz.drafts.examples import Example, examples
from shardviz.drafts.form import ProblemForm
from shardviz.tui.dialogs.list_dialog import ListDialog
from shardviz.tui.registry import AREAS, Command, bindings

OPEN = Command("dialog", "open", ("enter",), "Open", "Put the example on screen.", "open")
DOWN = Command("dialog", "list('cursor_down')", ("down",), "Down", "The next example.", "choose", "↑↓")
UP = Command("dialog", "list('cursor_up')", ("up",), "Up", "The example before.")
PAGE_DOWN = Command("dialog", "list('page_down')", ("pagedown",), "Page down", "A page down.")
PAGE_UP = Command("dialog", "list('page_up')", ("pageup",), "Page up", "A page up.")
CLOSE = Command("dialog", "close", ("escape",), "Close", "Back to the screen.", "close", "esc")


class ExamplesDialog(ListDialog):
    """Letters narrow the list, arrows choose, `enter` leaves with the example."""

    title_text = "Examples"
    commands = (OPEN, DOWN, CLOSE)
    BINDINGS = bindings([DOWN, UP, PAGE_DOWN, PAGE_UP, CLOSE])
    DEFAULT_CSS = """
    ExamplesDialog Input { border: none; height: 1; padding: 0; background: $panel; }
    ExamplesDialog.-high Input { margin-bottom: 1; }
    ExamplesDialog OptionList > .option-list--option-disabled { color: $primary; text-style: bold; }
    ExamplesDialog #about { max-height: 5; }
    ExamplesDialog.-low #about { max-height: 4; }
    ExamplesDialog.-broad.-high OptionList { width: 46; }
    ExamplesDialog.-broad.-high #about { max-height: 100%; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[Example] = []

    def content(self) -> Sequence[Widget]:
        choices = OptionList(markup=False, compact=True)
        choices.can_focus = False
        return [
            Input(placeholder="type to find", select_on_focus=False, compact=True),
            Vertical(choices, Static(id="about"), id="choice"),
        ]

    def on_mount(self) -> None:
        self._list("")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, typed: str) -> None:
        words = typed.lower().split()
        self._shown = [example for example in examples() if _fits(example, words)]
        options: list[Option] = []
        document = ""
        for example in self._shown:
            if example.document != document:
                document = example.document
                options.append(Option(Text(document, "bold"), disabled=True))
            options.append(Option(Text(f"  {example.title}"), id=example.title))
        choices = self.query_one(OptionList)
        choices.clear_options()
        choices.add_options(options)
        choices.highlighted = 1 if options else None
        choices.scroll_home(animate=False)
        self._describe()

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        example = self._chosen()
        about = self.query_one("#about", Static)
        if example is None:
            about.update(Text("No example has these words; take some away."))
            return
        about.update(
            Text.assemble(
                (f"{problem_line(example.draft)}\n", "bold"),
                f"{example.look}",
                (f"\nOpens {AREAS[example.screen]}.", "dim"),
            )
        )

    def _chosen(self) -> Example | None:
        choices = self.query_one(OptionList)
        if choices.highlighted is None or not self._shown:
            return None
        wanted = choices.get_option_at_index(choices.highlighted).id
        return next((example for example in self._shown if example.title == wanted), None)

    async def action_list(self, move: str) -> None:
        """Do in the list what the key would do if the list had the focus."""
        await self.query_one(OptionList).run_action(move)

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def _open(self) -> None:
        example = self._chosen()
        if example is not None:
            self.dismiss(example)


def problem_line(draft: ProblemForm) -> str:
    """The problem in a line: the collective, or einsum and specs; then the mesh."""
    mesh = draft.mesh.replace(",", " ")
    if draft.collective is not None:
        return f"{draft.collective.op}   {mesh}"
    return f"{draft.einsum}   {', '.join(draft.specs[:-1])} -> {draft.specs[-1]}   {mesh}"


def _fits(example: Example, words: Sequence[str]) -> bool:
    """Whether every word occurs in what the example says of itself."""
    said = f"{example.document} {example.title} {example.look}".lower()
    return all(word in said for word in words)
