"""Fields of documents: what their types, descriptions and sources make of values."""

from types import SimpleNamespace
from typing import Any

import pytest

from shardviz.documents.fields import Beside, JsonField, late, of, one_of, optional, record, records


@pytest.mark.parametrize(
    ("kind", "schema", "value", "written"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer", "minimum": 0}, 3, 3),
        ([int], {"type": "array", "items": {"type": "integer", "minimum": 0}}, (1, 2), [1, 2]),
        (
            {str: bool},
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            [("x", True)],
            {"x": True},
        ),
        (one_of("a", "b"), {"enum": ["a", "b"]}, "b", "b"),
        (Any, {}, (1.5, float("nan"), 1 + 2j), [1.5, "nan", [1.0, 2.0]]),
        (
            [of(str, "A name.")],
            {"type": "array", "items": {"description": "A name.", "type": "string"}},
            iter("ab"),
            ["a", "b"],
        ),
    ],
)
def test_types(kind: Any, schema: dict[str, Any], value: Any, written: Any) -> None:
    field = of(kind, "What it is.")
    assert field.schema == {"description": "What it is.", **schema}
    assert field.write(value) == written


@pytest.mark.parametrize("said", ["Bytes; null: not known.", "The hint; null where there is none."])
def test_a_description_that_says_what_null_means_makes_a_field_nullable(said: str) -> None:
    found = record("A record.", name=of(str, said), plain=of(str, "A text; null is not mentioned."))
    assert found.schema["properties"]["name"] == {
        "description": said,
        "anyOf": [{"type": "string"}, {"type": "null"}],
    }
    assert "anyOf" not in found.schema["properties"]["plain"]
    for empty in (None, ""):
        assert found.write(SimpleNamespace(name=empty, plain="")) == {"name": None, "plain": ""}
    assert record("A record.", count=of(int, "How many; null: unknown.")).write(SimpleNamespace(count=0)) == {
        "count": 0
    }


def test_sources() -> None:
    fields: dict[str, JsonField] = {
        "own": of(int, "Its own attribute."),
        "inner": of(int, "One of another; null: there is none.", "other.value"),
        "place": of(int, "A place in a tuple.", lambda one: one.pair[1]),
        "pairs": records("Pairs.", "A pair.", "pairs", left=of(int, "Left.", 0), right=of(int, "Right.", 1)),
        "square": of(float, "A function of an engine.", lambda one: late("math", "sqrt")(one.own)),
    }
    written = record("A record.", **fields).write(
        SimpleNamespace(own=4, other=SimpleNamespace(value=2), pair=(5, 6), pairs=[(7, 8)])
    )
    assert written == {"own": 4, "inner": 2, "place": 6, "pairs": [{"left": 7, "right": 8}], "square": 2.0}
    assert record("A record.", inner=fields["inner"]).write(SimpleNamespace(other=None)) == {"inner": None}
    with pytest.raises(AttributeError):
        record("A record.", own=fields["own"]).write(SimpleNamespace())


def test_optional_fields_are_left_out() -> None:
    found = record("A record.", here=of(int, "There."), more=optional(int, "More."))
    assert found.schema["required"] == ["here"]
    assert found.write(SimpleNamespace(here=1)) == {"here": 1}
    assert found.write(SimpleNamespace(here=1, more=None)) == {"here": 1}
    assert found.write(SimpleNamespace(here=1, more=2)) == {"here": 1, "more": 2}


def test_objects_beside_each_other() -> None:
    one = Beside(SimpleNamespace(a=1, b=1), SimpleNamespace(b=2, c=2, d=2), d=3)
    assert (one.a, one.b, one.c, one.d) == (1, 1, 2, 3)
    with pytest.raises(AttributeError):
        _ = one.e
