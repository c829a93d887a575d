"""Every command of the application, in the order in which help shows them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from textual.binding import Binding, BindingType
from textual.message import Message

EVERYWHERE = ("ctrl+q", "ctrl+z")
"""Keys that mean their command in fields and dialogs as well, whatever else a person has chosen for it."""
NO_KEY = "no-key"
"""A key that does not exist: that of a command in a keymap whose keys a person has taken away."""
_NAMES = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"}
_NAMES |= {"plus_sign": "plus", "low_line": "underscore"}
"""Textual's names of characters, where they differ from Unicode's."""

_own: dict[str, tuple[str, ...]] = {}
"""The keys that a person has chosen, as they write them, by the commands' ids."""


@dataclass(frozen=True)
class Command:
    """Something that a person can do, with a key or from the palette.

    `name` is the action: ``action_<name>`` of the widget of `area` ("problem", "layout", "plan", "step",
    "compiler" or "time"), or of the application ("app", "lesson"). `usual` are its keys unless a person has
    chosen others, by Textual's names, the first the one that is shown, as `shown` where that is clearer.
    `title` names it in palette and help, `help` is a sentence. `footer` is its word in the footer; empty
    where it does not appear there. Keys that are `taken` mean something else now.
    """

    area: str
    name: str
    usual: tuple[str, ...]
    title: str
    help: str
    footer: str = ""
    shown: str = ""
    taken: frozenset[str] = frozenset()

    @property
    def action(self) -> str:
        """``move`` of ``move(1)``."""
        return self.name.partition("(")[0]

    @property
    def setting(self) -> str:
        """Its name in a file of keys: ``next-round``."""
        return "-".join(re.findall(r"\w+", self.title.lower().replace("'", "")))

    @cached_property
    def id(self) -> str:
        """``step.next-round``: the id of its bindings, by which a keymap has other keys for it."""
        return f"{table_of(self.area)}.{self.setting}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Textual's names of the keys that mean it now."""
        keys = self.usual
        if _own and (own := _own.get(self.id)) is not None:
            keys = (*map(textual_name, own), *(key for key in self.usual if key in EVERYWHERE))
        return tuple(key for key in dict.fromkeys(keys) if key not in self.taken)

    @property
    def key_text(self) -> str:
        """The key as people know it."""
        own = _own.get(self.id) if _own else None
        if own is not None and not self.taken:
            return own[0] if own else next(iter(self.keys), "")
        return self.shown or next(iter(self.keys), "")

    def without(self, taken: Collection[str]) -> Command | None:
        """The command where some keys mean something else; None where it has no other."""
        keys = self.keys
        lost = {key for key in keys if key in taken}
        if not lost:
            return self
        return replace(self, taken=self.taken | lost, shown="") if len(lost) < len(keys) else None


def set_own_keys(own: Mapping[str, tuple[str, ...]]) -> None:
    """Have the commands of some ids other keys, as a person writes them, and all others their usual ones."""
    _own.clear()
    _own.update(own)


def keymap() -> dict[str, str]:
    """The keys that a person has chosen, as Textual has them of a keymap; those that work everywhere are
    bindings of their own, which it leaves alone."""
    chosen = (each for each in COMMANDS if each.id in _own)
    return {each.id: ",".join(key for key in each.keys if key not in EVERYWHERE) or NO_KEY for each in chosen}


def table_of(area: str) -> str:
    """The name of a part of the application in a file of keys."""
    return "everywhere" if area == "app" else area


def textual_name(key: str) -> str:
    """The name that Textual has for a key: ``question_mark`` of ``?``."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return _NAMES.get(name, name)


class CommandsChanged(Message):
    """Other commands of a part work now than before: sent by the part."""


def bindings(commands: Iterable[Command]) -> list[BindingType]:
    """Textual's bindings for the commands of one widget. Each has one without a key, in whose place it has
    keys of one's own: also a command without usual ones, and in a field, which takes the letters before."""
    return [
        Binding(key, command.name, command.title, show=False, priority=True)
        if key in EVERYWHERE
        else Binding(key, command.name, command.title, show=False, id=command.id)
        for command in commands
        for key in (*command.usual, NO_KEY)
    ]


def commands_of(area: str, *rows: tuple[str, ...]) -> tuple[Command, ...]:
    """The commands of a part: name, keys, title and help of each, then its footer word and shown key."""
    return tuple(
        Command(area, name, tuple(keys.split()), *words)  # type: ignore[arg-type]  # words are at most four
        for name, keys, *words in rows
    )


APP = commands_of(
    "app",
    ("help", "question_mark f1", "Help", "The keys of this screen.", "help", "?"),
    ("show('layout')", "1", "Layout", "Which device holds what."),
    ("show('plan')", "2", "Plan", "The steps and their reasons."),
    ("show('step')", "3", "Step", "A collective, round by round."),
    ("show('compiler')", "4", "Compiler", "The programs that the compilers make."),
    ("show('time')", "5", "Time", "What runs when, what waits, and the memory."),
    ("problem", "p", "Problem", "Go to the problem, or back to the screen."),
    (
        "alone",
        "z",
        "Only this",
        "Show the screen with the keys alone, or others beside it again.",
        "only this",
    ),
    ("examples", "x", "Examples", "Open an example.", "examples"),
    ("lessons", "L", "Lessons", "The course and your progress.", "lessons"),
    ("undo", "u", "Undo", "Undo the last edit.", "undo"),
    ("redo", "U ctrl+y", "Redo", "Redo the edit that was undone."),
    ("code", "c", "Code", "Show the JAX code that builds what is on screen.", "code"),
    ("export", "e", "Export", "Save the screen as a picture, page, data or code.", "export"),
    ("command_line", "y", "Command line", "Copy the command line that prints the same.", "copy"),
    (
        "history",
        "h",
        "History",
        "The questions so far: open one, or compare it with the one that is shown.",
        "history",
    ),
    (
        "open_file",
        "o",
        "Open",
        "A compiled program, XLA's dumps, a profile, a model, a machine; or a sharding in any notation.",
        "open",
    ),
    ("jump", "colon", "Go to", "Go to a device, a collective or an instruction by its name.", "go to", ":"),
    (
        "shardings",
        "R",
        "Rank shardings",
        "All meshes of the machine with the best shardings of the problem: open one.",
        "rank",
    ),
    (
        "ranking",
        "W",
        "Ways to split",
        "All shardings over the mesh on screen, the fastest first: open one.",
        "ways",
    ),
    (
        "model",
        "M",
        "Whole model",
        "Every parameter of a model: splits, memory, collectives; change a split.",
        "model",
    ),
    ("cancel", "escape", "Cancel", "Stop asking the compilers, or mark no device any more.", "", "esc"),
    ("restore", "", "Last session", "Open what was on screen when shardviz was last closed."),
    ("theme", "t", "Theme", "Dark, light, for a projector, or the terminal's own."),
    (
        "focus_next",
        "tab",
        "Next part",
        "Go to the next part, which the arrows then scroll, or to the next field.",
    ),
    ("suspend_process", "ctrl+z", "Suspend", "Go to the shell; `fg` comes back.", "", "ctrl+z"),
    ("versions", "", "Versions", "Of shardviz, JAX and the compilers, for a bug report."),
    ("command_palette", "ctrl+p", "Palette", "Find any command by name.", "", "ctrl+p"),
    ("quit", "q ctrl+q", "Quit", "Leave shardviz.", "quit"),
)

TYPING = commands_of(
    "problem",
    ("keep", "enter up down", "Keep", "Keep the text.", "keep"),
    ("leave", "escape ctrl+y", "Discard", "Discard the text.", "leave it as it was", "esc"),
)
"""The commands while text is typed, when every other key is text."""

PROBLEM = commands_of(
    "problem",
    (
        "edit",
        "enter",
        "Type",
        "Type what is under the cursor, in any notation. enter keeps it, esc leaves it as it was.",
        "type",
    ),
    (
        "assign",
        "",
        "Split over an axis",
        "The letter of an axis splits the dimension under the cursor over it: X, then Y, gives XY."
        " An axis that splits another dimension of the array moves here.",
        "split",
        "X Y …",
    ),
    (
        "cycle",
        "space",
        "Next choice",
        "The next free axis for a dimension, the next value of a field, or a list of them; on the name of a"
        " result: yours or the compiler's choice.",
        "next",
    ),
    (
        "sum",
        "s",
        "Pending sum",
        "On the name of an array: its devices hold partial sums over the next free axis, {U_X}; then none.",
        "pending sum",
    ),
    ("clear", "backspace", "Leave whole", "Do not split the dimension.", "whole", "⌫"),
    ("double", "plus equals_sign", "Double", "Double the devices along an axis.", "size", "+-"),
    ("halve", "minus", "Halve", "Halve the devices along an axis.", "", "-"),
    ("add_axis", "a", "Add an axis", "Add an axis of 2 devices to the mesh.", "axis"),
    ("remove_axis", "d delete", "Remove the axis", "Remove an axis from the mesh.", "remove"),
    (
        "move_axis(-1)",
        "less_than_sign",
        "Axis to the left",
        "Before its neighbour: more major, its devices lie further apart.",
        "order",
        "<>",
    ),
    (
        "move_axis(1)",
        "greater_than_sign",
        "Axis to the right",
        "After its neighbour: more minor, its devices lie closer together.",
        "",
        ">",
    ),
    ("move('up')", "up", "Up", "Go to the field above.", "", "↑"),
    ("move('down')", "down", "Down", "Go to the field below.", "", "↓"),
    ("move('left')", "left", "Left", "Go to the previous cell.", "", "←"),
    ("move('right')", "right", "Right", "Go to the next cell.", "", "→"),
)

LAYOUT = commands_of(
    "layout",
    ("view", "v", "By array, by device", "Cells are blocks of the arrays, or devices.", "view"),
    (
        "moment",
        "m",
        "At the einsum",
        "The arrays as each device multiplies them: gathered operands, partial sums; or as given and wanted.",
        "einsum",
    ),
    ("next_array(1)", "n", "Next array", "Go to the next array.", "array"),
    ("next_array(-1)", "N", "Previous array", "Go to the previous array."),
    ("mark", "enter", "Mark the device", "Mark the cell's device on every screen, or no device.", "mark"),
    ("move(-1, 0)", "left", "Left", "One cell to the left, or to the array there.", "", "←"),
    ("move(1, 0)", "right", "Right", "One cell to the right, or to the array there.", "", "→"),
    ("move(0, -1)", "up", "Up", "One cell up, or to the array above.", "", "↑"),
    ("move(0, 1)", "down", "Down", "One cell down, or to the array below.", "", "↓"),
    ("row_end(-1)", "home", "First cell", "Go to the first cell of the row."),
    ("row_end(1)", "end", "Last cell", "Go to the last cell of the row."),
    ("page(-1)", "pageup", "Page up", "Go up by as many lines as are visible."),
    ("page(1)", "pagedown", "Page down", "Go down by as many lines as are visible."),
)

PLAN = commands_of(
    "plan",
    ("next_step", "down j", "Next step", "The next step; below, scroll.", "step", "↑↓"),
    ("previous_step", "up k", "Previous step", "The previous step; above, scroll.", "", "↑"),
    ("open_step", "enter", "Play", "Step through this collective, round by round.", "play"),
    ("ask_now", "r", "Ask now", "Recompile for all targets.", "ask now"),
)

STEP = commands_of(
    "step",
    ("play", "space", "Play", "Play the rounds, or pause.", "play", "space"),
    ("round(1)", "right", "Next round", "One round forward.", "round", "←→"),
    ("round(-1)", "left", "Previous round", "One round back.", "", "←"),
    ("first", "home", "First", "Before the first round."),
    ("last", "end", "Last", "After the last round."),
    ("speed(1)", "plus equals_sign", "Faster", "Twice as many rounds a second.", "", "+"),
    ("speed(-1)", "minus", "Slower", "Half as many rounds a second.", "", "-"),
    ("view", "v", "View", "The devices and their links, all chunks, all transfers, or the matmul.", "view"),
    ("algorithm(1)", "a", "Next algorithm", "The same with the next algorithm.", "algorithm"),
    ("algorithm(-1)", "A", "Previous algorithm", "The same with the previous algorithm."),
    ("compare", "m", "Algorithms", "Choose one, by rounds, bytes and time of each.", "compare"),
    (
        "device(1)",
        "d",
        "Next device",
        "Mark the next device of the group, here and on every screen.",
        "device",
    ),
    ("device(-1)", "D", "Previous device", "Mark the previous device of the group."),
    ("collective(1)", "n", "Next collective", "The next collective of the plan.", "collective"),
    ("collective(-1)", "N", "Previous collective", "The previous collective of the plan."),
    ("other", "i", "Other", "Play any other collective.", "other"),
    ("back_to_plan", "O", "Plan's", "Back from another collective to those of the plan.", "plan's"),
    (
        "figures",
        "b",
        "Latency, bandwidth",
        "The time of a link: by the machine's figures, or as you type them.",
        "bandwidth",
    ),
    ("links", "l", "Links", "Join the devices by a ring or a torus, a line, a switch.", "links"),
    ("group(1)", "g", "Next group", "Show the next of the groups that do this together.", "group"),
    ("group(-1)", "G", "Previous group", "Show the previous group."),
    ("ask_now", "r", "Ask now", "Recompile for all targets, and verify with JAX again."),
    ("pan(1)", "greater_than_sign shift+right", "Right", "Scroll to the right.", "", ">"),
    ("pan(-1)", "less_than_sign shift+left", "Left", "Scroll to the left.", "", "<"),
)

FORM = commands_of(
    "step",
    ("play_it", "enter", "Play it", "Play the collective in the form.", "play it", "enter"),
    ("leave", "escape", "Back", "Go back to the collective that was played before.", "back", "esc"),
    ("list", "space", "List", "All operations or algorithms, and what each does.", "list", "space"),
    ("focus", "down", "Fields", "From field to field.", "fields", "↑↓"),
)
"""While the form for another collective is open; its fields have the keys."""

COMPILER = commands_of(
    "compiler",
    ("target(1)", "n", "Next target", "The next target's answer.", "target"),
    ("target(-1)", "N", "Previous target", "The previous target's answer."),
    (
        "stage(-1)",
        "left",
        "Earlier pass",
        "One stage back: from the program to what the compiler's passes made of it, down to Shardy's.",
        "passes",
        "←→",
    ),
    ("stage(1)", "right", "Later pass", "One stage on, up to the program.", "", "→"),
    ("diff", "d", "Diff", "Show or hide what the stage changed in the program's text."),
    ("collective(1)", "j", "Next collective", "Go to the next collective.", "next"),
    ("collective(-1)", "k", "Previous collective", "Go to the previous collective."),
    ("search", "slash", "Search", "Find text in the program, while you type.", "search", "/"),
    ("fold", "f", "All of the text", "The text as the compiler wrote it, or folded."),
    ("table", "w", "Side by side", "All targets in one table, with reasons, or one.", "table"),
    ("open_time", "enter", "On Time", "Show when the instruction under the cursor runs."),
    ("ask", "r", "Ask now", "Recompile for this target, also where it was cancelled."),
    ("move(-1)", "up", "Line up", "Go to the line above.", "", "↑"),
    ("move(1)", "down", "Line down", "Go to the line below.", "", "↓"),
    ("page(-1)", "pageup", "Page up", "A page up."),
    ("page(1)", "pagedown", "Page down", "A page down."),
    ("first", "home", "First line", "Go to the first line."),
    ("last", "end", "Last line", "Go to the last line."),
    ("sideways(-1)", "less_than_sign", "To the left", "Scroll long lines to the left.", "", "<"),
    ("sideways(1)", "greater_than_sign", "To the right", "Scroll long lines to the right.", "", ">"),
)

TIME = commands_of(
    "time",
    ("target(1)", "n", "Next target", "The next target's program, or the plan.", "target"),
    ("target(-1)", "N", "Previous target", "The previous target's program, or the plan."),
    ("chart('zoom', 1)", "plus equals_sign", "Zoom in", "Around the selected operation.", "zoom", "+-"),
    ("chart('zoom', -1)", "minus", "Zoom out", "Around the selected operation.", "", "-"),
    ("chart('zoom_all')", "0", "All", "The whole time."),
    ("chart('zoom_to')", "Z", "Zoom to it", "The selected operation from edge to edge."),
    ("chart('beside', 1)", "right", "Next operation", "Select the next operation on the lane.", "", "→"),
    (
        "chart('beside', -1)",
        "left",
        "Previous operation",
        "Select the previous operation on the lane.",
        "",
        "←",
    ),
    (
        "chart('on_lane_beside', 1)",
        "down",
        "Lane below",
        "Select what runs at the same time on the next lane.",
        "",
        "↓",
    ),
    (
        "chart('on_lane_beside', -1)",
        "up",
        "Lane above",
        "Select what runs at the same time on the lane before.",
        "",
        "↑",
    ),
    ("chart('at_end', -1)", "home", "First operation", "Select the first operation on the lane."),
    ("chart('at_end', 1)", "end", "Last operation", "Select the last operation on the lane."),
    (
        "chart('pan', 1)",
        "greater_than_sign shift+right",
        "Later",
        "Move on by a quarter of what is seen.",
        "",
        ">",
    ),
    (
        "chart('pan', -1)",
        "less_than_sign shift+left",
        "Earlier",
        "Move back by a quarter of what is seen.",
        "",
        "<",
    ),
    ("follow", "f", "Follow", "Select the operation for which it waited.", "follow"),
    ("unfollow", "F", "Follow back", "Back to the operation that was followed."),
    (
        "critical",
        "b",
        "Critical path",
        "Mark the bottleneck: the chain of operations that decides the total.",
        "critical",
    ),
    ("memory", "m", "Memory", "The memory that is live at each time, or not.", "memory"),
    ("open_line", "enter", "On Compiler", "Show its line in the program; enter comes back.", "line"),
    ("compare", "a", "Compare", "The next target below, on one scale; after the last, none.", "A/B"),
    ("teller", "s", "Whose times", "The model's times, or those of the compiler's own scheduler.", "whose"),
    ("saving(1)", "j", "Next saving", "Select what would save most, then the next.", "saving"),
    ("saving(-1)", "k", "Previous saving", "Select the operation of the saving before."),
    ("view", "v", "Report", "The report alone, or the lanes with it.", "report"),
    ("ask", "r", "Ask now", "Recompile for this target, also where it was cancelled."),
)

SEARCHING = commands_of(
    "compiler",
    ("next(1)", "enter down", "Next match", "Go to the next line with the text.", "next"),
    ("next(-1)", "up shift+enter", "Previous match", "Go to the previous match.", "previous", "↑"),
    ("leave", "escape", "Close", "End the search and stay here.", "close", "esc"),
)
"""The commands while text is searched, when every other key is text."""

LESSON = commands_of(
    "lesson",
    ("lesson('answer')", "enter", "Answer", "Answer with the choice under the cursor.", "answer"),
    (
        "lesson('down')",
        "down",
        "Next choice",
        "Go to the next one; “I don't know” is last.",
        "choose",
        "↑↓",
    ),
    ("lesson('up')", "up", "Previous choice", "Go to the one before.", "", "↑"),
    ("lesson('reveal')", "space", "Reveal", "Show the answer, in a presentation to a class.", "reveal"),
    ("lesson('next')", "n", "Next", "Go to the next stage; after the code, to the next lesson.", "next"),
    ("lesson('hint')", "h", "Hint", "Show the next hint; after the last, the goal alone.", "hint"),
    ("lesson('reset')", "R", "Reset", "Reset the sandbox; undo restores it.", "reset"),
    ("lesson('back')", "B", "Back", "Go to the previous stage.", "back"),
    ("lesson('leave')", "Q", "Leave the lesson", "Go back to your own problem, as it was.", "leave"),
)
"""In the order of the footer, which shows those that do something now."""

COMMANDS: tuple[Command, ...] = (*APP, *PROBLEM, *LAYOUT, *PLAN, *STEP, *COMPILER, *TIME, *LESSON)

AREAS = {
    "app": "Everywhere",
    "problem": "Problem",
    "layout": "1 Layout",
    "plan": "2 Plan",
    "step": "3 Step",
    "compiler": "4 Compiler",
    "time": "5 Time",
    "lesson": "Lesson",
}
"""The names of the parts of the application."""


def key_table() -> str:
    """All commands as Markdown, one table for each part of the application."""
    lines = []
    for area, name in AREAS.items():
        rows = [command for command in COMMANDS if command.area == area]
        if rows:
            lines += ["", f"| {name} | | |", "|---|---|---|"]
        for command in rows:
            key = f"`{command.key_text}`" if command.key_text else ""
            cells = [cell.replace("|", "\\|") for cell in (key, command.title, command.help)]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines[1:]) + "\n"
