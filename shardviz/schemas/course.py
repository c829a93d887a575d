"""Lessons, and problems as they are shared."""

from __future__ import annotations

from shardviz.schemas.vocabulary import (
    Schema,
    array_of,
    by_name,
    closed,
    count,
    exactly,
    nullable,
    one_of,
    ref,
    text,
    texts,
)

_SCREEN = one_of("The application's screen.", "layout", "plan", "step", "compiler")

DEFINITIONS: dict[str, Schema] = {
    "draft": closed(
        "A problem as its fields stand in the application, all of them text.",
        {
            "schema": exactly("shardviz-draft/1", "The version of saved problems."),
            "mesh": text("The mesh, such as X=2,Y=4."),
            "einsum": text("The einsum, or a chain of them with semicolons."),
            "specs": texts("The spec of each array; ? where the compiler may choose."),
            "sizes": text("Sizes by dimension; empty: the usual ones."),
            "dtype": text("The element type."),
            "axis_types": text("JAX's type of all mesh axes."),
            "device_order": text("Device ids in the mesh's order; empty: as jax.make_mesh has it."),
            "targets": text("Targets, comma-separated."),
            "collective": nullable(
                closed(
                    "A collective to play instead of the plan's own; null: none.",
                    {
                        "op": text("JAX's name of the collective."),
                        "axis": text("Mesh axes, the major one first; empty: all."),
                        "data": text("The whole array's numbers; empty: 0, 1, 2, …"),
                        "shape": text("The whole array's shape; empty: the usual one."),
                        "spec": text("How it is split; empty: dimension 0 over all axes."),
                        "dtype": text("The element type; empty: the usual one."),
                        "algorithm": text("The algorithm; empty: the usual one."),
                        "parameters": by_name({"type": "string"}, "Other options of step, by name."),
                    },
                )
            ),
        },
    ),
}

_DRAFT = ref("draft", "A problem.")

LESSONS = {
    "lessons": array_of(
        closed(
            "A lesson of the course.",
            {
                "number": count("Its number, from 1."),
                "name": text("Its name."),
                "title": text("Its title."),
                "state": one_of("How far the learner is.", "new", "begun", "solved"),
                "stage": nullable(text("The stage at which it was left; null: at none.")),
            },
        ),
        "All lessons, in order.",
    ),
}

LESSON = {
    "lesson": closed(
        "A lesson, with its answers.",
        {
            "number": count("Its number, from 1; 0 for one that is not of the course."),
            "name": text("Its name."),
            "title": text("Its title."),
            "see": text("What it shows first."),
            "screen": _SCREEN,
            "setup": ref("draft", "The problem that it begins with."),
            "predictions": array_of(
                closed(
                    "A question, and what follows on each answer.",
                    {
                        "question": text("The question."),
                        "ask": text("What is computed for the answer, in the words of lesson files."),
                        "choices": texts(
                            "The answers to choose from; empty where one is typed or pointed at."
                        ),
                        "answer": text("The right answer."),
                        "wrong": by_name(
                            {"type": "string"}, "What is said on likely wrong answers, by answer."
                        ),
                        "problem": ref("draft", "The problem that the question is about."),
                    },
                ),
                "The questions, in order.",
            ),
            "explain": text("The explanation."),
            "goal": text("What the learner is to reach."),
            "hints": texts("Hints, in order."),
            "solution": ref("draft", "A problem that meets the goal."),
            "program": nullable(text("The lesson's own program; null: it has none.")),
        },
    ),
}

LESSON_CHECK = {
    "lessons": array_of(
        closed(
            "A lesson file that was checked.",
            {
                "file": text("The file."),
                "complaints": array_of(
                    closed(
                        "A fault.",
                        {
                            "key": text("The key of the file; empty: the file itself."),
                            "reason": text("The fault."),
                        },
                    ),
                    "What is wrong with it.",
                ),
                "asked_of_jax": texts("Keys whose answers JAX was asked for."),
            },
        ),
        "The lessons that were checked.",
    ),
    "note": text("Why JAX was not asked; empty where it was."),
}

SHARED = {
    "shared": closed(
        "What a shared string says.",
        {
            "screen": _SCREEN,
            "lesson": text("The lesson's name; empty for a problem of its own."),
            "stage": count("The number of the lesson's stage, from 0."),
            "draft": _DRAFT,
        },
    ),
}
