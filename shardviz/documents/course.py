"""Lessons, and problems as they are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.documents.fields import (
    STRING,
    Beside,
    DocumentKind,
    array_of,
    by_name,
    closed,
    count,
    exactly,
    null_if_empty,
    nullable,
    one_of,
    shared,
    text,
    texts,
)
from shardviz.forms.form import SCREENS

if TYPE_CHECKING:
    from shardviz.forms.form import ProblemForm
    from shardviz.lessons.lesson import Prediction

DRAFT = shared(
    "draft",
    closed(
        "A problem as its fields stand in the application, all of them text.",
        schema=exactly("shardviz-draft/1", "The version of saved problems."),
        mesh=text("The mesh, such as X=2,Y=4."),
        einsum=text("The einsum, or a chain of them with semicolons."),
        specs=texts("The spec of each array; ? where the compiler may choose."),
        sizes=text("Sizes by dimension; empty: the usual ones."),
        dtype=text("The element type."),
        axis_types=text("JAX's type of all mesh axes."),
        device_order=text("Device ids in the mesh's order; empty: as jax.make_mesh has it."),
        targets=text("Targets, comma-separated."),
        machine=text("The hardware that times are for, or its file; empty: the first target's."),
        objective=text("What to minimise: given, time or bytes."),
        backward=text("A train step is asked for, with its gradients: yes or no."),
        remat=text("The part of the forward pass that is computed again: none, layer or dots."),
        optimizer=text("The optimizer: none, sgd, adam, or adam,moments=bf16,over=X."),
        collective=nullable(
            closed(
                "A collective to play instead of the plan's own; null: none.",
                op=text("JAX's name of the collective."),
                axis=text("Mesh axes, the major one first; empty: all."),
                data=text("The whole array's numbers; empty: 0, 1, 2, …"),
                shape=text("The whole array's shape; empty: the usual one."),
                spec=text("Its sharding; empty: dimension 0 over all axes."),
                dtype=text("The element type; empty: the usual one."),
                algorithm=text("The algorithm; empty: the usual one."),
                parameters=by_name(STRING, "Other options of step, by name."),
            )
        ),
    ).by(lambda form: _saved(form)),
)
_SCREEN = one_of("The application's screen.", *SCREENS)

LESSONS = DocumentKind(
    "lessons",
    "lesson --list",
    "The course, and the learner's progress.",
    lessons=array_of(
        closed(
            "A lesson of the course.",
            number=count("Its number, from 1."),
            name=text("Its name."),
            title=text("Its title."),
            state=one_of("The learner's progress.", "new", "begun", "solved"),
            stage=null_if_empty(text("The stage at which it was left; null: at none.")),
        ),
        "All lessons, in order.",
    ),
)


def _saved(form: ProblemForm) -> dict[str, Any]:
    """The form as share strings and files have it."""
    from shardviz.forms.share import to_document

    return to_document(form)


def _answered(prediction: Prediction) -> Beside:
    """A prediction with its choices, all in one form, and the right one of them."""
    from shardviz.lessons.attempt import UNKNOWN
    from shardviz.lessons.measures import answer_of, choices

    answer = answer_of(prediction)
    return Beside(
        prediction,
        choices=[*map(answer.shown, choices(prediction)), UNKNOWN],
        answer=answer.text,
        wrong={answer.shown(said): reason for said, reason in prediction.wrong.items()},
    )


LESSON = DocumentKind(
    "lesson",
    "lesson LESSON",
    "A lesson with its answers.",
    lesson=closed(
        "A lesson, with its answers.",
        number=count("Its number, from 1; 0 for one that is not of the course."),
        name=text("Its name."),
        title=text("Its title."),
        see=text("The first thing that it shows."),
        screen=_SCREEN,
        setup=DRAFT("The problem that it begins with."),
        predictions=array_of(
            closed(
                "A question, and the reply to each answer.",
                question=text("The question."),
                ask=text("The measure that computes the answer, as lesson files write it."),
                choices=texts("The answers to choose from; empty where one is typed or pointed at."),
                answer=text("The right answer."),
                wrong=by_name(STRING, "The replies to likely wrong answers, by answer."),
                problem=DRAFT("The problem that the question is about.").of("draft"),
            ),
            "The questions, in order.",
        ).of(lambda lesson: map(_answered, lesson.predictions)),
        explain=text("The explanation."),
        goal=text("The learner's goal.").of("goal.text"),
        hints=texts("Hints, in order."),
        solution=DRAFT("A problem that meets the goal."),
        program=null_if_empty(text("The lesson's own program; null: it has none.")),
    ),
)


LESSON_CHECK = DocumentKind(
    "lesson_check",
    "lesson --check",
    "The faults of lesson files.",
    lessons=array_of(
        closed(
            "A lesson file that was checked.",
            file=text("The file."),
            complaints=array_of(
                closed(
                    "A fault.",
                    key=text("The key of the file; empty: the file itself."),
                    reason=text("The fault."),
                ),
                "Its faults.",
            ),
            asked_of_jax=texts("Keys whose answers JAX was asked for."),
        ),
        "The lessons that were checked.",
    ),
    note=text("The reason why JAX was not asked; empty where it was."),
)


SHARED = DocumentKind(
    "shared",
    "tui --from",
    "The content of a shared string.",
    shared=closed(
        "The content of a shared string.",
        screen=_SCREEN,
        lesson=text("The lesson's name; empty for a problem of its own."),
        stage=count("The number of the lesson's stage, from 0."),
        draft=DRAFT("A problem."),
    ),
)
