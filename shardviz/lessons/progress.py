"""The lessons that a learner has solved, and the stage of each, kept in the platform's state directory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from shardviz.errors import QuestionError
from shardviz.forms.share import from_document, to_document
from shardviz.forms.state_file import StateError, read_state, state_error, state_path, write_state
from shardviz.lessons.attempt import MAX_TRIES, TITLES, Attempt, Try, begin, stages
from shardviz.lessons.lesson import Lesson
from shardviz.strict_table import StrictTable

NAME = "progress.json"
SCHEMA = "shardviz-progress/1"
MAX_ANSWER = 300
"""Characters of an answer."""
PAUSE_S = 300
"""The most that a pause between two keys counts."""
MAX_SECONDS = 10**7

Entry = dict[str, Any]
"""The entry of a lesson: ``solved``, the ``seconds`` that it took, and ``attempt``, the last one or null."""

State = Literal["new", "begun", "solved"]


@dataclass(frozen=True)
class CourseEntry:
    """A lesson in the list; `stage` is the name of the stage at which it was left, empty where none was."""

    number: int
    name: str
    title: str
    state: State
    stage: str = ""


class CourseProgress:
    """The progress of one learner. `notice` is for the learner to read, empty where there is none. Without a
    `path` it is forgotten with the process: that of a guest, and where the file cannot be used."""

    def __init__(
        self, path: Path | None = None, entries: Mapping[str, Entry] | None = None, notice: str = ""
    ) -> None:
        self.path, self.notice = path, notice
        self._entries = dict(entries or {})
        self._since = monotonic()

    def is_solved(self, lesson: Lesson) -> bool:
        """Return whether its goal was ever met."""
        return bool(self._entries.get(lesson_key(lesson), {}).get("solved"))

    def seconds(self, lesson: Lesson) -> int:
        """The seconds that it took, without long pauses."""
        return int(self._entries.get(lesson_key(lesson), {}).get("seconds", 0))

    def left(self, lesson: Lesson) -> Attempt | None:
        """The attempt as it was left; None where there is none, or its lesson has changed since."""
        entry = self._entries.get(lesson_key(lesson))
        if entry is None or entry["attempt"] is None:
            return None
        try:
            return _attempt(entry["attempt"], lesson, entry["solved"])
        except QuestionError:
            return None

    def entry(self, lesson: Lesson) -> CourseEntry:
        """A lesson as a list of the course shows it."""
        left, is_solved = self.left(lesson), self.is_solved(lesson)
        stage = TITLES[left.stage.kind] if left is not None and left.stage.kind != "code" else ""
        state: State = "solved" if is_solved else "begun" if left is not None else "new"
        return CourseEntry(lesson.number, lesson.name, lesson.title, state, stage)

    def attempt(self, lesson: Lesson) -> Attempt:
        """The attempt as it was left, or one that begins; solved lessons stay open."""
        return self.left(lesson) or replace(begin(lesson), is_solved=self.is_solved(lesson))

    def save(self, attempt: Attempt) -> None:
        """Keep where an attempt stands. What others have saved meanwhile stays. Raises `StateError` where
        that cannot be; also to say that the file was damaged meanwhile, which loses nothing that is known
        here."""
        key = lesson_key(attempt.lesson)
        solved = attempt.is_solved or self.is_solved(attempt.lesson)
        waited = monotonic() - self._since
        spent = int(min(waited, PAUSE_S))
        self._since += spent if waited < PAUSE_S else waited
        seconds = min(self.seconds(attempt.lesson) + spent, MAX_SECONDS)
        self._entries[key] = entry = {"solved": solved, "attempt": _document(attempt), "seconds": seconds}
        if self.path is None:
            return
        damage = None
        try:
            entries = _read(self.path)
        except _Unusable:
            raise
        except StateError as error:
            entries, damage = dict(self._entries), error
        entries[key] = entry | {"solved": solved or bool(entries.get(key, {}).get("solved"))}
        write_state(self.path, {"schema": SCHEMA, "lessons": entries})
        self._entries = entries
        if damage is not None:
            raise damage

    def begun(self, lessons: Iterable[Lesson]) -> dict[str, Entry]:
        """The entries of the lessons that were begun; a lesson file has its name there, not its path."""
        return {
            lesson_key(replace(lesson, source="")): self._entries[lesson_key(lesson)]
            for lesson in lessons
            if self.left(lesson) is not None
        }


def load() -> CourseProgress:
    """The learner's progress. A damaged file is set aside, which `notice` says; a file that cannot be read,
    or that another version wrote, stays, and nothing is kept beside it."""
    path = state_path(NAME)
    try:
        return CourseProgress(path, _read(path))
    except _Unusable as error:
        return CourseProgress(None, notice=f"{error.message}: progress is not kept; {error.hint}")
    except StateError as error:
        return CourseProgress(path, notice=f"{error.message}; {error.hint}")


class _Unusable(StateError):
    """A file that is not damaged, and that this shardviz must leave as it is."""


def _read(path: Path) -> dict[str, Entry]:
    """Raises `_Unusable`, and `StateError` for a damaged file, which is gone then."""
    before = path.exists()
    try:
        return read_state(path, SCHEMA, "your progress", read_entries) or {}
    except StateError as error:
        if before and not path.exists():
            raise
        raise _Unusable(error.message, error.hint) from None


def read_entries(document: StrictTable) -> dict[str, Entry]:
    """The entries of a document. Raises what `StrictTable` does."""
    lessons = document.table("lessons")
    for name in lessons.values:
        lessons.values[name] = {"seconds": 0} | lessons.table(name).values  # older files have none
        entry = lessons.table(name)
        entry.exactly(("solved", "attempt", "seconds"))
        entry.typed("solved", bool)
        entry.count("seconds", MAX_SECONDS)
        if entry.values["attempt"] is not None:
            entry.table("attempt")
    return lessons.values


def lesson_key(lesson: Lesson) -> str:
    """A lesson of the course has its name; a file of its own, which may have the same name, has its path."""
    return lesson.name if lesson.number else lesson.source or f"{lesson.name}.toml"


def _document(attempt: Attempt) -> dict[str, Any]:
    return {
        "of": _print(attempt.lesson),
        "stage": attempt.place,
        "answers": list(attempt.answers),
        "hints": attempt.hints,
        "draft": to_document(attempt.draft),
        "met": None if attempt.met is None else to_document(attempt.met),
        "tries": [trial._asdict() for trial in attempt.tries],
        "again": sorted(attempt.again),
        "written": attempt.written,
        "passes": attempt.is_written,
    }


def _attempt(document: Mapping[str, Any], lesson: Lesson, is_solved: bool) -> Attempt:
    # Older files lack some.
    older: Entry = {"met": None, "tries": [], "again": [], "written": "", "passes": False}
    table = StrictTable(older | dict(document), state_error)
    table.exactly(("of", "stage", "answers", "hints", "draft", *older))
    if table.values["of"] != _print(lesson):
        table.fail("of", "the lesson has changed since")
    answers = table.listed("answers", len(lesson.predictions))
    given, again = answers.values, table.listed("again", len(lesson.predictions))
    last = len(given) - 1
    if len(given) < len(lesson.predictions):
        table.fail("answers", "there are other questions")
    return Attempt(
        lesson,
        table.count("stage", len(stages(lesson)) - 1),
        tuple(text if text is None else answers.line(key, MAX_ANSWER) for key, text in given.items()),
        from_document(table.table("draft")),
        table.count("hints", len(lesson.hints)),
        is_solved,
        None if table.values["met"] is None else from_document(table.table("met")),
        tuple(
            Try(each.count("number", last), each.line("said", MAX_ANSWER), each.typed("is_again", bool))
            for each in table.tables("tries")[:MAX_TRIES]
        ),
        frozenset(again.count(key, last) for key in again.values),
        table.typed("written", str),
        table.typed("passes", bool),
    )


def _print(lesson: Lesson) -> str:
    """Tells a lesson from the same with other questions, another problem or another goal."""
    asked = [(question.ask, question.draft, sorted(question.wrong)) for question in lesson.questions.values()]
    return hashlib.sha256(repr((lesson.setup, asked, lesson.goal)).encode()).hexdigest()[:16]
