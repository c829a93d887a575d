"""Lessons, and problems as they are shared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, DocumentKind, exactly, late, of, one_of, record, records
from shardviz.forms.form import SCREENS

if TYPE_CHECKING:
    from shardviz.lessons.lesson import Lesson

_DRAFT = record(
    "A problem as its fields stand in the application, all of them text.",
    schema=exactly("shardviz-draft/1", "The version of saved problems."),
    mesh=of(str, "The mesh, such as X=2,Y=4."),
    einsum=of(str, "The einsum, or a chain of them with semicolons."),
    specs=of([str], "The spec of each array; ? where the compiler may choose."),
    sizes=of(str, "Sizes by dimension; empty: the usual ones."),
    dtype=of(str, "The element type."),
    axis_types=of(str, "JAX's type of all mesh axes."),
    device_order=of(str, "Device ids in the mesh's order; empty: as jax.make_mesh has it."),
    targets=of(str, "Targets, comma-separated."),
    machine=of(str, "The hardware that times are for, or its file; empty: the first target's."),
    objective=of(str, "What to minimise: given, time or bytes."),
    backward=of(str, "A train step is asked for, with its gradients: yes or no."),
    remat=of(str, "The part of the forward pass that is computed again: none, layer or dots."),
    optimizer=of(str, "The optimizer: none, sgd, adam, or adam,moments=bf16,over=X."),
    collective=record(
        "A collective to play instead of the plan's own; null: none.",
        op=of(str, "JAX's name of the collective."),
        axis=of(str, "Mesh axes, the major one first; empty: all."),
        data=of(str, "The whole array's numbers; empty: 0, 1, 2, …"),
        shape=of(str, "The whole array's shape; empty: the usual one."),
        spec=of(str, "Its sharding; empty: dimension 0 over all axes."),
        dtype=of(str, "The element type; empty: the usual one."),
        algorithm=of(str, "The algorithm; empty: the usual one."),
        parameters=of({str: str}, "Other options of step, by name."),
    ),
)
DRAFT = replace(_DRAFT, write=late("shardviz.forms.share", "to_document")).shared("draft")
"""A form, as share strings and files have it."""
_SCREEN = of(one_of(*SCREENS), "The application's screen.")
LESSONS = DocumentKind(
    "lessons",
    "lesson --list",
    "The course, and the learner's progress.",
    lessons=records(
        "All lessons, in order.",
        "A lesson of the course.",
        number=of(int, "Its number, from 1."),
        name=of(str, "Its name."),
        title=of(str, "Its title."),
        state=of(one_of("new", "begun", "solved"), "The learner's progress."),
        stage=of(str, "The stage at which it was left; null: at none."),
    ),
)


def _questions(lesson: Lesson) -> Iterator[Beside]:
    """Each prediction with its choices, all in one form, and the right one of them."""
    from shardviz.lessons.attempt import UNKNOWN
    from shardviz.lessons.measures import answer_of, choices

    for prediction in lesson.predictions:
        answer = answer_of(prediction)
        yield Beside(
            prediction,
            choices=[*map(answer.shown, choices(prediction)), UNKNOWN],
            answer=answer.text,
            wrong={answer.shown(said): reason for said, reason in prediction.wrong.items()},
        )


LESSON = DocumentKind(
    "lesson",
    "lesson LESSON",
    "A lesson with its answers.",
    lesson=record(
        "A lesson, with its answers.",
        number=of(int, "Its number, from 1; 0 for one that is not of the course."),
        name=of(str, "Its name."),
        title=of(str, "Its title."),
        see=of(str, "The first thing that it shows."),
        screen=_SCREEN,
        setup=of(DRAFT, "The problem that it begins with."),
        predictions=records(
            "The questions, in order.",
            "A question, and the reply to each answer.",
            _questions,
            question=of(str, "The question."),
            ask=of(str, "The measure that computes the answer, as lesson files write it."),
            choices=of([str], "The answers to choose from; empty where one is typed or pointed at."),
            answer=of(str, "The right answer."),
            wrong=of({str: str}, "The replies to likely wrong answers, by answer."),
            problem=of(DRAFT, "The problem that the question is about.", "draft"),
        ),
        explain=of(str, "The explanation."),
        goal=of(str, "The learner's goal.", "goal.text"),
        hints=of([str], "Hints, in order."),
        solution=of(DRAFT, "A problem that meets the goal."),
        program=of(str, "The lesson's own program; null: it has none."),
    ),
)
LESSON_CHECK = DocumentKind(
    "lesson_check",
    "lesson --check",
    "The faults of lesson files.",
    lessons=records(
        "The lessons that were checked.",
        "A lesson file that was checked.",
        file=of(str, "The file."),
        complaints=records(
            "Its faults.",
            "A fault.",
            key=of(str, "The key of the file; empty: the file itself."),
            reason=of(str, "The fault."),
        ),
        asked_of_jax=of([str], "Keys whose answers JAX was asked for."),
    ),
    note=of(str, "The reason why JAX was not asked; empty where it was."),
)
SHARED = DocumentKind(
    "shared",
    "tui --from",
    "The content of a shared string.",
    shared=record(
        "The content of a shared string.",
        screen=_SCREEN,
        lesson=of(str, "The lesson's name; empty for a problem of its own."),
        stage=of(int, "The number of the lesson's stage, from 0."),
        draft=of(DRAFT, "A problem."),
    ),
)
