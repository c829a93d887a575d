"""Every kind of document, and its schema on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from shardviz.schemas import SCHEMA, course, plans, programs, rounds
from shardviz.schemas.vocabulary import Schema, closed, exactly

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEFINITIONS = {**plans.DEFINITIONS, **programs.DEFINITIONS, **rounds.DEFINITIONS, **course.DEFINITIONS}


@dataclass(frozen=True)
class Kind:
    """A kind of document: `printed_by` is a command that prints one, `fields` are those after its head."""

    printed_by: str
    summary: str
    fields: dict[str, Schema]


KINDS = {
    "explain": Kind("explain", "The plan of an einsum, and what the compilers make of it.", programs.EXPLAIN),
    "ranking": Kind("explain --specs", "Every sharding of an einsum worth considering.", plans.RANKING),
    "passes": Kind("passes", "What a compiler does to a program, pass by pass.", programs.PASSES),
    "hlo": Kind("hlo", "The collectives in any compiled program.", programs.HLO),
    "layout": Kind("layout", "Which slice of an array every device holds.", plans.LAYOUT),
    "step": Kind("step", "A collective round by round.", rounds.STEP),
    "comparison": Kind("step --compare", "The algorithms of a collective side by side.", rounds.COMPARISON),
    "translate": Kind("translate", "A sharding in every notation.", plans.TRANSLATE),
    "lessons": Kind("lesson --list", "The course, and how far the learner is.", course.LESSONS),
    "lesson": Kind("lesson LESSON", "A lesson with its answers.", course.LESSON),
    "lesson_check": Kind("lesson --check", "What is wrong with lesson files.", course.LESSON_CHECK),
    "shared": Kind("tui --from", "What a shared string says.", course.SHARED),
    "targets": Kind("targets", "What can be asked, and what installs it.", plans.TARGETS),
    "info": Kind("info", "Versions of all that an answer can depend on.", plans.INFO),
}
"""Every kind, in the order of the commands."""


def schema_of(kind: str) -> dict[str, Any]:
    """The schema of a kind of `KINDS`, with the definitions that it needs and no others."""
    found = KINDS[kind]
    head = {
        "schema": exactly(SCHEMA, "The version of all documents."),
        "kind": exactly(kind, "The kind of this document."),
    }
    root = closed(found.summary, {**head, **found.fields})
    return {
        "$schema": DIALECT,
        "title": f"shardviz {found.printed_by} --json",
        **root,
        "$defs": {name: DEFINITIONS[name] for name in sorted(_needed(root))},
    }


def _needed(schema: Schema) -> set[str]:
    """Names of the definitions that a schema refers to, also by way of others."""
    found: set[str] = set()
    waiting = list(_references(schema))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(DEFINITIONS[name])
    return found


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)
