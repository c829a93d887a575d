"""The check of what a learner writes: code by its result and what it sends; a spec or einsum by a goal."""

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
from shardviz.user_files import open_file, write_file

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
    """The file to begin with: the task in comments, then the starter. Raises `QuestionError` for none."""
    writing = writing_of(lesson)
    paragraphs = [lesson.full_title, *writing.task.split("\n")]
    lines = [line for paragraph in paragraphs for line in (*textwrap.wrap(paragraph, COLUMNS), "")]
    return "\n".join([*(f"# {line}".rstrip() for line in lines[:-1]), "", writing.starter])


class SavedFile:
    """A learner's file, which an editor saves, or replaces; at first with the text of a starter."""

    def __init__(self, path: Path, starter: str) -> None:
        self.path, self._starter = path, starter
        self._seen: tuple[int, ...] = ()

    def saved(self) -> str | None:
        """The text, where it was saved since the last call, else None. Raises `QuestionError` for no text."""
        try:
            if not self._seen and not self.path.exists():
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_file(self.path, self._starter)
            stat = self.path.stat()
            before, self._seen = self._seen, (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if before == self._seen:
                return None
            with open_file(self.path) as file:
                return file.read(MAX_TEXT).decode()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
            problem = f"{quote(str(self.path))} cannot be read: {reason}"
            raise QuestionError(problem, "save it again") from None


def writing_of(lesson: Lesson) -> Writing:
    """The `Writing` of a lesson. Raises `QuestionError` where nothing is."""
    if lesson.writing is None:
        problem = f"nothing is written in the lesson {lesson.name}"
        raise QuestionError(problem, "docs/lessons.md names those that ask")
    return lesson.writing


def check_written(
    lesson: Lesson, text: str, worker: Worker, file: Path | None = None, output: int | None = None
) -> WritingCheck:
    """Check a learner's text, and wait for the compilers of `worker`. Code runs in a process of its own: the
    `file` that holds it, or one that is made for it; what it prints goes to the file descriptor `output`.
    Raises `QuestionError` for a lesson in which nothing is written."""
    writing, right = writing_of(lesson), list[str]()
    with TemporaryDirectory(prefix="shardviz-") as folder:
        path = Path(folder) / NAME if file is None else file.resolve()
        if file is None:
            path.write_text(text, encoding="utf-8")
        try:
            if writing.goal is None:
                right.extend(_file(writing, text, worker, path, output))
            else:
                right.extend(_field(lesson, writing, writing.goal, text, worker))
        except ShardvizError as error:
            wrong = error.message.replace(str(path), path.name)
            return WritingCheck(tuple(right), wrong, error.hint.replace(str(path), str(file or NAME)))
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
        problem = f"the function {FUNCTION} has changed; the lesson compiles it as it was"
        raise QuestionError(problem, "copy it from the starter, and write above it")
    (target,) = parse_targets(writing.target)
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
    asked = f"shardviz program {file}:{FUNCTION} --mesh {writing.mesh} --why"
    yield _sent(writing, limits, compiled.module.collectives, f"ask why: for example {asked}")
    if writing.collectives is None and (rematerializations := compiled.rematerializations):
        prefix = f"{rematerializations[0].source}: " if rematerializations[0].source else ""
        raise QuestionError(f"{prefix}an array is replicated on every device in order to reshard it")


def _body(text: str) -> str:
    """The function of a text that is compiled, without its layout; "" where none can be read."""
    functions = [node for node in _statements(text) if isinstance(node, ast.FunctionDef)]
    return next((ast.unparse(node) for node in functions if node.name == FUNCTION), "")


def _statements(text: str) -> Sequence[ast.stmt]:
    """No statements where the text is not Python, of which running it tells."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.parse(text).body
    return ()


def predicted(text: str) -> Mapping[str, int]:
    """The collectives that a file predicts, by kind. Raises `QuestionError` where none can be read."""
    lines = _statements(text)
    values = [each.value for each in lines if ast.unparse(each).startswith(f"{PREDICTED} = ")]  # type: ignore[attr-defined]
    hint = f'write {PREDICTED} = {{"all-gather": 1}}, or {{}} for none'
    if lines and not values:
        raise QuestionError(f"the file predicts nothing: {PREDICTED} is missing", hint)
    try:
        counts = {str(op): int(count) for value in values for op, count in ast.literal_eval(value).items()}
    except (TypeError, ValueError, AttributeError, RecursionError):
        problem = f"line {values[0].lineno}: {PREDICTED} has no number for each kind"
        raise QuestionError(problem, hint) from None
    for op in (each for each in counts if each not in OPS):
        raise QuestionError(f"{PREDICTED}: no collective is called {op}", closest(op, OPS))
    return counts


def _sent(
    writing: Writing, limits: Mapping[str, int], collectives: Sequence[Collective], hint: str = ""
) -> str:
    """The sentence on what is sent. Raises `QuestionError` for more than may be."""
    counts: Counter[str] = Counter()
    for record in collectives:
        counts[record.op] += record.count or 1
    for record in collectives:
        count, most = counts[record.op], limits.get(record.op, 0)
        if count > most or record.count is None:
            prefix = f"{record.source}: " if record.source else ""
            often = plural(count, record.op) if record.count else f"{record.op} in a loop of unknown length"
            wants = "the file predicts" if writing.collectives is None else "the lesson allows"
            raise QuestionError(f"{prefix}the program sends {often}; {wants} {most or 'none'}", hint)
    sent = bytes_sent(collectives)
    if writing.most_bytes is not None and sent > writing.most_bytes:
        most_bytes = human_bytes(writing.most_bytes)
        raise QuestionError(f"each device sends {human_bytes(sent)}; the lesson allows {most_bytes}", hint)
    told = ", ".join(plural(count, op) for op, count in counts.items())
    return f"it sends {told}: {human_bytes(sent)} from each device" if told else "it sends nothing"
