"""The file in which a learner hands lessons in, and its check: every answer and every goal again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import resolve_first
from shardviz.forms.state_file import MAX_BYTES, state_error
from shardviz.lessons.course import lesson_names
from shardviz.lessons.goal import first_difference
from shardviz.lessons.lesson import Lesson
from shardviz.lessons.measures import is_right
from shardviz.lessons.progress import CourseProgress, lesson_key, read_entries
from shardviz.lessons.writing import check_written
from shardviz.strict_table import parsed_table
from shardviz.user_files import is_folder, open_file

if TYPE_CHECKING:
    from shardviz.compiler import Worker

SCHEMA = "shardviz-hand-in/1"
MAX_NAME = 100
"""Characters of a learner's name."""


@dataclass(frozen=True)
class HandIn:
    """A file that was handed in: a learner's `name`, when it was written, the progress, and the names of its
    lessons. `is_edited`: its digest is not that of its content. The digest holds no secret, so it finds
    damage and careless edits only."""

    name: str
    at: datetime
    progress: CourseProgress
    lessons: tuple[str, ...]
    is_edited: bool


def hand_in(name: str, progress: CourseProgress, lessons: Iterable[Lesson]) -> str:
    """The file's text, with the lessons that were begun. Raises `QuestionError` for none, or a bad name."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME:
        problem = f"{quote(name, 30)} cannot be a name: it has no letters, too many, or others than letters"
        raise QuestionError(problem, "write for example --hand-in 'Ada Lovelace'")
    entries = progress.begun(lessons)
    if not entries:
        raise QuestionError("no lesson was begun that could be handed in", "shardviz lesson lists them")
    at = datetime.now().astimezone().isoformat(timespec="seconds")
    document = {"schema": SCHEMA, "name": " ".join(name.split()), "at": at, "lessons": entries}
    return json.dumps(document | {"digest": _digest(document)}, indent=1) + "\n"


def read_hand_in(content: bytes) -> HandIn:
    """The content of a file that was handed in. Raises `QuestionError` for a damaged or another file."""
    if not content.strip():
        raise QuestionError("it is empty")
    if len(content) > MAX_BYTES:
        raise QuestionError(f"it has more than {MAX_BYTES:,} bytes")
    table = parsed_table(content, json.loads, "JSON", "", state_error)
    if table.values.get("schema") != SCHEMA:
        raise QuestionError("it was not written by shardviz lesson --hand-in")
    table.exactly(("schema", "name", "at", "lessons", "digest"))
    digest = _digest({key: value for key, value in table.values.items() if key != "digest"})
    try:
        at = datetime.fromisoformat(table.line("at", MAX_NAME)).astimezone()
    except (ValueError, OverflowError):
        table.fail("at", "it is not a time")
    name, entries = table.line("name", MAX_NAME), read_entries(table)
    is_edited = table.values["digest"] != digest
    return HandIn(name, at, CourseProgress(None, entries), tuple(entries), is_edited)


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


class Grade(NamedTuple):
    """A row of the table. `solved` are the sandboxes that meet their goals, `written` the texts that pass."""

    pupil: str
    lessons: int
    solved: int
    answered: int
    right_at_first_try: int
    hints: int
    written: str
    minutes: int
    remarks: str
    file: str


def grades(
    folder: Path, lessons: Sequence[Lesson], worker: Worker | None = None
) -> tuple[list[Grade], list[str]]:
    """A row for each learner, by name, and a sentence for each file below the folder that has none. Of a
    learner's files the latest counts. With a `worker` what was written is run. Raises `QuestionError` for a
    folder that cannot be read."""
    if not is_folder(folder):
        raise QuestionError(f"there is no folder {quote(str(folder))}", "name the folder with the files")
    files: list[tuple[HandIn, str]] = []
    said = []
    for path in sorted(Path(root, name) for root, _, names in os.walk(folder) for name in names):
        file = str(path.relative_to(folder))
        try:
            with open_file(path) as opened:
                files.append((read_hand_in(opened.read(MAX_BYTES + 1)), file))
        except OSError as error:
            said.append(f"{quote(file)} is not graded: {error.strerror}")
        except ShardvizError as error:
            said.append(f"{quote(file)} is not graded: {error.message}")
    files.sort(key=lambda each: each[0].at)
    latest = {handed_in.name.casefold(): (handed_in, file) for handed_in, file in files}
    for handed_in, file in files:
        if (later := latest[handed_in.name.casefold()][1]) != file:
            said.append(f"{quote(file)} is not graded: {handed_in.name} has handed in {quote(later)} later")
    # A lesson file has its name there, not its path.
    graded = {lesson_key(lesson): lesson for lesson in (replace(each, source="") for each in lessons)}

    @cache  # the sandboxes of a class are alike
    def meets(name: str, draft: ProblemForm) -> bool:
        return first_difference(graded[name].goal, graded[name], resolve_first(draft)) is None

    return [_grade(*latest[name], graded, meets, worker) for name in sorted(latest)], said


def _grade(
    found: HandIn, file: str, lessons: dict[str, Lesson], meets: Callable[..., bool], worker: Worker | None
) -> Grade:
    attempts = {name: found.progress.left(lesson) for name, lesson in lessons.items()}
    begun = {name: attempt for name, attempt in attempts.items() if attempt is not None}
    first: dict[tuple[str, int], bool] = {}
    for name, attempt in begun.items():
        for number, said, is_again in attempt.tries:
            if not is_again and (name, number) not in first:
                first[name, number] = is_right(attempt.lesson.predictions[number], said)
    solved = {name for name, attempt in begun.items() if attempt.met and meets(name, attempt.met)}
    texts = [attempt for attempt in begun.values() if attempt.lesson.writing is not None and attempt.written]
    passed = [work for work in texts if worker and not check_written(work.lesson, work.written, worker).wrong]
    remarks = {
        "no sandbox that meets the goal of": [
            n for n, work in begun.items() if work.is_solved and n not in solved
        ],
        "of another version:": [name for name in found.lessons if name in lessons and name not in begun],
        "not graded:": sorted({*found.lessons} - lessons.keys() - {*lesson_names()}),
    }
    told = [f"{remark} {', '.join(names)}" for remark, names in remarks.items() if names]
    return Grade(
        *(found.name, len(begun), len(solved), len(first), sum(first.values())),
        sum(attempt.hints for attempt in begun.values()),
        f"{len(passed)} of {len(texts)}" if worker else f"{len(texts)} not run",
        round(sum(found.progress.seconds(attempt.lesson) for attempt in begun.values()) / 60),
        "; ".join(["edited after it was written"] * found.is_edited + told),
        file,
    )
