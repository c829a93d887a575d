"""`shardviz lesson LESSON --watch FILE`: a learner's file, checked at every save until it passes."""

from __future__ import annotations

import sys
import time
from contextlib import closing

from rich.text import Text

from shardviz.cli.output import CommandOutput, print_note, working
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import started_worker
from shardviz.errors import quote
from shardviz.forms.state_file import StateError
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.progress import load
from shardviz.lessons.writing import SavedFile, check_written, starter_file
from shardviz.render.lesson_view import written_lines
from shardviz.user_files import target_path

TIME_LIMIT_S = 300.0
"""The time limit of one compiler."""
POLL_S = 0.2


def watch_file(lesson: Lesson, name: str, output: CommandOutput) -> int:
    """Check a file now and at every save, and keep its text in the learner's progress; without a terminal,
    once. A file that is not there is written first."""
    file, progress, fails = SavedFile(target_path(name), starter_file(lesson)), load(), 0
    notes = [progress.notice, "" if file.path.exists() else f"{quote(name)} is new: it has the task"]
    for note in filter(None, notes):
        print_note(note)
    with closing(started_worker(TIME_LIMIT_S)) as worker:
        while True:
            if (text := file.saved()) is None:
                time.sleep(POLL_S)
                continue
            with working("checking"):
                check = check_written(lesson, text, worker, file.path, output=2)
            try:
                left = load().left(lesson) or progress.attempt(lesson)  # the application may have gone on
                progress.save(left.wrote(text, not check.wrong))
            except StateError as error:
                print_note(error.message)
            output.show([*written_lines(lesson, check, output.width, fails), Text()])
            if not check.wrong or not sys.stdout.isatty():
                return ExitCode.CHECK_FAILED if check.wrong else ExitCode.FINE
            if not fails:
                print_note(f"{quote(name)} is checked again at every save; ctrl-c ends")
            fails += 1
