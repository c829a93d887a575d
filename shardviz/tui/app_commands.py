"""The commands that work everywhere."""

from __future__ import annotations

from shardviz.tui.command import Command

APP = (
    Command("app", "help", ("question_mark", "f1"), "Help", "The keys of this screen.", "help", "?"),
    Command("app", "show('layout')", ("1",), "Layout", "Which device holds what."),
    Command("app", "show('plan')", ("2",), "Plan", "The steps and their reasons."),
    Command("app", "show('step')", ("3",), "Step", "A collective, round by round."),
    Command("app", "show('compiler')", ("4",), "Compiler", "What the compilers make of it."),
    Command("app", "problem", ("p",), "Problem", "To the problem and back."),
    Command("app", "examples", ("x",), "Examples", "Problems to begin with.", "examples"),
    Command("app", "lessons", ("L",), "Lessons", "The course, and how far you are.", "lessons"),
    Command("app", "undo", ("u",), "Undo", "Take the last edit back.", "undo"),
    Command("app", "redo", ("U", "ctrl+y"), "Redo", "Do again what was undone."),
    Command("app", "code", ("c",), "Code", "The JAX code that builds what is on screen.", "code"),
    Command("app", "export", ("e",), "Export", "The screen as a picture, page, data or code.", "export"),
    Command("app", "command_line", ("y",), "Command line", "The same as a command line, copied.", "copy"),
    Command("app", "cancel", ("escape",), "Cancel", "Stop asking the compilers.", "", "esc"),
    Command("app", "restore", (), "Last session", "Open what was on screen when shardviz was last left."),
    Command("app", "next_theme", ("t",), "Theme", "Dark, light, for a projector, or the terminal's own."),
    Command(
        "app",
        "focus_next",
        ("tab",),
        "Next part",
        "To the next part, which the arrows scroll, or next field.",
    ),
    Command(
        "app",
        "suspend_process",
        ("ctrl+z",),
        "Suspend",
        "To the shell; `fg` comes back.",
        shown="ctrl+z",
        everywhere=("ctrl+z",),
    ),
    Command("app", "command_palette", ("ctrl+p",), "Palette", "Find any command by name.", "", "ctrl+p"),
    Command("app", "quit", ("q", "ctrl+q"), "Quit", "Leave shardviz.", "quit", everywhere=("ctrl+q",)),
)
