"""The pieces of a JSON Schema, each with a description that names its unit.

https://json-schema.org/draft/2020-12
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]


def closed(
    description: str, required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None
) -> Schema:
    """An object with these properties and no others."""
    return {
        "description": description,
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def by_name(item: Schema, description: str) -> Schema:
    """An object whose keys are names that a document brings along."""
    return {"description": description, "type": "object", "additionalProperties": item}


def array_of(item: Schema, description: str) -> Schema:
    return {"description": description, "type": "array", "items": item}


def nullable(schema: Schema) -> Schema:
    """The same, or null; its description says what null means."""
    inner = dict(schema)
    description = inner.pop("description")
    return {"description": description, "anyOf": [inner, {"type": "null"}]}


def text(description: str) -> Schema:
    return {"description": description, "type": "string"}


def texts(description: str) -> Schema:
    return array_of({"type": "string"}, description)


def one_of(description: str, *values: str) -> Schema:
    return {"description": description, "enum": list(values)}


def exactly(value: str, description: str) -> Schema:
    return {"description": description, "const": value}


def count(description: str) -> Schema:
    """A whole number, 0 or more."""
    return {"description": description, "type": "integer", "minimum": 0}


def counts(description: str) -> Schema:
    return array_of({"type": "integer", "minimum": 0}, description)


def number(description: str) -> Schema:
    """A number, 0 or more."""
    return {"description": description, "type": "number", "minimum": 0}


def flag(description: str) -> Schema:
    return {"description": description, "type": "boolean"}


def anything(description: str) -> Schema:
    return {"description": description}


def ref(name: str, description: str) -> Schema:
    """A definition that several places share, by its name in `DEFINITIONS`."""
    return {"description": description, "$ref": f"#/$defs/{name}"}
