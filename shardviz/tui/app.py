"""The application: what is on screen, undo, and the commands that work everywhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal

from shardviz.errors import ShardvizError
from shardviz.tui.app_commands import APP
from shardviz.tui.command import Command, bindings
from shardviz.tui.editor import Editor
from shardviz.tui.headline import Headline
from shardviz.tui.key_footer import KeyFooter
from shardviz.tui.pane import Pane
from shardviz.tui.problem.panel import ProblemPanel
from shardviz.tui.registry import COMMANDS
from shardviz.tui.screen_tabs import ScreenTabs
from shardviz.tui.too_small import TooSmall, is_too_small

if TYPE_CHECKING:
    from textual.command import Provider
    from textual.dom import DOMNode


PANES = {"layout": "LayoutPane", "plan": "PlanPane", "step": "StepPane", "compiler": "CompilerPane"}
"""The screens' classes by area, each in the module `pane` of its folder, loaded when it is first shown."""
TALL = 30
"""Lines from which on there is room for blank ones around the screen."""
WIDE = 80
"""Columns from which on the problem stands beside the screen; on fewer it takes its place."""


def command_search() -> type[Provider]:
    """The palette's source, loaded when the palette first opens."""
    from shardviz.tui.command_search import CommandSearch

    return CommandSearch


class ShardvizApp(Editor):
    """The editor on the left, one of four screens on the right, the problem above, the keys below."""

    SUSPENDED_SCREEN_CLASS = "behind"
    CSS = """
    .behind > KeyFooter { visibility: hidden; }
    Headline { height: 1; }
    KeyFooter { height: 1; dock: bottom; }
    ProblemPanel { width: 36; margin: 0 1 0 0; }
    .tall #body { margin: 1 0; }
    .narrow ProblemPanel { width: 1fr; margin: 0; }
    #body > * { min-width: 36; min-height: 6; }
    """
    BINDINGS = bindings(APP)
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar = {command_search}
    TITLE = "shardviz"

    _is_at_problem = False

    @property
    def pane(self) -> Pane:
        """The screen that is shown."""
        return self.screen_stack[0].query_one(f"#{self._shown}", Pane)

    @property
    def panel(self) -> ProblemPanel:
        """The problem's fields."""
        return self.screen_stack[0].query_one(ProblemPanel)

    def compose(self) -> ComposeResult:
        yield Headline()
        yield ScreenTabs()
        with Horizontal(id="body"):
            yield ProblemPanel()
            yield new_pane(self._shown)
        yield KeyFooter()

    def on_mount(self) -> None:
        self._is_at_problem = self.size.width >= WIDE and self._shown == "layout"
        self._arrange()
        self.show_scene()
        self.call_after_refresh(self.begin)

    def show_scene(self) -> None:
        main = self.screen_stack[0]
        main.query_one(Headline).show_scene(self.scene, self.palette)
        self.panel.show_scene(self.scene)
        self.pane.show_scene(self.scene)
        self._show_keys()

    @property
    def commands(self) -> list[Command]:
        """The commands that work now: help, those of the part with the focus, those that work everywhere."""
        part = self.panel if self._is_at_problem else self.pane
        if part.typing:
            return list(part.typing)
        taken = self.panel.letters.keys() if self._is_at_problem else ()
        free = (command.without(taken) for command in (APP[0], *part.commands, *APP[1:]))
        return [command for command in free if command is not None]

    def _show_keys(self) -> None:
        main = self.screen_stack[0]
        main.query_one(ScreenTabs).show(self._shown, self._is_at_problem)
        main.query_one(KeyFooter).show_commands(self.commands)

    async def on_key(self, event: events.Key) -> None:
        """A letter may name an axis; a key that means nothing to the problem goes to the screen beside it."""
        if len(self.screen_stack) > 1:
            return
        if self._is_at_problem and self.panel.takes(event):
            event.prevent_default()
            return
        if not self._is_at_problem or self.panel.is_typing or event.key in self.screen.active_bindings:
            return
        if not self.pane.display:
            return
        for command in COMMANDS:
            if command.area == self._shown and event.key in command.keys:
                event.prevent_default()
                await self.run_action(command.name, self.pane)
                return

    def on_commands_changed(self) -> None:
        if self.screen_stack:  # a screen may say it while the application ends
            self._show_keys()

    def on_descendant_focus(self) -> None:
        # The focus may still move while the application ends.
        focused = self.screen_stack[0].focused if self.screen_stack else None
        if focused is not None:
            self._is_at_problem = self.panel in focused.ancestors_with_self
            self._show_keys()

    def action_problem(self) -> None:
        """To the problem, or back from it to the screen."""
        self._is_at_problem = not self._is_at_problem
        self._arrange()

    def _arrange(self) -> None:
        """Problem and screen side by side, or the one with the focus alone in a narrow window."""
        is_wide, main = self.size.width >= WIDE, self.screen_stack[0]
        main.set_class(not is_wide, "narrow")
        main.set_class(self.size.height >= TALL, "tall")
        self.panel.display = is_wide or self._is_at_problem
        self.pane.display = is_wide or not self._is_at_problem
        part = self.panel if self._is_at_problem else self.pane
        if main.focused is None or part not in main.focused.ancestors_with_self:
            main.set_focus(next((widget for widget in part.query("*") if widget.focusable), None))

    def on_resize(self, event: events.Resize) -> None:
        if not is_too_small(*event.size):
            self.call_next(self._arrange)
        elif not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

    def on_editor_answers_changed(self) -> None:
        if self.screen_stack:  # an answer may come while the application ends
            self.pane.show_answers(self.desk.answers)

    async def action_show(self, name: str) -> None:
        """Put one of the four screens on the right."""
        body = self.screen_stack[0].query_one("#body")
        self.pane.display = False
        self._shown = name
        if body.query(f"#{name}"):
            self.pane.display = True
        else:
            await body.mount(new_pane(name))
        self.pane.show_scene(self.scene)
        self.pane.show_answers(self.desk.answers)
        self._is_at_problem = False
        self._arrange()
        self._show_keys()

    async def run_command(self, command: Command) -> None:
        """Run a command from wherever one is, on its own screen."""
        widget: DOMNode = self
        if command.area in PANES:
            await self.action_show(command.area)
            widget = self.pane
        elif command.area == "problem":
            if not self._is_at_problem:
                self.action_problem()
            widget = self.panel
        await self.run_action(command.name, widget)

    def action_help(self) -> None:
        from shardviz.tui.dialogs.help import HelpDialog

        areas = (self._shown, "problem")
        self.push_screen(HelpDialog(areas[::-1] if self._is_at_problem else areas))

    def action_examples(self) -> None:
        from shardviz.tui.dialogs.examples import ExamplesDialog

        self.push_screen(ExamplesDialog())

    def jax_code(self) -> str:
        """The JAX program of what is on screen. Raises `ShardvizError` where it would be too large to run."""
        from shardviz.render.code.problem_code import problem_code

        return self.pane.jax_code() or problem_code(self.scene.problem)

    def action_code(self) -> None:
        from shardviz.tui.dialogs.code import CodeDialog

        try:
            self.push_screen(CodeDialog(self.jax_code()))
        except ShardvizError as error:
            from shardviz.drafts.wording import error_words

            self.notify(error_words(error), severity="warning")

    def action_export(self, suffix: str = "svg") -> None:
        from shardviz.tui.dialogs.export import ExportDialog
        from shardviz.tui.dialogs.exports import exports_of

        self.push_screen(ExportDialog(exports_of(self, self.pane), f"shardviz-{self._shown}", suffix))

    def action_command_line(self) -> None:
        from shardviz.drafts.words import command_line
        from shardviz.tui.dialogs.command_line import CommandLineDialog

        draft = self.scene.shown
        is_collective = self._shown == "step" and draft.collective is not None
        usual = command_line(draft, "step" if is_collective else "explain")
        self.push_screen(CommandLineDialog(self.pane.command_words() or usual))


def new_pane(area: str) -> Pane:
    """The screen of an area, with the area as its id."""
    pane: Pane = getattr(import_module(f"shardviz.tui.{area}.pane"), PANES[area])()
    return pane
