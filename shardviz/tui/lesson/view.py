"""The application while a lesson is open in it: what each stage puts on screen, and what its keys do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Static

from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.wording import as_sentence, error_words
from shardviz.lessons.attempt import Attempt, afresh, begin, shared_of, with_own
from shardviz.render.lesson_view import bar, guide_page, strip_lines
from shardviz.render.page import highlighted
from shardviz.render.problem_picture import chain_lines
from shardviz.tui.lesson.controller import NOT_REVEALED, LessonController
from shardviz.tui.lesson.written import LearnersText
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.opening.pages import LineEntry
from shardviz.tui.pane import Side
from shardviz.tui.registry import LESSON, Command
from shardviz.tui.themes import PROJECTOR, code_style_of

if TYPE_CHECKING:
    from textual import events

    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.forms.share import Shared
    from shardviz.lessons.lesson import Lesson
    from shardviz.lessons.writing import WritingCheck
    from shardviz.tui.lesson.progress import LessonProgress
    from shardviz.tui.workspace import Workspace


PREDICT_FIRST = "Predict first: the answer shows here."
HIDDEN_FROM_CLASS = "The answer shows here."
LOW, TALL = 20, 30
"""From so many lines of the terminal there is room for the tabs, and for a long goal with its hint."""


class LessonBar(Widget):
    """``3  Rows, columns, replicas      ●●◉○○○○○  Predict``."""

    DEFAULT_CSS = """
    LessonBar { height: 1; padding: 0 1 0 2; background: $panel; color: $primary; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__()
        self.controller = controller

    def render(self) -> Text:
        return bar(self.controller.attempt, self.content_size.width)


class GoalStrip(Static):
    """The goal above the sandbox, what is still different, and a hint."""

    DEFAULT_CSS = """
    GoalStrip { height: auto; padding: 0 1 0 2; background: $surface; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__(markup=False)
        self.controller = controller

    def draw(self) -> None:
        """For the terminal's size; its own is not known before it is drawn."""
        controller, height = self.controller, self.app.size.height
        most = 8 if height >= TALL else 5
        difference = controller.difference and as_sentence(controller.difference)
        width = self.app.size.width - 3
        lines = strip_lines(
            controller.attempt,
            difference,
            controller.hint,
            controller.is_hint_new,
            width,
            most,
        )
        self.update(Text("\n").join(lines))


class Guide(Side):
    """The words beside the picture."""

    DEFAULT_CSS = """
    Guide { padding: 0 0 0 2; }
    Guide.presented { padding: 1 2 0 3; }
    """

    def __init__(self, controller: LessonController) -> None:
        super().__init__(classes="presented" if controller.is_presented else "")
        self.controller = controller

    def compose(self) -> ComposeResult:
        yield LinesView()

    def on_resize(self) -> None:
        self.draw()

    def draw(self) -> None:
        """The words of the stage; of a page that does not fit, the part that matters."""
        view, controller = self.query_one(LinesView), self.controller
        width, height = self.content_size
        if width < 2:
            return
        for columns in (width, width - 1):  # the last column may be the scrollbar's
            lines, seen = guide_page(
                controller.attempt, controller.told, columns, height, controller.is_presented
            )
            is_long = len(lines) > height
            if not is_long:
                break
        view.show(TextLines(lines))
        view.scroll_to(y=seen if is_long else 0, animate=False, force=True)


class HiddenPane(Side):
    """Hides what would give the answer away; shows a chain of einsums, which the line above cuts."""

    DEFAULT_CSS = """
    HiddenPane { align: center middle; background: $surface; }
    HiddenPane Static { width: auto; max-width: 100%; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, is_presented: bool) -> None:
        super().__init__()
        self._words = Text(HIDDEN_FROM_CLASS if is_presented else PREDICT_FIRST, "dim")

    def compose(self) -> ComposeResult:
        yield Static()

    def show(self, chain: list[Text]) -> None:
        self.query_one(Static).update(Text("\n").join([*chain, *[Text()] * bool(chain), self._words]))


class CodePage(Side):
    """The JAX code of what was made, in the place of the screen."""

    def compose(self) -> ComposeResult:
        yield LinesView()

    def show(self, code: str) -> None:
        self.query_one(LinesView).show(TextLines(highlighted(code, code_style_of(self.app))))


HIDDEN = "That would show the answer: predict first."
AFTER_SANDBOX = "B goes back to the sandbox and its screens."
WITHOUT_SECONDS = "This lesson counts bytes; seconds come with the roofline, in a later lesson."
SENT = "You continue at the sender's stage. Your answers stay; u in the sandbox restores yours."
ALWAYS = {f"lesson('{what}')" for what in ("next", "back", "hint", "reset", "leave")}
"""The commands whose keys mean them even where they do nothing, so that no pane takes them for its own."""
LEADING_BACK = {"lesson('back')", "lesson('leave')"}
CHOOSING = {f"lesson('{what}')" for what in ("answer", "down", "up")}
TELLING = {"code", "export", "history", "jump", "ranking", "shardings"}
"""Those that would show the answer."""


class LessonView:
    """Puts a lesson's stages into the application's workspace, and keeps what was there before."""

    def __init__(self, workspace: Workspace, progress: LessonProgress, controller: LessonController) -> None:
        self.workspace, self.app, self.state = workspace, workspace.app, workspace.state
        self.progress, self.controller = progress, controller
        self._own_side, self._own_theme = workspace.is_left, self.app.theme
        self.state.set_all_aside()
        self._bar, self._strip, self._guide = LessonBar(controller), GoalStrip(controller), Guide(controller)
        self._hidden, self._code = HiddenPane(controller.is_presented), CodePage()
        self._writing = LearnersText(self.app, self.state, self._show_written, self._code.show)

    def refusal(self, area: str = "") -> str:
        """The reason why a screen cannot be shown now, or, without one, why the problem cannot be given out;
        empty where nothing speaks against it."""
        controller = self.controller
        if controller.kind == "predict":
            prediction = controller.attempt.prediction
            is_open = area and prediction is not None and area == prediction.before
            return "" if is_open else NOT_REVEALED if controller.is_presented else HIDDEN
        if area == "time" and self.state.is_quiet:
            return WITHOUT_SECONDS
        return AFTER_SANDBOX if area and controller.kind == "code" else ""

    @property
    def is_sandbox(self) -> bool:
        """True where the problem is the learner's to change."""
        return self.controller.kind == "change"

    @property
    def command_line(self) -> str:
        """The command line of the lesson, while that of the problem would show the answer; else empty."""
        number = self.controller.lesson.number
        return f"shardviz lesson {number}" if self.controller.kind == "predict" and number else ""

    @property
    def program(self) -> str:
        """The lesson's own program where its code is shown; empty where it is that of the learner's work."""
        return self.controller.lesson.program if self.controller.kind == "code" else ""

    def shared(self) -> Shared:
        """The lesson at its stage."""
        return shared_of(self.controller.attempt, self.state.area)

    @property
    def commands(self) -> list[Command]:
        """The lesson's commands that do something now.

        Arrows and enter choose an answer, unless the pane has the keys.
        """
        chooses = self.workspace.is_left or self.controller.is_hidden
        return [command for command in self.controller.commands if chooses or command.name not in CHOOSING]

    @property
    def turn(self) -> str:
        """The name of the other side, to which `p` leads; empty where it does not."""
        if self.controller.is_hidden:
            return ""
        if self.workspace.is_left:
            return "code" if self.controller.kind == "code" else "picture"
        return "problem" if self._covers[0] is None else "lesson"

    def commands_among(self, others: Sequence[Command]) -> list[Command]:
        """All that works now: help, what leads on in the lesson, the pane's, and what leads back."""
        own = self.commands
        ahead = [command for command in own if command.name not in LEADING_BACK]
        keys = {key for command in LESSON if command in own or command.name in ALWAYS for key in command.keys}
        others = [
            replace(command, footer=self.turn) if command.name == "problem" else command for command in others
        ]
        free = filter(None, (command.without(keys) for command in others))
        first, *rest = [command for command in free if command.name != "problem" or self.turn]
        pane = [command for command in rest if command.area != "app"]
        kept_back = TELLING if self.refusal() else ()
        app = [command for command in rest if command.area == "app" and command.name not in kept_back]
        turn = [command for command in app if command.name == "problem" and self.workspace.is_narrow]
        back = [command for command in own if command.name in LEADING_BACK]
        return [first, *ahead, *turn, *pane, *back, *(command for command in app if command not in turn)]

    def command_of(self, event: events.Key) -> Command | None:
        """The lesson's command that a key means, before it means anything else."""
        works = self.commands
        meant = (command for command in LESSON if command in works or command.name in ALWAYS)
        return next((command for command in meant if event.key in command.keys), None)

    def takes(self, event: events.Key) -> bool:
        """Type a key into the answer, where one is typed; return whether it was one for it."""
        if not self.controller.takes(event.key, event.character):
            return False
        self._guide.draw()
        return True

    async def open(self, controller: LessonController) -> None:
        """Put a lesson on screen, at its stage, in place of the one that was open here."""
        self.controller = controller
        if self._bar.is_attached:
            for widget in (self._bar, self._strip, self._guide):
                widget.controller = controller
        else:
            self.workspace.screen.add_class("lesson")
            await self.workspace.screen.mount(self._bar, before=0)
            await self.workspace.screen.mount(self._strip, before=self.workspace)
            await self.workspace.mount(self._guide, before=0)
            await self.workspace.room.mount(self._hidden, self._code)
            if controller.is_presented:
                self.app.theme = PROJECTOR.name
        await self._enter()
        # Beside the screen, as some take half a second.
        answers = controller.compute_answers
        self.app.call_after_refresh(self.app.run_worker, answers, thread=True, exit_on_error=False)

    async def leave(self) -> None:
        """Take the widgets away, and put back what was there before."""
        self._writing.end()
        self.workspace.screen.remove_class("lesson")
        for widget in (self._bar, self._strip, self._guide, self._hidden, self._code):
            await widget.remove()
        if self.controller.is_presented:
            self.app.theme = self._own_theme
        self.workspace.covers, self.state.is_quiet = None, False
        await self.workspace.put_on(self.state.take_back())
        self.workspace.face(self._own_side)

    async def do(self, what: str) -> None:
        """Run one of the lesson's commands, where it does something now."""
        controller, before = self.controller, self.controller.attempt
        if what == "next" and not controller.may_go_on:
            self.app.notify(controller.refusal)
        if not controller.does(what):
            return
        if what == "reset":
            self.state.edit(controller.lesson.setup)
        elif what == "write":
            entry = LineEntry(controller.written, controller.lesson.title)
            self.app.push_screen(entry, self._typed)
        elif what in ("up", "down"):
            controller.move(1 if what == "down" else -1)
        else:
            commands = {"next": controller.next, "back": controller.back, "hint": controller.next_hint}
            try:
                commands.get(what, controller.answer)()
            except QuestionError as error:
                self.app.notify(error_words(error), markup=False)
                return
        if what in ("next", "back", "answer", "reveal"):
            self.app.clear_notifications()
            await self._enter()
        self.draw()
        self._keep(before)

    def show_problem(self, resolved: ResolvedProblem) -> None:
        """Compare another problem with the goal."""
        before = self.controller.attempt
        self.controller.look_at(resolved)
        self._keep(before)
        self.draw()

    def _typed(self, text: str | None) -> None:
        """Check what the field has now; None where it was left as it is."""
        if text is not None:
            self._writing.check(self.controller.lesson, text)

    def _show_written(self, text: str, check: WritingCheck | None) -> None:
        """Show what was written, and its check, None while that runs."""
        before = self.controller.attempt
        self.controller.wrote(text, check)
        if self.controller.kind == "write" and self.controller.is_field:
            self.state.open(self.controller.history)
        self._keep(before)
        self.draw()

    def draw(self) -> None:
        """Draw what the lesson has on screen, for the size of the terminal."""
        self._bar.refresh()
        self._strip.display = self.is_sandbox
        self._strip.draw()
        self._guide.draw()
        if self.controller.is_hidden:
            self._hidden.show(chain_lines(self.state.resolved, self.workspace.panel.palette))
        self.workspace.screen.set_class(self.app.size.height < LOW, "low")
        self.workspace.screen.set_class(self.is_sandbox, "sandbox")

    def _keep(self, before: Attempt) -> None:
        if self.controller.attempt != before and not self.controller.is_presented:
            self.progress.keep(self.controller.attempt)
            self.progress.report(self.app)

    @property
    def _covers(self) -> tuple[Side | None, Side | None]:
        """The widgets in the places of the problem and of the pane."""
        controller = self.controller
        left = None if controller.kind == "change" and not controller.is_about_collective else self._guide
        if controller.kind == "code":
            return left, self._code
        if controller.kind == "write" and not controller.is_field:
            return left, self._code
        return left, self._hidden if controller.is_hidden else None

    async def _enter(self) -> None:
        controller, workspace = self.controller, self.workspace
        workspace.covers = self._covers
        self.state.is_quiet = not controller.attempt.shown.machine and controller.screen != "time"
        self.state.open(controller.history)
        await workspace.put_on(controller.screen)
        workspace.panel.show_problem(self.state.resolved)  # in the first frame already
        if controller.kind == "code":
            self._code.show(self._program())
        self._writing.end()
        if controller.kind == "write":
            self._writing.begin(controller, self.progress.is_guest)
        is_left = workspace.covers[0] is None or controller.kind == "predict"
        workspace.face(is_left or (workspace.is_narrow and controller.kind != "change"))
        workspace.pane.begin(controller.place)
        self.draw()

    def _program(self) -> str:
        try:
            return self.program or self.workspace.pane.jax_code()
        except ShardvizError as error:
            return f"# {error_words(error)}"


async def controller_of(
    lesson: Lesson | Attempt, progress: LessonProgress, is_presented: bool
) -> tuple[LessonController, str]:
    """A lesson at the stage where it was left, or where an attempt that was sent is, and what to say of it.

    Of an attempt that was sent, stage and sandbox count: what the learner has done stays, and the sandbox as
    the learner left it is a step of undo away. Raises `ShardvizError` where the lesson cannot be opened.
    """
    sent, lesson = (lesson, lesson.lesson) if isinstance(lesson, Attempt) else (None, lesson)
    own = begin(lesson) if is_presented else await progress.resumed(lesson)
    attempt = afresh(own) if sent is None else with_own(sent, own)
    note = SENT if sent is not None and own not in (attempt, begin(lesson)) else ""
    return LessonController(attempt, is_presented, own.draft, progress.seed), note
