"""A collective of its own, in texts → the question that the player plays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from shardviz.drafts.draft import CollectiveDraft
from shardviz.errors import QuestionError, ShardvizError, quote

if TYPE_CHECKING:
    from shardviz.sharding import Mesh
    from shardviz.stepping.question import CollectiveQuestion

MAX_PIECES = 1024


def collective_question(collective: CollectiveDraft, mesh: Mesh) -> CollectiveQuestion:
    """What `shardviz step` would be asked. Raises `ShardvizError`, whose message names the part that is wrong
    where it is one alone: ``shape: …``."""
    from shardviz.collectives.operations import check_operation
    from shardviz.stepping.question import question_from_options

    given = _parameters(collective)
    pieces = given.pop("pieces")
    _of("operation", check_operation, collective.op, given)
    _check_parts(collective, mesh)
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


def _check_parts(collective: CollectiveDraft, mesh: Mesh) -> None:
    """Raise for a part that is wrong whatever the others are."""
    from shardviz.notation import parse_axes, parse_numbers, parse_shape
    from shardviz.sharding import canonical_dtype

    if collective.axis:
        _of("axis", parse_axes, collective.axis, mesh)
    if collective.data:
        _of("data", parse_numbers, collective.data)
    if collective.shape:
        _of("shape", parse_shape, collective.shape)
    if collective.dtype:
        _of("dtype", canonical_dtype, collective.dtype)


def _parameters(collective: CollectiveDraft) -> dict[str, Any]:
    """All that `question_from_options` takes; None for what is left out."""
    from shardviz.collectives.operations import PARAMETERS

    kinds = {"pieces": int} | {name: parameter.kind for name, parameter in PARAMETERS.items()}
    given: dict[str, Any] = dict.fromkeys(kinds)
    for name, text in collective.parameters:
        if name not in given:
            raise QuestionError(
                f"no operation has the parameter {quote(name, 30)}", f"they are {', '.join(kinds)}"
            )
        given[name] = True if kinds[name] is bool else _number(name, text) if kinds[name] is int else text
    return given


def _number(name: str, text: str) -> int:
    sign, digits = ("-", text.strip()[1:]) if text.strip().startswith("-") else ("", text.strip())
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        raise QuestionError(f"{name}: {quote(text, 30)} is not a whole number", "write for example 0")
    number = int(sign + digits)
    if name == "pieces" and not 1 <= number <= MAX_PIECES:
        raise QuestionError(f"pieces: {number} are not from 1 to {MAX_PIECES:,}", "write for example 4")
    return number


def _of(part: str, check: Callable[..., Any], *texts: str | Mesh | Mapping[str, Any]) -> None:
    """Check one part; its error begins with its name."""
    try:
        check(*texts)
    except ShardvizError as error:
        raise QuestionError(f"{part}: {error.message}", error.hint) from None
