"""`shardviz.read_hlo` shows what `shardviz hlo` shows, of any text that a compiler prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import shardviz
from shardviz.cli.group import run
from shardviz.errors import NotationError, QuestionError

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """One program as StableHLO and as the final HLO: a gather along Y, a sum along X."""

    def exchange(x):
        return lax.psum(lax.all_gather(x, "Y", tiled=True), "X")

    specs = {"in_specs": P(("X", "Y")), "out_specs": P(), "check_vma": False}
    lowered = jax.jit(jax.shard_map(exchange, mesh=MESH, **specs)).lower(jnp.ones((64, 8)))
    return {"stablehlo": lowered.as_text(), "hlo": lowered.compile().as_text()}


@pytest.mark.parametrize("dialect", ["hlo", "stablehlo"])
def test_it_shows_what_the_command_shows(texts, dialect, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    file = tmp_path / "program.txt"
    file.write_text(texts[dialect], encoding="utf-8")
    report = shardviz.read_hlo(texts[dialect], "X=2,Y=4")
    assert run(("hlo", str(file), "--mesh", "X=2,Y=4", "--width", "90")) == 0
    assert repr(report) == capsys.readouterr().out.rstrip("\n")
    assert run(("hlo", str(file), "--mesh", "X=2,Y=4", "--json")) == 0
    assert json.loads(json.dumps(report.document())) == json.loads(capsys.readouterr().out)
    assert [(each.op, each.axes) for each in report.collectives] == [
        ("all-gather", ("Y",)),
        ("all-reduce", ("X",)),
    ]
    assert report.text == texts[dialect]


def test_a_mesh_of_jax_or_none(texts):
    named = shardviz.read_hlo(texts["hlo"], MESH)
    assert (named.mesh, named.given) == (shardviz.Mesh(("X", "Y"), (2, 4)),) * 2
    found = shardviz.read_hlo(texts["hlo"])
    assert (found.mesh.axis_sizes, found.given) == ((2, 4), None)
    assert [each.groups for each in found.collectives] == [each.groups for each in named.collectives]
    assert found._repr_mimebundle_()["text/html"].count("all-gather") >= 2


def test_what_cannot_be_read_is_told(texts):
    text = texts["hlo"]
    report = shardviz.read_hlo(text[: text.index("ROOT", text.index("ENTRY"))])
    assert re.search(r"^note: the text breaks off inside ", repr(report), re.MULTILINE)


@pytest.mark.parametrize(
    "text", ["", "\0\x1b[2J" * 9, "[" * 10_000, "HloModul", Path(__file__).read_text("utf-8")[:300]]
)
def test_a_text_that_is_none_of_these(text):
    with pytest.raises(NotationError) as raised:
        shardviz.read_hlo(text)
    assert raised.value.message.isprintable()
    assert raised.value.hint


def test_a_program_is_not_a_text():
    with pytest.raises(QuestionError, match="a PjitFunction is not text") as raised:
        shardviz.read_hlo(jax.jit(lambda: 1))
    assert "shardviz.inspect" in raised.value.hint


def test_a_mesh_that_is_not_the_programs(texts):
    with pytest.raises(QuestionError, match="8 devices"):
        shardviz.read_hlo(texts["hlo"], "X=3")
