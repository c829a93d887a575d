"""Records of JSON documents: each field's type, description and source, declared once.

::

    record("A step of the plan.", op=of(str, "The operation.", "step.op"), axes=of([str], "Mesh axes."))

A type is ``str``, ``int`` or ``float`` (0 or more), ``bool``, a list of a type (``[str]``), an object whose
keys are names (``{str: int}``), one of some words, or a record. A description names the unit. The source says
where the value is, if not in the attribute of the field's name: in another one (``"spec.unreduced"``), at a
place of a tuple (``0``), or what a function of the object gives. Where a description says what null means
("null: not known"), None is written as null, and so is a text that is empty.

The schemas are JSON Schema: https://json-schema.org/draft/2020-12
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from operator import attrgetter, itemgetter
from typing import Any

SCHEMA = "shardviz/1"
"""The version of all documents; what a schema promises of one stays so under this name."""

Schema = dict[str, Any]
Document = dict[str, Any]
Source = str | int | Callable[[Any], Any] | None
DEFINITIONS: dict[str, Schema] = {}
"""Schemas that several places share, by name."""
_SAYS_NULL = re.compile(r"\bnull(:| where\b)")


@dataclass(frozen=True)
class JsonField:
    """A type of values, or a field of that type: `write` turns a value into JSON's types, `source` takes it
    from its object; one that `is_optional` is left out where that is None."""

    schema: Schema
    write: Callable[[Any], Any] = lambda value: value
    source: Source = None
    is_optional: bool = False

    def at(self, source: Source) -> JsonField:
        """The same from another source."""
        return replace(self, source=source)

    def shared(self, name: str) -> JsonField:
        """A type that several places have, each with its own description."""
        DEFINITIONS[name] = self.schema
        return JsonField({"$ref": f"#/$defs/{name}"}, self.write)


class Beside:
    """Objects as one that has the attributes of all, those of the first before those of others, and `more`
    before these."""

    def __init__(self, /, *of: object, **more: object) -> None:
        self.__dict__.update(more)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        *others, last = self._of or (None,)
        for one in others:
            if (value := getattr(one, name, self)) is not self:
                return value
        return getattr(last, name)


class DocumentKind:
    """A kind of document: `printed_by` is a command that prints one, `fields` are those after its head."""

    def __init__(self, name: str, printed_by: str, summary: str, /, **fields: JsonField) -> None:
        self.name, self.printed_by, self.summary = name, printed_by, summary
        schema = exactly(SCHEMA, "The version of all documents.")
        self.record = record(
            summary, schema=schema, kind=exactly(name, "The kind of this document."), **fields
        )

    def document(self, /, *of: object, **more: object) -> Document:
        """The document of objects, with the values that are given beside them."""
        written: Document = self.record.write(of[0] if len(of) == 1 and not more else Beside(*of, **more))
        return written


def of(kind: Any, description: str, source: Source = None) -> JsonField:
    """A field of a type."""
    inner = _type(kind)
    described = {"description": description}
    return JsonField(described | inner.schema | described, inner.write, source)


def record(description: str, source: Source = None, /, **fields: JsonField) -> JsonField:
    """An object with these fields and no others."""
    known = {name: _nullable(field) for name, field in fields.items()}
    written = [(name, _getter(name, field), field) for name, field in known.items()]

    def write(value: Any) -> Document:
        values = [(name, field, get(value)) for name, get, field in written]
        return {
            name: field.write(found)
            for name, field, found in values
            if found is not None or not field.is_optional
        }

    schema = {
        "description": description,
        "type": "object",
        "properties": {name: field.schema for name, field in known.items()},
        "required": [name for name, field in known.items() if not field.is_optional],
        "additionalProperties": False,
    }
    return JsonField(schema, write, source)


def records(description: str, of_each: str, source: Source = None, /, **fields: JsonField) -> JsonField:
    """A list of objects with these fields; `of_each` describes one of them."""
    return of([record(of_each, **fields)], description, source)


def optional(kind: Any, description: str = "", source: Source = None) -> JsonField:
    """A field that is left out of its object where it is None, or where the object has no such attribute."""
    field = kind if not description else of(kind, description, source)
    return replace(field, is_optional=True)


def one_of(*words: str) -> JsonField:
    return JsonField({"enum": list(words)})


def exactly(value: str, description: str) -> JsonField:
    return JsonField({"description": description, "const": value}, source=lambda _: value)


def late(module: str, function: str) -> Callable[[Any], Any]:
    """A source: a function of an engine, which is imported when a document is written, not for its schema."""
    return lambda of: getattr(import_module(module), function)(of)


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities are strings, a complex number is [real, imaginary]."""
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


_OF_PYTHON = {
    str: JsonField({"type": "string"}),
    int: JsonField({"type": "integer", "minimum": 0}),
    float: JsonField({"type": "number", "minimum": 0}),
    bool: JsonField({"type": "boolean"}),
    Any: JsonField({}, plain),
}
SIGNED_INT = JsonField({"type": "integer"})
SIGNED_FLOAT = JsonField({"type": "number"})
BANDWIDTH = JsonField({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "inf"}]}, plain)
"""Bytes a second; "inf" where bytes take no time."""


def _type(kind: Any) -> JsonField:
    if isinstance(kind, JsonField):
        return kind
    if isinstance(kind, list):
        item = _type(kind[0])
        return JsonField({"type": "array", "items": item.schema}, lambda values: [*map(item.write, values)])
    if isinstance(kind, dict):
        item = _type(kind[str])
        return JsonField(
            {"type": "object", "additionalProperties": item.schema},
            lambda pairs: {name: item.write(value) for name, value in dict(pairs).items()},
        )
    return _OF_PYTHON[kind]


def _nullable(field: JsonField) -> JsonField:
    """The field, which may be null where its description says so."""
    schema = dict(field.schema)
    description = schema.pop("description")
    if not _SAYS_NULL.search(description):
        return field

    def write(value: Any) -> Any:
        return None if value in (None, "") else field.write(value)

    return replace(
        field, schema={"description": description, "anyOf": [schema, {"type": "null"}]}, write=write
    )


def _getter(name: str, field: JsonField) -> Callable[[Any], Any]:
    source = name if field.source is None else field.source
    if callable(source):
        return source
    if isinstance(source, int):
        return itemgetter(source)
    if field.is_optional:
        return lambda of: getattr(of, source, None)
    first, *rest = source.split(".")

    def get(of: Any) -> Any:
        value = getattr(of, first)
        for attribute in rest:
            value = None if value is None else getattr(value, attribute)
        return value

    return get if rest else attrgetter(first)
