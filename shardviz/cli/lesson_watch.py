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
from shardviz.user_files import target_path, write_file

TIME_LIMIT_S = 300.0
"""The time limit of one compiler."""
POLL_S = 0.2


def watch_file(lesson: Lesson, name: str, output: CommandOutput) -> int:
    """Check a file now and at every save, and keep its text in the learner's progress; without a terminal,
    once. A file that is not there is written first."""
    path = target_path(name)
    starter = starter_file(lesson)
    file, is_terminal = SavedFile(path), sys.stdout.isatty()
    if not path.exists():
        write_file(path, starter)
        print_note(f"{quote(name)} is new: it has the task")
    progress, fails = load(), 0
    if progress.notice:
        print_note(progress.notice)
    with closing(started_worker(TIME_LIMIT_S)) as worker:
        while True:
            if (text := file.saved()) is None:
                time.sleep(POLL_S)
                continue
            with working("checking"):
                check = check_written(lesson, text, worker, path, output=2)
            try:
                progress.save(progress.attempt(lesson).wrote(text, not check.wrong))
            except StateError as error:
                print_note(error.message)
            output.show([*written_lines(lesson, check, output.width, fails), Text()])
            if not check.wrong:
                return ExitCode.FINE
            if not is_terminal:
                return ExitCode.CHECK_FAILED
            if not fails:
                print_note(f"{quote(name)} is checked again at every save; ctrl-c ends")
            fails += 1
