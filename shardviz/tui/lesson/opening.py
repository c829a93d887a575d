"""Opens a lesson in the application: at the stage where it was left, or where an attempt that was sent is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.drafts.wording import error_words
from shardviz.errors import ShardvizError
from shardviz.lessons.attempt import Attempt, begin, with_own
from shardviz.lessons.lesson import Lesson
from shardviz.tui.lesson.classroom import Classroom, afresh, opened
from shardviz.tui.lesson.mode import LessonMode

if TYPE_CHECKING:
    from shardviz.tui.app import ShardvizApp

SENT = "You go on where the sender is. Your answers stay; u in the sandbox brings yours back."


async def open_lesson(app: ShardvizApp, lesson: Lesson | Attempt, is_presented: bool) -> None:
    """Open it, in place of the lesson that is open, or say why that cannot be.

    Of an attempt that was sent, stage and sandbox count: what the learner has done stays, and the sandbox as
    the learner left it is a step of undo away. Who presents a lesson goes on to present.
    """
    mode = app.lesson
    is_presented = is_presented or (mode is not None and mode.classroom.is_presented)
    sent, lesson = (lesson, lesson.lesson) if isinstance(lesson, Attempt) else (None, lesson)
    own = begin(lesson) if is_presented else await app.record.resumed(lesson)
    attempt = afresh(own) if sent is None else with_own(sent, own)
    try:
        classroom = Classroom(opened(lesson), attempt, is_presented, own.draft)
    except ShardvizError as error:
        app.notify(error_words(error), severity="error")
        return
    if mode is None:
        app.lesson = LessonMode(app, classroom)
        await app.lesson.begin()
    else:
        await mode.open(classroom)
    if sent is not None and own not in (attempt, begin(lesson)):
        app.notify(SENT, timeout=10)
    app.tell_record()
