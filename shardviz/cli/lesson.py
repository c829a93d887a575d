"""`shardviz lesson`: the course, one of its lessons, and what checks whether lessons keep their word."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import Command
from shardviz.errors import QuestionError

EXAMPLES = (
    ("The course, and how far you are", "shardviz lesson"),
    ("The fourth lesson, where it was left", "shardviz lesson 4"),
    ("The same lesson before a class: answers wait for space", "shardviz lesson 4 --present"),
    ("Whether a lesson that you write keeps its word", "shardviz lesson --check my-lesson.toml"),
    ("For a script", "shardviz lesson --list --json"),
)
MODES = ("list", "check", "reset", "present")
"""Options that each say what is to be done."""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("lessons", nargs=-1, metavar="[LESSON]…")
@click.option("--list", "as_list", is_flag=True, help="List all lessons, as without LESSON.")
@click.option("--present", is_flag=True, help="For a class: large and light, answers hidden until space.")
@click.option(
    "--check",
    is_flag=True,
    help="Check lessons, all of them without LESSON. This runs the programs in their files.",
)
@click.option("--reset", is_flag=True, help="Forget how far you are, in all lessons without LESSON.")
@click.option("--yes", is_flag=True, help="With --reset: do not ask.")
@options.as_json
@options.page
def command(
    lessons: tuple[str, ...],
    as_list: bool,
    present: bool,
    check: bool,
    reset: bool,
    yes: bool,
    as_json: bool,
    width: int | None,
    color: str,
) -> int:
    """Learn by predicting and changing: the course, or one LESSON of it.

    LESSON is a number, a name, or the path of a lesson file of your own.
    """
    given = dict(zip(MODES, (as_list, check, reset, present), strict=True))
    mode = _mode(given, lessons, yes, as_json)
    if mode == "check":
        from shardviz.cli.lessons.check import check_lessons

        return check_lessons(lessons, as_json)
    if mode == "reset":
        from shardviz.cli.lessons.progress import reset_progress

        return reset_progress(lessons, yes)
    if not lessons:
        from shardviz.cli.lessons.progress import list_lessons

        return list_lessons(as_json, width, color)
    from shardviz.cli.lessons.opening import open_lesson

    return open_lesson(lessons[0], present, as_json, width, color)


def _mode(given: dict[str, bool], lessons: tuple[str, ...], yes: bool, as_json: bool) -> str:
    """What is to be done, a word of `MODES`, or "" to open or list. Raises `QuestionError` for a clash."""
    asked = [name for name in MODES if given[name]]
    if len(asked) > 1:
        raise QuestionError(f"--{asked[0]} and --{asked[1]} do not go together", "give one of them")
    mode = asked[0] if asked else ""
    if yes and mode != "reset":
        raise QuestionError("--yes answers what only --reset asks", "add --reset, or leave out --yes")
    if as_json and mode in ("reset", "present"):
        raise QuestionError(f"--{mode} prints no JSON", "leave out --json; --list --json is the whole course")
    if mode == "list" and lessons:
        raise QuestionError("--list is about all lessons, and one is named", "leave out one of them")
    if mode == "present" and not lessons:
        raise QuestionError("--present needs a lesson", "give its number or its name: --present 4")
    if len(lessons) > 1 and mode != "check":
        verb = "forgotten" if mode == "reset" else "opened"
        raise QuestionError(
            f"{len(lessons)} lessons are named, and one is {verb} at a time", "only --check takes several"
        )
    return mode
