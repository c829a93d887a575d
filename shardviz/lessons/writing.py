"""The check of what a learner has written: code, compiled for the lesson's target, by its result and what it
sends; a spec or an einsum by a goal."""

from __future__ import annotations

import ast
import os
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.forms.options import form_from_table
from shardviz.hlo.collective import OPS
from shardviz.lazy_names import LazyImports
from shardviz.lessons.goal import first_difference
from shardviz.lessons.lesson_file import MAX_TEXT
from shardviz.lessons.measures.subject import resolve_once
from shardviz.reports.target_result import bytes_sent
from shardviz.strict_table import closest
from shardviz.targets import parse_targets
from shardviz.units import human_bytes
from shardviz.user_files import open_file

with LazyImports():
    from shardviz.compiler import user_file

if TYPE_CHECKING:
    from shardviz.compiler import Worker
    from shardviz.forms.form import ProblemForm
    from shardviz.hlo import Collective
    from shardviz.lessons.lesson import Goal, Lesson, Writing

SECONDS, LOADING_S = 20.0, 60.0
"""The time of a learner's file, and what JAX may need before it."""
PREDICTED, FUNCTION, NAME = "PREDICTED", "program", "program.py"
"""The name for what a file predicts, its function that is compiled, and the name of a text without a file."""
COLUMNS = 90
"""Of the task at the head of a file."""


@dataclass(frozen=True)
class WritingCheck:
    """The sentences on what is right; and the first thing that is `wrong`, "" where all is right."""

    right: tuple[str, ...]
    wrong: str = ""
    hint: str = ""


def starter_file(lesson: Lesson) -> str:
    """The file to begin with: the task in comments, then the starter. Raises `QuestionError` for a lesson in
    which nothing is written."""
    writing = writing_of(lesson)
    number = f"Lesson {lesson.number}: " if lesson.number else ""
    paragraphs = [f"{number}{lesson.title}", *writing.task.split("\n")]
    lines = [line for each in paragraphs for line in (*textwrap.wrap(each, COLUMNS), "")]
    return "\n".join([*(f"# {line}".rstrip() for line in lines[:-1]), "", writing.starter])


class SavedFile:
    """A learner's file, which an editor saves, or replaces."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, ...] = ()

    def saved(self) -> str | None:
        """The text, where it was saved since the last call; None where it was not, or is away. Raises
        `QuestionError` for what is not a text."""
        try:
            stat = self.path.stat()
            now = stat.st_mtime_ns, stat.st_size, stat.st_ino
            if now == self._seen:
                return None
            self._seen = now
            with open_file(self.path) as file:
                content = file.read(MAX_TEXT + 1)
            if len(content) > MAX_TEXT:
                raise QuestionError(f"{quote(str(self.path))} has more than {MAX_TEXT:,} bytes", "write less")
            return content.decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
            raise QuestionError(
                f"{quote(str(self.path))} cannot be read: {reason}", "save it again"
            ) from None


def writing_of(lesson: Lesson) -> Writing:
    """The `Writing` of a lesson. Raises `QuestionError` where nothing is."""
    if lesson.writing is None:
        raise QuestionError(
            f"nothing is written in the lesson {lesson.name}", "docs/lessons.md names those that ask"
        )
    return lesson.writing


def check_written(
    lesson: Lesson, text: str, worker: Worker, file: Path | None = None, output: int | None = None
) -> WritingCheck:
    """Check a learner's text, and wait for the compilers of `worker`. Code runs in a process of its own: the
    `file` that holds it, or one that is made for it; what it prints goes to the file descriptor `output`.
    Raises `QuestionError` for a lesson in which nothing is written."""
    writing, right = writing_of(lesson), list[str]()
    with TemporaryDirectory(prefix="shardviz-") as folder:
        if file is None:
            file = Path(folder) / NAME
            file.write_text(text, encoding="utf-8")
        try:
            if writing.goal is not None:
                right.extend(_field(lesson, writing, writing.goal, text, worker))
            else:
                right.extend(_file(writing, text, worker, file, output))
        except ShardvizError as error:
            words = (each.replace(str(file), file.name) for each in (error.message, error.hint))
            return WritingCheck(tuple(right), *words)
    return WritingCheck(tuple(right))


def form_of(writing: Writing, text: str) -> ProblemForm:
    """The problem with a learner's text in its field, without comments. Raises `ShardvizError`."""
    words = " ".join(line.partition("#")[0] for line in text.splitlines()).split()
    if not words:
        raise QuestionError("nothing is written yet")
    return form_from_table({**writing.options, writing.field: " ".join(words)})


def _field(lesson: Lesson, writing: Writing, goal: Goal, text: str, worker: Worker) -> Iterator[str]:
    resolved = resolve_once(form_of(writing, text))
    asked = replace(lesson, setup=form_of(writing, writing.starter), goal=goal)
    if difference := first_difference(goal, asked, resolved):
        raise QuestionError(difference)
    yield "it meets the goal"
    if writing.collectives is not None:
        answer = worker.ask(resolved.problem, parse_targets(writing.target)[0])
        if answer.error:
            raise QuestionError(answer.error, answer.hint)
        yield _sent(writing, writing.collectives, answer.collectives)


def _file(writing: Writing, text: str, worker: Worker, file: Path, output: int | None) -> Iterator[str]:
    limits = predicted(text) if writing.collectives is None else writing.collectives
    if writing.reference and _body(text) not in ("", _body(writing.starter)):
        problem = f"def {FUNCTION}(mesh) has changed; the lesson compiles it as it was"
        raise QuestionError(problem, "copy it from the starter, and write above it")
    target = parse_targets(writing.target)[0]
    request = user_file.UserFileRequest(
        str(file), FUNCTION, writing.mesh, (target.platform,), reference=writing.reference, seconds=SECONDS
    )
    process = user_file.UserFileProcess(request, os.environ, output)
    program = process.result(SECONDS + LOADING_S, "look for a loop that does not end")
    if program.difference:
        raise QuestionError(program.difference)
    if writing.reference:
        yield "the result is right"
    compiled = worker.compile(program.lowered_for(target.platform), target).result()
    compiled.check()
    assert compiled.module is not None
    try:
        yield _sent(writing, limits, compiled.module.collectives)
    except QuestionError as error:
        hint = f"shardviz program {file}:{FUNCTION} --mesh {writing.mesh} --why tells why"
        raise QuestionError(error.message, error.hint or hint) from None
    if writing.collectives is None and (found := compiled.rematerializations):
        place = f"{found[0].source}: " if found[0].source else ""
        raise QuestionError(f"{place}an array is replicated on every device in order to reshard it")


def _body(text: str) -> str:
    """The function of a text that is compiled, without its layout; "" where none can be read."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        functions = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
        return next((ast.unparse(each) for each in functions if each.name == FUNCTION), "")
    return ""


def predicted(text: str) -> Mapping[str, int]:
    """The collectives that a file predicts, by kind; none for text that is not Python: running it says so.
    Raises `QuestionError` where it has no prediction that can be read."""
    hint = f'write {PREDICTED} = {{"all-gather": 1}}, or {{}} for none'
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines = [each for each in module.body if isinstance(each, ast.Assign)]
    line = next((each for each in lines if ast.unparse(each.targets[0]) == PREDICTED), None)
    if line is None:
        raise QuestionError(f"the file predicts nothing: {PREDICTED} is missing", hint)
    try:
        found = {str(op): int(count) for op, count in ast.literal_eval(line.value).items()}
    except (TypeError, ValueError, AttributeError, RecursionError):
        raise QuestionError(f"line {line.lineno}: {PREDICTED} has no number for each kind", hint) from None
    for op in (each for each in found if each not in OPS):
        raise QuestionError(f"line {line.lineno}: no collective is called {op}", closest(op, OPS))
    return found


def _sent(writing: Writing, limits: Mapping[str, int], collectives: Sequence[Collective]) -> str:
    """The sentence on what is sent. Raises `QuestionError` for more than may be."""
    counts: Counter[str] = Counter()
    for each in collectives:
        counts[each.op] += each.count or 1
        place = f"{each.source}: " if each.source else ""
        if each.count is None:
            raise QuestionError(f"{place}{each.op} is in a loop whose length is not known", "use a for loop")
        if counts[each.op] > (most := limits.get(each.op, 0)):
            count = sum(one.count or 1 for one in collectives if one.op == each.op)
            wanted = "the file predicts" if writing.collectives is None else "the lesson allows"
            raise QuestionError(
                f"{place}the program sends {plural(count, each.op)}; {wanted} {most or 'none'}"
            )
    sent = bytes_sent(collectives)
    if writing.most_bytes is not None and sent > writing.most_bytes:
        problem = f"each device sends {human_bytes(sent)}"
        raise QuestionError(f"{problem}; the lesson allows {human_bytes(writing.most_bytes)}")
    told = ", ".join(plural(count, op) for op, count in counts.items())
    return f"it sends {told}: {human_bytes(sent)} from each device" if told else "it sends nothing"
