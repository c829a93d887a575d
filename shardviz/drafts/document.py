"""A draft as a JSON object and back: for the saved session, and for whoever sends a problem to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shardviz.drafts.draft import CollectiveDraft, Draft, parameter_names
from shardviz.drafts.plain_text import one_line
from shardviz.errors import QuestionError, quote

SCHEMA = "shardviz-draft/1"
MAX_TEXT = 20_000
"""Characters of all texts of a draft together."""
MAX_SPECS = 1000
"""Specs of a draft, which may have more of them than arrays."""


class UnknownVersion(QuestionError):
    """A problem that another shardviz wrote."""


_HINT = "it is written by shardviz, and read again only as it was written"


def to_document(draft: Draft) -> dict[str, Any]:
    """The draft in JSON's types, under its schema."""
    document: dict[str, Any] = {"schema": SCHEMA}
    document |= {field.name: getattr(draft, field.name) for field in fields(Draft)}
    document["specs"] = list(draft.specs)
    if draft.collective is not None:
        collective = {field.name: getattr(draft.collective, field.name) for field in fields(CollectiveDraft)}
        document["collective"] = collective | {"parameters": dict(draft.collective.parameters)}
    return document


def from_document(document: object) -> Draft:
    """The draft that `to_document` wrote; its fields may have faults, as they may have had then.

    Raises `UnknownVersion` for another schema, `QuestionError` for keys, types and texts of none.
    """
    if not isinstance(document, Mapping):
        raise QuestionError(f"a problem is a JSON object, not {_kind(document)}", _HINT)
    schema = document.get("schema")
    if schema != SCHEMA:
        raise UnknownVersion(
            f"the problem has the schema {_shown(schema)}, and this shardviz reads {SCHEMA}",
            "a newer shardviz may have written it: install that",
        )
    known = [field.name for field in fields(Draft)]
    _check_keys(document, ["schema", *known], "the problem")
    texts: dict[str, Any] = {
        name: _text(document[name], name) for name in known if name not in ("specs", "collective")
    }
    specs = document["specs"]
    if not isinstance(specs, list):
        raise QuestionError(f"specs are a list, not {_kind(specs)}", _HINT)
    if len(specs) > MAX_SPECS:
        raise QuestionError(f"the problem has {len(specs):,} specs", f"at most {MAX_SPECS:,} are read")
    texts["specs"] = tuple(_text(spec, f"specs.{number}") for number, spec in enumerate(specs))
    collective = document["collective"]
    draft = Draft(**texts, collective=None if collective is None else _collective(collective))
    length = sum(_length(document[name]) for name in known)
    if length > MAX_TEXT:
        raise QuestionError(f"the problem has {length:,} characters", f"at most {MAX_TEXT:,} are read")
    return draft


def _length(document: object) -> int:
    """Characters of all texts in it."""
    if isinstance(document, str):
        return len(document)
    inner = (
        document.values() if isinstance(document, Mapping) else document if isinstance(document, list) else ()
    )
    return sum(map(_length, inner))


def _collective(document: object) -> CollectiveDraft:
    if not isinstance(document, Mapping):
        raise QuestionError(f"a collective is a JSON object or null, not {_kind(document)}", _HINT)
    known = [field.name for field in fields(CollectiveDraft)]
    _check_keys(document, known, "the collective")
    parameters = document["parameters"]
    if not isinstance(parameters, Mapping):
        raise QuestionError(f"parameters are a JSON object, not {_kind(parameters)}", _HINT)
    taken = parameter_names()
    for name in parameters:
        if name not in taken:
            raise QuestionError(f"no collective has the parameter {_shown(name)}", _HINT)
    return CollectiveDraft(
        **{name: _text(document[name], f"collective.{name}") for name in known if name != "parameters"},
        parameters=tuple((name, _text(parameters[name], name)) for name in taken if name in parameters),
    )


def _check_keys(document: Mapping[str, object], known: list[str], what: str) -> None:
    for name in known:
        if name not in document:
            raise QuestionError(f"{what} lacks {name}", _HINT)
    for name in document:
        if name not in known:
            raise QuestionError(f"{what} has no {_shown(name)}", _HINT)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise QuestionError(f"{name} is a text, not {_kind(value)}", _HINT)
    if len(value) > MAX_TEXT:
        raise QuestionError(f"{name} has {len(value):,} characters", f"at most {MAX_TEXT:,} are read")
    if one_line(value) != value:
        raise QuestionError(f"{name} has characters that a line cannot show: {_shown(value)}", _HINT)
    return value


def _shown(value: object) -> str:
    return quote(value, 30) if isinstance(value, str) else _kind(value)


def _kind(value: object) -> str:
    """What JSON calls a value."""
    if value is None:
        return "null"
    names = {bool: "a truth value", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "an object")
