"""Opens a lesson in the application; where there is no terminal, prints it to be read."""

from __future__ import annotations

import click

from shardviz.cli.exit_code import ExitCode
from shardviz.cli.opening import no_terminal, open_app


def open_lesson(text: str, present: bool, as_json: bool, width: int | None, color: str) -> int:
    """Open the lesson that `text` names, at the stage where it was left; before a class from its start."""
    from shardviz.lessons.course import find

    lesson = find(text)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.course import LESSON

        print_json(LESSON.document(lesson=lesson))
        return ExitCode.FINE
    if reason := no_terminal():
        from shardviz.cli.screen import screen
        from shardviz.render.lessons.course import lesson_page

        click.echo(f"shardviz: note: {reason}", err=True)
        page = screen(width, color)
        page.show(lesson_page(lesson, page.width))
        return ExitCode.FINE
    return open_app(lesson=lesson, present=present)
