"""Every kind of document, and its schema on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardviz.documents import course, machines, meshes, plans, programs, rounds, summaries
from shardviz.documents.fields import DEFINITIONS, Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KINDS = (
    *(programs.EXPLAIN, plans.RANKING, plans.VERSUS, plans.SWEEP, plans.SEARCH, programs.PASSES),
    *(programs.HLO, programs.MODULES, programs.REMATERIALIZATIONS, programs.PROGRAM, programs.PROFILE),
    *(summaries.SUMMARY, summaries.DIFF, programs.TIMELINE_KIND, meshes.LAYOUT),
    *(rounds.STEP, rounds.TRANSFERS, rounds.COMPARISON, rounds.MATMUL, meshes.TRANSLATE),
    *(course.LESSONS, course.LESSON, course.LESSON_CHECK, course.SHARED, programs.MODEL),
    *(machines.MACHINE, machines.MEASURE, machines.TARGETS, machines.INFO),
)
KINDS = {kind.name: kind for kind in _KINDS}
"""Every kind by its name, in the order of the commands."""


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a kind of `KINDS`, with the definitions that it needs and no others."""
    kind = KINDS[name]
    root = kind.record.schema
    return {
        "$schema": DIALECT,
        "title": f"shardviz {kind.printed_by}{'' if '--' in kind.printed_by else ' --json'}",
        **root,
        "$defs": {each: DEFINITIONS[each] for each in sorted(_needed(root))},
    }


def _needed(schema: Schema) -> set[str]:
    """Names of the definitions that a schema refers to, also by way of others."""
    needed: set[str] = set()
    waiting = [*_references(schema)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += _references(DEFINITIONS[name])
    return needed


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
        yield reference.rpartition("/")[2]
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _references(value)
