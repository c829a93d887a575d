"""Lessons as static pages for any web space (pictures, questions and their answers, without scripts), and as
a notebook for Jupyter and Colab, whose cells call `shardviz.lesson`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from shardviz.errors import ShardvizError
from shardviz.forms.command_line import to_command_line
from shardviz.forms.form import ProblemForm, one_line
from shardviz.lessons.attempt import UNKNOWN
from shardviz.lessons.lesson import Lesson, Prediction
from shardviz.lessons.measures import typed_form
from shardviz.lessons.measures.subject import resolve_once
from shardviz.render.exports import subject_of, template
from shardviz.render.exports.pictures import Styles, document, part_html
from shardviz.render.exports.script import notebook_of
from shardviz.render.exports.sections import sections
from shardviz.render.lesson_view import stage_facts
from shardviz.render.palette import TRUECOLOR

WIDTH = 72
"""Columns of a picture."""
INDEX = "index.html"
INSTALL = "%pip install -q 'shardviz @ git+https://github.com/shardviz/shardviz'"


def site(lessons: Sequence[Lesson]) -> Iterator[tuple[str, str]]:
    """Each file's name and page, the lessons' list last. `ShardvizError` where answers are not computable."""
    names = ["", *map(_file, lessons), ""]
    for lesson, before, after in zip(lessons, names, names[2:], strict=False):
        yield _file(lesson), _page(lesson, before, after)
    entries = [f'<li><a href="{_file(entry)}">{escape(entry.title)}</a></li>' for entry in lessons]
    words = "<p>Look, predict, then see the answer. Nothing is sent or kept.</p>"
    body = ["<h1>Sharding and collectives in JAX</h1>", words, "<ol>", *entries, "</ol>"]
    yield INDEX, document("Sharding and collectives in JAX", body, Styles().css() + template("site.css"))


def _file(lesson: Lesson) -> str:
    return f"{lesson.number:02}-{lesson.name}.html" if lesson.number else f"{lesson.name}.html"


def _page(lesson: Lesson, before: str, after: str) -> str:
    styles, title = Styles(), escape(one_line(lesson.title))
    links = {INDEX: "All lessons", before: "Previous", after: "Next"}
    body = ["<nav>", *(f'<a href="{file}">{name}</a>' for file, name in links.items() if file), "</nav>"]
    body += [f"<h1>{title}</h1>", *_paragraphs(lesson.see)]
    body += _picture("see", lesson.setup, lesson.screen, styles)
    for key, prediction in lesson.questions.items():
        name = key.replace(".", "-")
        picture = _picture(name, prediction.draft, prediction.screen, styles)
        body += _question(name, prediction, picture)
    body += ["<h2>Why</h2>", *_paragraphs(lesson.explain), "<h2>Change</h2>", *_paragraphs(lesson.goal.text)]
    for number, hint in enumerate(lesson.hints, 1):
        body += _details(f"Hint {number}", [*_paragraphs(hint)])
    screen = "plan" if lesson.goal.collectives else lesson.screen
    body += _details("A solution", _picture("solution", lesson.solution, screen, styles))
    if lesson.writing is not None:
        body += ["<h2>Write</h2>", *_paragraphs(lesson.writing.task), _code(lesson.writing.starter)]
        body += _details("A solution", [_code(lesson.writing.solution)])
    if lesson.program:
        body += _details("As a JAX program, which runs unchanged", [_code(lesson.program)])
    return document(title, body, styles.css() + template("site.css"))


def _question(name: str, prediction: Prediction, picture: Sequence[str]) -> Iterator[str]:
    facts = stage_facts(prediction)
    yield f"<fieldset><legend>{escape(prediction.question)}</legend>"
    for number, text in enumerate(facts.choices):
        said = facts.reasons.get(text, "")
        verdict = f"✗ {said}" if text != facts.answer else f"✓ {text} is right."
        yield f'<input type="radio" name="{name}" id="{name}-{number}">'
        yield f'<label for="{name}-{number}">{escape(text)}</label><p class="said">{escape(verdict)}</p>'
    yield from _details("Answer", [f"<p>{escape(facts.answer)}</p>", *picture])
    yield "</fieldset>"


def _picture(name: str, draft: ProblemForm, screen: str, styles: Styles) -> list[str]:
    command = to_command_line(draft, "explain" if draft.collective is None else "step")
    try:
        subject = subject_of(resolve_once(draft), screen)
        parts = sections(subject, WIDTH, TRUECOLOR)
        if screen == "layout" and not draft.machine:  # such a lesson shows no seconds
            parts = parts[:1]
        first, *rest = (
            "\n".join(part_html(part, f"{name}-part-{number}", styles)) for number, part in enumerate(parts)
        )
        body = [first, '<div class="rounds">' if subject.run is not None else "<div>", *rest, "</div>"]
    except ShardvizError:
        body = []
    return [*body, f"<p>In a terminal: <code>{escape(one_line(command))}</code></p>"]


def _code(text: str) -> str:
    return f'<pre tabindex="0">{escape(text)}</pre>'


def _details(summary: str, body: Sequence[str]) -> list[str]:
    return [f"<details><summary>{summary}</summary>", *body, "</details>"]


def _paragraphs(text: str) -> Iterator[str]:
    return (f"<p>{escape(part)}</p>" for part in text.split("\n") if part)


def lesson_notebook(lesson: Lesson) -> str:
    """The notebook as JSON, without outputs and answers. `ShardvizError` where answers cannot be computed."""

    def cells() -> Iterator[tuple[str, str]]:
        text = f"# {lesson.title}\n\nRun the cells in order, and write your answers into those that ask."
        yield "markdown", text
        yield "code", INSTALL
        name = lesson.name if lesson.number else lesson.source
        yield "code", f"import shardviz\n\nlesson = shardviz.lesson({name!r})\nlesson"
        for key, prediction in lesson.questions.items():
            facts, said = stage_facts(prediction), key.removeprefix("predict.").replace(".", "_")
            listed = [*facts.choices, UNKNOWN] if prediction.tolerance is None else [typed_form(prediction)]
            choices = "\n".join(f"- `{choice}`" for choice in listed)
            again = "Only if that was wrong: " * key.endswith("again")
            text = f"**Predict {said.replace('_', ', ')}.** {again}{prediction.question}\n\n{choices}"
            yield "markdown", text
            yield "code", f'answer_{said} = ""'
            yield "code", f"lesson.check({key!r}, answer_{said})"
            yield "code", f"lesson.reveal({key!r})"
        yield "code", "lesson.explain"
        text = f"**Change.** {lesson.goal.text} Edit the command, and run the cell until the goal is met."
        yield "markdown", text
        is_collective = "collective" in lesson.goal.may_change
        command = to_command_line(lesson.setup, "step" if is_collective else "explain")
        yield "code", f"lesson.change({command!r})"

    return notebook_of(cells())
