"""The question of a collective of its own, from its fields in a form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from shardviz.collectives.operations import PARAMETERS, check_needed, check_operation
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import CollectiveFields
from shardviz.notation.mesh import parse_axes
from shardviz.notation.numbers import parse_numbers, parse_shape
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.stepping.question import CollectiveQuestion, question_from_options

T = TypeVar("T")
MAX_PIECES = 1024


def collective_question(collective: CollectiveFields, mesh: Mesh) -> CollectiveQuestion:
    """The question of `shardviz step` with these fields. Raises `QuestionError`, with the field's name,
    for a wrong one."""
    given = _parameters(collective)
    pieces = given.pop("pieces")
    _of("op", check_operation, collective.op, given)
    axes = _of("axis", parse_axes, collective.axis, mesh) if collective.axis else mesh.axis_names
    for field, read in (("data", parse_numbers), ("shape", parse_shape), ("dtype", canonical_dtype)):
        if text := getattr(collective, field):
            _of(field, read, text)
    _of("op", check_needed, collective.op, given, mesh.group_size(axes))
    return question_from_options(
        collective.op,
        given,
        mesh=mesh,
        axis=collective.axis or None,
        data=collective.data or None,
        shape=collective.shape or None,
        spec=collective.spec or None,
        dtype=collective.dtype or None,
        algorithm=collective.algorithm or None,
        pieces=pieces,
    )


def _parameters(collective: CollectiveFields) -> dict[str, Any]:
    """All that `question_from_options` takes; None for what is left out."""
    kinds = {"pieces": int} | {name: parameter.kind for name, parameter in PARAMETERS.items()}
    given: dict[str, Any] = dict.fromkeys(kinds)
    for name, text in collective.parameters:
        if name not in given:
            problem = f"no operation has the parameter {quote(name, 30)}"
            raise QuestionError(problem, f"they are {', '.join(kinds)}")
        given[name] = True if kinds[name] is bool else _number(name, text) if kinds[name] is int else text
    return given


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?\d{1,9}", text.strip(), re.ASCII):
        raise QuestionError(f"{name}: {quote(text, 30)} is not a whole number", "write for example 0")
    number = int(text)
    if name == "pieces" and not 1 <= number <= MAX_PIECES:
        problem = f"{name}: {number} is outside the range 1 to {MAX_PIECES:,}"
        raise QuestionError(problem, "write for example 4")
    return number


def _of(field: str, check: Callable[..., T], *texts: str | int | Mesh | Mapping[str, Any]) -> T:
    try:
        return check(*texts)
    except ShardvizError as error:
        name = "operation" if field == "op" else field
        raise QuestionError(f"{name}: {error.message}", error.hint) from None
