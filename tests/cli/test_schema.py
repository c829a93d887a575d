"""Schemas: each is valid JSON Schema that says everything, and what commands print keeps to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from shardviz.cli.group import run
from shardviz.documents.fields import KINDS, schema_of
from shardviz.user_files import EXAMPLES

PROGRAM = EXAMPLES / "mlp.txt"
SMALLER = Path(__file__).parent.parent / "benchmarks" / "programs" / "gather_first.txt"
EINSUM = ("bd,df->bf", "--specs", "XY,Y_->X_", "--sizes", "b=8,d=16,f=4")
COMMANDS = {
    "explain": ("explain", *EINSUM, "--target", "shardy", "--hlo"),
    "modules": ("hlo", "dumps"),
    "values": (
        "program",
        f"{Path(__file__).parent}/two_lines.py:mapped",
        "--mesh",
        "x=2,y=4",
        "--values",
    ),
    "refusal": ("program", "refused.py:program", "--mesh", "X=2", "--axis-types", "explicit"),
    "diff": ("diff", str(PROGRAM), str(SMALLER), "--machine", "v5e:2x4", "--fail-on", "memory+1GiB"),
    "step": ("step", "all_gather", "--mesh", "X=2,Y=4", "--on", "none", "--bandwidth", "inf"),
    "lesson": ("lesson", "1"),
    "machine": ("machine", "v2:2x2", "--mesh", "X=2,Y=4"),
}
"""Commands that print documents of some kinds; what tests make of any is valid: tests/conftest.py."""
REFUSED = """
import jax
def program(mesh):
    x, w = (jax.NamedSharding(mesh, spec) for spec in (jax.P(None, "X"), jax.P("X")))
    return lambda x, w: x @ w, *(jax.ShapeDtypeStruct((8, 8), "float32", sharding=each) for each in (x, w))
"""


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema in a schema."""
    yield schema
    for name in ("properties", "$defs"):
        for each in schema.get(name, {}).values():
            yield from nodes(each)
    for each in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from nodes(each)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from nodes(schema[name])


@pytest.mark.parametrize("kind", COMMANDS)
def test_what_a_command_prints_keeps_to_the_schema_that_is_printed(
    kind: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dumps").mkdir()
    for number in (1, 2):
        dumped = tmp_path / "dumps" / f"module_000{number}.jit_f.cpu_after_optimizations.txt"
        dumped.write_bytes(PROGRAM.read_bytes())
    assert run(["schema", kind]) == 0
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    (tmp_path / "refused.py").write_text(REFUSED, encoding="utf-8")
    assert run([*COMMANDS[kind], "--json"]) in ((2,) if kind == "refusal" else (0, 1))
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["kind"]) == ("shardviz/1", kind)
    validator = Draft202012Validator(schema)
    validator.validate(document)
    # A field that is renamed, or one more, is noticed.
    for field in document:
        changed = {name: value for name, value in document.items() if name != field}
        assert not validator.is_valid(changed)
        assert not validator.is_valid(changed | {f"{field}_": document[field]})
    assert not validator.is_valid(document | {"more": 1})


def test_unlimited_bandwidths_are_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('base = "v5e:4x4"\ndevice.hbm_bandwidth = inf\ntorus.bandwidth = "inf"\n')
    assert run(["machine", str(file), "--mesh", "X=4,Y=4", "--json"]) == 0
    text = capsys.readouterr().out
    assert "Infinity" not in text
    document = json.loads(text)
    Draft202012Validator(schema_of("machine")).validate(document)
    assert document["device"]["hbm_bandwidth_bytes_per_s"] == "inf"


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_described_and_every_object_is_closed(kind: str) -> None:
    schema = schema_of(kind)
    for node in nodes(schema):
        assert node.get("type") != "object" or "additionalProperties" in node
        for name, field in node.get("properties", {}).items():
            assert field["description"].endswith(".") or "; " in field["description"], name


UNITS = {
    "Bytes per second": {"bytes per s"},
    "Bytes": {"bytes"},
    "Seconds": {"s", "seconds"},
    "Multiply-adds": {"multiply adds"},
    "Clock cycles": {"cycles"},
}
"""How the description of a quantity begins, and what its name then has."""


def test_a_quantity_has_its_unit_in_its_name() -> None:
    met = set()
    for node in (node for kind in KINDS for node in nodes(schema_of(kind))):
        for name, field in node.get("properties", {}).items():
            start = next((start for start in UNITS if field["description"].startswith(f"{start} ")), None)
            if start is not None:
                met.add(start)
                assert any(f" {unit} " in f" {name.replace('_', ' ')} " for unit in UNITS[start]), name
            assert name not in ("bandwidth", "latency", "memory", "time", "size"), name
    assert met == set(UNITS)


def test_kinds_are_listed_with_a_command_that_prints_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for name, kind in KINDS.items():
        assert f"{name} {kind.summary} (shardviz {kind.printed_by})" in said


def test_documents_that_tests_make_are_checked() -> None:
    with pytest.raises(ValidationError, match="1 is not of type 'string'"):
        KINDS["info"].document(versions={"jax": 1}, warning="", cache=("", 0, 0))
