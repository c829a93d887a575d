"""Records of JSON documents: each field's type, description and source, declared once in a table.

Beside each module of this folder stands the table of its records, such as `plans.toml`::

    [step]
    is = "A step of the plan."
    op = ["str", "The operation.", "step.op"]
    axes = ["[str]", "Mesh axes."]

A type is ``str``, ``int`` or ``float`` (0 or more), ``bool``, ``any``, words (``auto|explicit``), one word
(``=array``), a record of the table or of another one (``meshes.mesh``), or what a module has in its `TYPES`.
``[T]`` is a list, ``{T}`` an object whose keys are names, and ``[T: An item.]`` describes the items; a field
of ``T?`` is left out where it is None. A description names the unit, and is the record's own where it is
empty. The source says where the value is, if not in the attribute of the field's name: in another one
(``spec.unreduced``), at a place of a tuple (``before.1``), or what a function of the module's `SOURCES` gives
(``arrays()``). Where a description says what null means ("null: not known"), None is written as null, and so
is a text that is empty. ``record = "*"`` stands for all fields of that record; a `shared` one is a definition
that several places of a schema refer to; one that is `printed_by` a command is a kind of document.

The schemas are JSON Schema: https://json-schema.org/draft/2020-12"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from operator import attrgetter, itemgetter
from types import ModuleType
from typing import Any

SCHEMA = "shardviz/1"
"""The version of all documents; what a schema promises of one stays so under this name."""

Schema = dict[str, Any]
Document = dict[str, Any]
Source = Callable[[Any], Any]
DEFINITIONS: dict[str, Schema] = {}
"""Schemas that several places share, by name."""
_SAYS_NULL = re.compile(r"\bnull(:| where\b)")


@dataclass(frozen=True)
class JsonField:
    """A type of values, or a field of that type: `write` turns a value into JSON's types, `source` takes it
    from its object; one that `is_optional` is left out where that is None."""

    schema: Schema
    write: Callable[[Any], Any] = lambda value: value
    source: Source = lambda value: value
    is_optional: bool = False

    def shared(self, name: str) -> JsonField:
        """A type that several places have, each with its own description."""
        DEFINITIONS[name] = self.schema
        return JsonField({"$ref": f"#/$defs/{name}"}, self.write)

    def described(self, description: str) -> JsonField:
        first = {"description": description or self.schema["description"]}
        return JsonField(first | self.schema | first, self.write)


class Beside:
    """Objects as one that has the attributes of all, the first's before others', and `more` before these."""

    def __init__(self, /, *of: object, **more: object) -> None:
        self.__dict__.update(more)
        self._of = of

    def __getattr__(self, name: str) -> Any:
        *others, last = self._of or (None,)
        for one in others:
            if (value := getattr(one, name, self)) is not self:
                return value
        return getattr(last, name)


@dataclass(frozen=True)
class DocumentKind:
    """A kind of document, by the table that declares it: `printed_by` is a command that prints one."""

    module: str
    name: str

    @property
    def summary(self) -> str:
        return str(_tables(self.module)[self.name]["is"])

    @property
    def printed_by(self) -> str:
        return str(_tables(self.module)[self.name]["printed_by"])

    @property
    def record(self) -> JsonField:
        return record(self.module, self.name)

    def document(self, /, *of: object, **more: object) -> Document:
        """The document of objects, with the values that are given beside them."""
        written: Document = self.record.write(of[0] if len(of) == 1 and not more else Beside(*of, **more))
        return written


_KINDS = (
    "programs.explain plans.ranking plans.versus plans.sweep searches.search programs.passes programs.hlo "
    "programs.modules programs.rematerializations programs.program programs.trials programs.values "
    "programs.refusal timelines.profile summaries.summary summaries.diff programs.timeline meshes.layout "
    "rounds.step rounds.comparison rounds.plan_steps rounds.matmul meshes.translate course.lessons "
    "course.lesson course.lesson_check course.shared models.model models.serving models.checkpoint "
    "machines.machine machines.measure machines.targets machines.info"
)
KINDS = {kind.partition(".")[2]: DocumentKind(*kind.split(".")) for kind in _KINDS.split()}
"""Every kind by its name, in the order of the commands."""
_MODULES = {"meshes": "machines", "models": "programs", "searches": "plans", "timelines": "programs"}
"""The module of a file of tables, where it has another name."""


def _module_of(tables: str) -> ModuleType:
    return import_module(f"{__package__}.{_MODULES.get(tables, tables)}")


@cache
def _tables(module: str) -> dict[str, dict[str, Any]]:
    return tomllib.loads(files(__package__).joinpath(f"{module}.toml").read_text(encoding="utf-8"))


@cache
def record(module: str, name: str) -> JsonField:
    """An object with the fields of a table and no others."""
    table = _tables(module)[name]
    if "printed_by" in table:
        schema = [f"={SCHEMA}", "The version of all documents."]
        table = {
            "is": table["is"],
            "schema": schema,
            "kind": [f"={name}", "The kind of this document."],
        } | table
    made = record_of(table, module)
    return made.shared(name) if table.get("shared") is True else made


def record_of(table: dict[str, Any], module: str) -> JsonField:
    fields = dict(_fields(table, module))

    def write(value: Any) -> Document:
        values = [(name, field, field.source(value)) for name, field in fields.items()]
        return {
            name: field.write(field_value)
            for name, field, field_value in values
            if field_value is not None or not field.is_optional
        }

    schema = {
        "description": table["is"],
        "type": "object",
        "properties": {name: field.schema for name, field in fields.items()},
        "required": [name for name, field in fields.items() if not field.is_optional],
        "additionalProperties": False,
    }
    return JsonField(schema, write)


def _fields(table: dict[str, Any], module: str) -> Iterator[tuple[str, JsonField]]:
    for name, declared in table.items():
        if declared == "*":
            whose, of = _place(name, module)
            yield from _fields(_tables(whose)[of], whose)
        elif isinstance(declared, list):
            yield name, _field(name, module, *declared)


def _field(name: str, module: str, said: str, description: str = "", source: str | int = "") -> JsonField:
    if said.startswith("="):
        return JsonField({"description": description, "const": said[1:]}, source=lambda _: said[1:])
    is_optional = said.endswith("?")
    field = _type(said.removesuffix("?"), module).described(description)
    get = _getter(name if source == "" else source, module, is_optional)
    return replace(_nullable(field), source=get, is_optional=is_optional)


def _type(said: str, module: str) -> JsonField:
    if said[0] in "[{":
        inner, _, description = said[1:-1].partition(": ")
        item = _type(inner, module)
        item = item.described(description) if description else item
        if said[0] == "[":
            schema = {"type": "array", "items": item.schema}
            return JsonField(schema, lambda values: [*map(item.write, values)])
        schema = {"type": "object", "additionalProperties": item.schema}
        return JsonField(
            schema, lambda pairs: {name: item.write(value) for name, value in dict(pairs).items()}
        )
    if "|" in said:
        return one_of(said.split("|"))
    return _BASE.get(said) or _named(*_place(said, module))


@cache
def _named(module: str, name: str) -> JsonField:
    made = getattr(_module_of(module), "TYPES", {}).get(name)
    return made() if made else record(module, name)


def _place(said: str, module: str) -> tuple[str, str]:
    """The module of a type's name, and its name there."""
    whose, _, name = said.rpartition(".")
    return whose or module, name


def one_of(words: Iterable[str]) -> JsonField:
    return JsonField({"enum": [*words]})


def late(module: str, function: str) -> Source:
    """A source: a function of an engine, which is imported when a document is written, not for its schema."""
    return lambda of: getattr(import_module(module), function)(of)


def plain(value: Any) -> Any:
    """A value as JSON has it: NaN and infinities are strings, a complex number is [real, imaginary]."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


_BASE = {
    "str": JsonField({"type": "string"}),
    "int": JsonField({"type": "integer", "minimum": 0}),
    "float": JsonField({"type": "number", "minimum": 0}),
    "bool": JsonField({"type": "boolean"}),
    "any": JsonField({}, plain),
    "signed_int": JsonField({"type": "integer"}),
    "signed_float": JsonField({"type": "number"}),
    "bandwidth": JsonField({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "inf"}]}, plain),
}
"""Types by name; a bandwidth is in bytes per second, "inf" where bytes take no time."""


def _nullable(field: JsonField) -> JsonField:
    """The field, which may be null where its description says so."""
    schema = dict(field.schema)
    description = schema.pop("description")
    if not _SAYS_NULL.search(description):
        return field
    return JsonField(
        {"description": description, "anyOf": [schema, {"type": "null"}]},
        lambda value: None if value in (None, "") else field.write(value),
    )


def _getter(source: str | int, module: str, is_optional: bool) -> Source:
    words = str(source)
    if words.endswith("()"):
        return lambda of: _module_of(module).SOURCES[words[:-2]](of)
    if is_optional:
        return lambda of: getattr(of, words, None)
    getters: list[Source] = [
        itemgetter(int(word)) if word.isdecimal() else attrgetter(word) for word in words.split(".")
    ]

    def get(of: Any) -> Any:
        for getter in getters:
            of = None if of is None else getter(of)
        return of

    return get if len(getters) > 1 else getters[0]


def schema_of(name: str) -> Schema:
    """The schema of a kind of `KINDS`, with the definitions that it needs and no others."""
    kind = KINDS[name]
    root = kind.record.schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"shardviz {kind.printed_by}{'' if '--' in kind.printed_by else ' --json'}",
        **root,
        "$defs": {definition: DEFINITIONS[definition] for definition in sorted(_needed(root))},
    }


def _needed(schema: Schema, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Names of the definitions that a schema refers to, also by way of others, and those that are `known`."""
    for name in _references(schema):
        known = known if name in known else _needed(DEFINITIONS[name], known | {name})
    return known


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
        yield reference.rpartition("/")[2]
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _references(value)
