"""Fields of documents: what their types, descriptions and sources make of values."""

import re
import sys
from importlib.resources import files
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from shardviz.documents import fields
from shardviz.documents.fields import KINDS, Beside, JsonField, late, record_of


def made(**declared: list[Any]) -> JsonField:
    return record_of({"is": "A record.", **declared}, "plans")


@pytest.mark.parametrize(
    ("said", "schema", "value", "written"),
    [
        ("str", {"type": "string"}, "a", "a"),
        ("int", {"type": "integer", "minimum": 0}, 3, 3),
        ("[int]", {"type": "array", "items": {"type": "integer", "minimum": 0}}, (1, 2), [1, 2]),
        (
            "{bool}",
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            [("x", True)],
            {"x": True},
        ),
        ("a|b", {"enum": ["a", "b"]}, "b", "b"),
        ("any", {}, (1.5, float("nan"), 1 + 2j), [1.5, "nan", [1.0, 2.0]]),
        (
            "[str: A name.]",
            {"type": "array", "items": {"description": "A name.", "type": "string"}},
            iter("ab"),
            ["a", "b"],
        ),
        ("meshes.spec", {"$ref": "#/$defs/spec"}, (("X",), ()), [["X"], []]),
        ("phase", {"enum": ["forward", "recomputed", "backward", "optimizer"]}, "forward", "forward"),
    ],
)
def test_types(said: str, schema: dict[str, Any], value: Any, written: Any) -> None:
    found = made(field=[said, "What it is."])
    assert found.schema["properties"]["field"] == {"description": "What it is.", **schema}
    assert found.write(SimpleNamespace(field=value)) == {"field": written}


@pytest.mark.parametrize("said", ["Bytes; null: not known.", "The hint; null where there is none."])
def test_a_description_that_says_what_null_means_makes_a_field_nullable(said: str) -> None:
    found = made(name=["str", said], plain=["str", "A text; null is not mentioned."])
    assert found.schema["properties"]["name"] == {
        "description": said,
        "anyOf": [{"type": "string"}, {"type": "null"}],
    }
    assert "anyOf" not in found.schema["properties"]["plain"]
    for empty in (None, ""):
        assert found.write(SimpleNamespace(name=empty, plain="")) == {"name": None, "plain": ""}
    assert made(count=["int", "How many; null: unknown."]).write(SimpleNamespace(count=0)) == {"count": 0}


def test_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {
        "whole": {
            "is": "A record.",
            "own": ["int", "Its own attribute."],
            "inner": ["int", "One of another; null: there is none.", "other.value"],
            "pairs": ["[pair]", "Pairs."],
            "square": ["float", "A function of an engine.", "root()"],
            "constant": ["=always", "A constant."],
        },
        "pair": {"is": "A pair.", "left": ["int", "Left.", 0], "right": ["int", "Right.", 1]},
        "more": {"is": "The same, and more.", "whole": "*", "more": ["str", "More."]},
    }
    sources = {"root": lambda one: late("math", "sqrt")(one.own)}
    monkeypatch.setitem(sys.modules, "shardviz.documents.made", SimpleNamespace(SOURCES=sources))  # type: ignore[arg-type]
    monkeypatch.setattr(fields, "_tables", {"made": tables}.get)
    one = SimpleNamespace(own=4, other=SimpleNamespace(value=2), pairs=[(7, 8)], more="m")
    written = {"own": 4, "inner": 2, "pairs": [{"left": 7, "right": 8}], "square": 2.0, "constant": "always"}
    assert record_of(tables["whole"], "made").write(one) == written
    assert record_of(tables["more"], "made").write(one) == written | {"more": "m"}
    one.other = None
    assert record_of(tables["whole"], "made").write(one)["inner"] is None
    with pytest.raises(AttributeError):
        record_of(tables["whole"], "made").write(SimpleNamespace())


def test_every_function_that_a_table_names_is_there_and_no_other() -> None:
    named: dict[ModuleType, list[str]] = {}
    for tables in {kind.module for kind in KINDS.values()} | {"meshes"}:
        text = files("shardviz.documents").joinpath(f"{tables}.toml").read_text(encoding="utf-8")
        sources = set(re.findall(r'"(\w+)\(\)"\]$', text, re.MULTILINE))
        named.setdefault(fields._module_of(tables), []).extend(sources)
    for module, names in named.items():
        assert sorted(names) == sorted(getattr(module, "SOURCES", {})), module


def test_optional_fields_are_left_out() -> None:
    found = made(here=["int", "There."], more=["int?", "More."])
    assert found.schema["required"] == ["here"]
    assert found.write(SimpleNamespace(here=1)) == {"here": 1}
    assert found.write(SimpleNamespace(here=1, more=None)) == {"here": 1}
    assert found.write(SimpleNamespace(here=1, more=2)) == {"here": 1, "more": 2}


def test_objects_beside_each_other() -> None:
    one = Beside(SimpleNamespace(a=1, b=1), SimpleNamespace(b=2, c=2, d=2), d=3)
    assert (one.a, one.b, one.c, one.d) == (1, 1, 2, 3)
    with pytest.raises(AttributeError):
        _ = one.e
