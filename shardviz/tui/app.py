"""The application: what is on screen, undo, and the commands that work everywhere."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

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
from shardviz.tui.screen_tabs import WIDE, ScreenTabs
from shardviz.tui.too_small import TooSmall, is_too_small

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from shardviz.compiler import Worker
    from shardviz.drafts.form import ProblemForm
    from shardviz.drafts.share import Shared
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson
    from shardviz.tui.lesson.widgets import Side


PANES = {"layout": "LayoutPane", "plan": "PlanPane", "step": "StepPane", "compiler": "CompilerPane"}
"""The screens' classes by area, each in the module `pane` of its folder, loaded when it is first shown."""
TALL = 30
"""Lines from which on there is room for blank ones around the screen."""


class ShardvizApp(Editor):
    """The editor on the left, one of four screens on the right, the problem above, the keys below."""

    SUSPENDED_SCREEN_CLASS = "behind"
    CSS = """
    .behind > KeyFooter { visibility: hidden; }
    Headline { height: 1; }
    KeyFooter { height: 1; dock: bottom; }
    ProblemPanel, Guide { width: 36; margin: 0 1 0 0; }
    Guide.presented { width: 45%; }
    .tall #body { margin: 1 0; }
    .narrow ProblemPanel, .narrow Guide { width: 1fr; margin: 0; }
    .lesson.low ScreenTabs, .lesson.low.sandbox Headline { display: none; }
    #body > * { min-width: 36; min-height: 6; }
    """
    BINDINGS = bindings(APP)
    TITLE = "shardviz"

    is_left = False
    """Whether the keys go to the left: to the problem, or to what a lesson has in its place."""

    def __init__(
        self,
        draft: ProblemForm | None = None,
        screen: str = "layout",
        worker: Worker | None = None,
        is_guest: bool = False,
        lesson: Lesson | Attempt | None = None,
        present: bool = False,
        warning: str = "",
    ) -> None:
        """Open on a draft, or in a lesson: to learn, where it was left, or to `present` it to a class.

        Of an attempt that somebody has sent, stage and sandbox are taken over. A `warning` is shown first.
        """
        if lesson is not None:
            from shardviz.lessons.attempt import Attempt

            screen = (lesson.lesson if isinstance(lesson, Attempt) else lesson).screen
        super().__init__(draft, screen, worker, is_guest)
        self._opening, self._is_presenting, self._warning = lesson, present, warning

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

    async def on_mount(self) -> None:
        self.is_left = not self.is_narrow and self._shown == "layout"
        self._arrange()
        self.show_scene()
        if self._opening is not None:
            await self.open_lesson(self._opening, self._is_presenting)
        if self._warning:
            self.notify(self._warning, severity="warning", timeout=15)
        self.call_after_refresh(self.begin)

    @property
    def is_narrow(self) -> bool:
        """Whether there is room for the problem or the screen, not for both."""
        return self.size.width < WIDE

    @property
    def left(self) -> ProblemPanel | Side:
        """The problem, or what a lesson has in its place."""
        return (self.lesson and self.lesson.left) or self.panel

    @property
    def right(self) -> Pane | Side:
        """The screen that is shown, or what a lesson has in its place."""
        return (self.lesson and self.lesson.right) or self.pane

    def show_scene(self) -> None:
        self._show_headline()
        self.panel.show_scene(self.scene)
        self.pane.show_scene(self.scene)
        if self.lesson is not None:
            self.lesson.show_scene(self.scene)
        self._show_keys()

    def _show_headline(self) -> None:
        """Above the player stands what it plays."""
        line = self.screen_stack[0].query_one(Headline)
        line.show_scene(self.scene, self.palette, of_collective=self._shown == "step")

    @property
    def commands(self) -> list[Command]:
        """The commands that work now: help, the lesson's, those of the part with the focus, those that work
        everywhere."""
        part = self.left if self.is_left else self.right
        if part.typing:
            return list(part.typing)
        letters = self.panel.letters.keys() if part is self.panel else set()
        everywhere = [APP[0], *part.commands, *(each for each in APP[1:] if self._may(each))]
        if self.lesson is not None:
            everywhere = self.lesson.commands_among(everywhere)
        free = (command.without(letters) for command in everywhere)
        return [command for command in free if command is not None]

    def _may(self, command: Command) -> bool:
        """Whether who sits here may use it: a visitor has no files."""
        return not (self.is_guest and command.name in ("export", "restore"))

    def _show_keys(self) -> None:
        main = self.screen_stack[0]
        left = "Problem" if self.left is self.panel else "Lesson"
        main.query_one(ScreenTabs).show(self._shown, self.is_left, left)
        main.query_one(KeyFooter).show_commands(self.commands)

    async def on_key(self, event: events.Key) -> None:
        """A letter may name an axis; a key that means nothing to the problem goes to the screen beside it."""
        if len(self.screen_stack) > 1:
            return
        part = self.left if self.is_left else self.right
        if part is self.panel and self.panel.takes(event):
            event.prevent_default()
            return
        meant = self.lesson.command_of(event) if self.lesson is not None and not part.typing else None
        if meant is not None:
            event.prevent_default()
            await self.run_action(meant.name, self)
            return
        if not self.is_left or self.panel.is_typing or event.key in self.screen.active_bindings:
            return
        if not self.pane.display:
            return
        for command in COMMANDS:
            if command.area == self._shown and event.key in command.keys:
                event.prevent_default()
                await self.run_action(command.name, self.pane)
                return

    def on_commands_changed(self) -> None:
        self._show_keys()

    def on_descendant_focus(self) -> None:
        focused = self.screen_stack[0].focused
        if focused is not None:
            self.is_left = self.left in focused.ancestors_with_self
            self._show_keys()

    def action_problem(self) -> None:
        """To the problem, or back from it to the screen."""
        if self.lesson is None or self.lesson.turn:
            self.face(not self.is_left)

    def face(self, is_left: bool) -> None:
        """Have the keys go to the left or to the right."""
        self.is_left = is_left
        self._arrange()
        self._show_keys()

    def _arrange(self) -> None:
        """Left and right side by side, or the one with the focus alone in a narrow window."""
        main, left, right = self.screen_stack[0], self.left, self.right
        main.set_class(self.is_narrow, "narrow")
        main.set_class(self.size.height >= TALL, "tall")
        main.set_class(self.lesson is not None, "lesson")
        part = left if self.is_left else right
        shown = {part} if self.is_narrow else {left, right}
        for widget in main.query_one("#body").children:
            widget.display = widget in shown
        if main.focused is None or part not in main.focused.ancestors_with_self:
            main.set_focus(next((widget for widget in part.query("*") if widget.focusable), None))

    def on_resize(self, event: events.Resize) -> None:
        if not is_too_small(*event.size):
            self.call_next(self._arrange)
            if self.lesson is not None:
                self.call_next(self.lesson.draw)
        elif not isinstance(self.screen, TooSmall):
            self.push_screen(TooSmall())

    def on_driver_signal_resume(self) -> None:
        """Draw everything: a terminal that was left for a while, and entered afresh, is empty."""
        self.refresh(layout=True)

    def on_editor_answers_changed(self) -> None:
        self.pane.show_answers(self.queries.answers)

    async def action_show(self, name: str) -> None:
        """Put one of the four screens on the right, and the keys there."""
        if self._is_kept_back(name):
            return
        await self.put_on(name)
        self.face(is_left=False)

    def _is_kept_back(self, area: str = "") -> bool:
        """Whether a lesson keeps a screen back for now, or, without one, what would show the answer; it says
        why."""
        why = self.lesson.refusal(area) if self.lesson is not None else ""
        if why:
            self.notify(why)
        return bool(why)

    async def put_on(self, name: str) -> None:
        """Make one of the four screens the one that is shown."""
        body = self.screen_stack[0].query_one("#body")
        self.pane.display = False
        self._shown = name
        if body.query(f"#{name}"):
            self.pane.display = True
        else:
            await body.mount(new_pane(name))
        self._show_headline()
        self.pane.show_scene(self.scene)
        self.pane.show_answers(self.queries.answers)

    async def run_command(self, command: Command) -> None:
        """Run a command from wherever one is, on its own screen."""
        widget: DOMNode = self
        if command.area in PANES:
            await self.action_show(command.area)
            if self.right is not self.pane or self._shown != command.area:
                return
            widget = self.pane
        elif command.area == "problem":
            if not self.is_left:
                self.action_problem()
            widget = self.panel
        elif command.area == "lesson" and self.lesson is None:
            self.notify("No lesson is open; L lists them.")
            return
        if widget is self.panel and self.left is not self.panel:
            self.notify("The problem opens with the sandbox, later in the lesson.")
            return
        await self.run_action(command.name, widget)

    def action_help(self) -> None:
        from shardviz.tui.dialogs.help import HelpDialog

        areas = (self._shown, "problem")
        lesson = ("lesson",) if self.lesson is not None else ()
        self.push_screen(HelpDialog((*lesson, *(areas[::-1] if self.is_left else areas))))

    def action_command_palette(self) -> None:
        from shardviz.tui.command_search import Palette

        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def action_examples(self) -> None:
        from shardviz.tui.dialogs.examples import ExamplesDialog

        self.push_screen(ExamplesDialog())

    def action_lessons(self) -> None:
        from shardviz.tui.lesson.course import LessonsDialog

        self.push_screen(LessonsDialog())

    async def open_lesson(self, lesson: Lesson | Attempt, is_presented: bool = False) -> None:
        from shardviz.tui.lesson.opening import open_lesson

        await open_lesson(self, lesson, is_presented)

    async def action_lesson(self, what: str) -> None:
        """A command of the lesson that is open."""
        if self.lesson is not None:
            await self.lesson.do(what)

    def shared(self) -> Shared:
        """What is on screen, for somebody else to open."""
        from shardviz.drafts.share import Shared

        return self.lesson.shared() if self.lesson is not None else Shared(self.scene.draft, self._shown)

    def jax_code(self) -> str:
        """The JAX program of what is on screen. Raises `ShardvizError` where it would be too large to run."""
        from shardviz.codegen.problem import problem_code

        program = self.lesson.program if self.lesson is not None else ""
        return program or self.pane.jax_code() or problem_code(self.scene.problem)

    def action_code(self) -> None:
        if self._is_kept_back():
            return
        from shardviz.tui.dialogs.code import CodeDialog

        try:
            self.push_screen(CodeDialog(self.jax_code()))
        except ShardvizError as error:
            from shardviz.drafts.wording import error_words

            self.notify(error_words(error), severity="warning")

    def action_export(self, suffix: str = "svg") -> None:
        if self._is_kept_back():
            return
        if self.is_guest:
            self.notify(
                "A visitor's session writes no files; c shows the code, y copies it.", severity="warning"
            )
            return
        self.clear_notifications()
        from shardviz.tui.dialogs.export import ExportDialog
        from shardviz.tui.dialogs.exports import exports_of

        self.push_screen(ExportDialog(exports_of(self, self.pane), f"shardviz-{self._shown}", suffix))

    def on_paste(self) -> None:
        """Nobody has taken what was pasted."""
        self.notify("No field is open: enter opens the one under the cursor, then paste.")

    def command_words(self) -> str:
        from shardviz.drafts.command_line import to_command_line

        draft = self.scene.shown
        is_collective = self._shown == "step" and draft.collective is not None
        return self.pane.command_words() or to_command_line(draft, "step" if is_collective else "explain")

    def action_command_line(self) -> None:
        from shardviz.tui.dialogs.command_line import CommandLineDialog

        words = self.lesson.command_words if self.lesson is not None else ""
        if words or not self._is_kept_back():
            shared = self.shared()
            self.push_screen(CommandLineDialog(words or self.command_words(), shared))
            if self.lesson is not None and not shared.lesson:
                self.notify("The lesson's file is not in the string, only its problem is.")


def new_pane(area: str) -> Pane:
    """The screen of an area, with the area as its id."""
    pane: Pane = getattr(import_module(f"shardviz.tui.{area}.pane"), PANES[area])()
    return pane
