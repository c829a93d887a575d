"""Fields of JSON documents: how each is written, and its JSON Schema with a description that names its unit.

https://json-schema.org/draft/2020-12
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

SCHEMA = "shardviz/1"
"""The version of all documents; what a schema promises of one stays so under this name."""

Schema = dict[str, Any]
Document = dict[str, Any]
DEFINITIONS: dict[str, Schema] = {}
"""Schemas that several places share, by name."""


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class JsonField:
    """A value of a document; `write` turns it into JSON's types, `source` takes it from its object."""

    schema: Schema
    write: Callable[[Any], Any] = _as_it_is
    source: Callable[[Any], Any] | None = None
    is_optional: bool = False

    def of(self, source: str | Callable[[Any], Any]) -> JsonField:
        """The same, of another attribute than the field's own name ("spec.unreduced"), or computed."""
        return replace(self, source=attrgetter(source) if isinstance(source, str) else source)

    def by(self, write: Callable[[Any], Any]) -> JsonField:
        """The same, written by a function."""
        return replace(self, write=write)


class Beside:
    """An object with more attributes beside its own, which go before them."""

    def __init__(self, of: object = None, /, **more: object) -> None:
        self.__dict__.update(more)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class DocumentKind:
    """A kind of document: `printed_by` is a command that prints one, `fields` are those after its head."""

    def __init__(self, name: str, printed_by: str, summary: str, /, **fields: JsonField) -> None:
        self.name, self.printed_by, self.summary = name, printed_by, summary
        schema = exactly(SCHEMA, "The version of all documents.")
        self.record = closed(
            summary, schema=schema, kind=exactly(name, "The kind of this document."), **fields
        )

    def document(self, of: object = None, /, **more: object) -> Document:
        """The document of an object, with the values that are given beside it."""
        written: Document = self.record.write(Beside(of, **more))
        return written


def closed(description: str, /, **fields: JsonField) -> JsonField:
    """An object with these fields and no others."""
    sources = [(name, each.source or attrgetter(name), each) for name, each in fields.items()]

    def write(of: Any) -> Document:
        values = [(name, each, source(of)) for name, source, each in sources]
        return {
            name: each.write(value)
            for name, each, value in values
            if value is not None or not each.is_optional
        }

    schema = {
        "description": description,
        "type": "object",
        "properties": {name: each.schema for name, each in fields.items()},
        "required": [name for name, each in fields.items() if not each.is_optional],
        "additionalProperties": False,
    }
    return JsonField(schema, write)


def optional(field: JsonField) -> JsonField:
    """The same, left out of its object where it is None."""
    return replace(field, is_optional=True)


def shared(name: str, field: JsonField) -> Callable[[str], JsonField]:
    """A field that several places have: each calls it with its own description."""
    DEFINITIONS[name] = field.schema
    return lambda description: JsonField({"description": description, "$ref": f"#/$defs/{name}"}, field.write)


def by_name(item: JsonField, description: str) -> JsonField:
    """An object whose keys are names that a document brings along."""
    schema = {"description": description, "type": "object", "additionalProperties": item.schema}
    return JsonField(schema, lambda pairs: {name: item.write(each) for name, each in dict(pairs).items()})


def array_of(item: JsonField, description: str) -> JsonField:
    schema = {"description": description, "type": "array", "items": item.schema}
    return JsonField(schema, lambda values: [item.write(each) for each in values])


def nullable(field: JsonField) -> JsonField:
    """The same, or null for None; its description says what null means."""
    inner = dict(field.schema)
    schema = {"description": inner.pop("description"), "anyOf": [inner, {"type": "null"}]}
    return JsonField(schema, lambda value: None if value is None else field.write(value), field.source)


def null_if_empty(field: JsonField) -> JsonField:
    """The same, or null for an empty text and for 0."""
    return nullable(field).by(lambda value: field.write(value) if value else None)


STRING = JsonField({"type": "string"})
COUNT = JsonField({"type": "integer", "minimum": 0})


def text(description: str) -> JsonField:
    return JsonField({"description": description, **STRING.schema})


def texts(description: str) -> JsonField:
    return array_of(STRING, description)


def one_of(description: str, *values: str) -> JsonField:
    return JsonField({"description": description, "enum": list(values)})


def exactly(value: str, description: str) -> JsonField:
    return JsonField({"description": description, "const": value}, source=lambda _: value)


def count(description: str) -> JsonField:
    """A whole number, 0 or more."""
    return JsonField({"description": description, **COUNT.schema})


def counts(description: str) -> JsonField:
    return array_of(COUNT, description)


def number(description: str) -> JsonField:
    """A number, 0 or more."""
    return JsonField({"description": description, "type": "number", "minimum": 0})


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities are strings, a complex number is [real, imaginary]."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def bandwidth(description: str) -> JsonField:
    """Bytes a second; "inf" where bytes take no time."""
    limits: list[Schema] = [{"type": "number", "exclusiveMinimum": 0}, {"const": "inf"}]
    return JsonField({"description": description, "anyOf": limits}, plain)


def flag(description: str) -> JsonField:
    return JsonField({"description": description, "type": "boolean"})


def anything(description: str) -> JsonField:
    return JsonField({"description": description})
