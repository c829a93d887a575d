"""Translations on pages of fixed width."""

from __future__ import annotations

import pytest

from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import detect, write_all
from shardviz.notation.reading import Context
from shardviz.render.caption import translate_view
from shardviz.render.palette import TRUECOLOR


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_why_a_notation_has_none_stands_apart_from_the_table(width: int) -> None:
    context = Context(parse_mesh("X=2,Y=4"))
    notation = detect("(YX)_")
    reading = notation.read("(YX)_", context)
    lines = translate_view([reading], notation, [write_all(reading, context)], context.mesh, width, TRUECOLOR)
    plain = [line.plain for line in lines]
    assert max(map(len, plain)) <= width
    table = plain[: next(place for place, line in enumerate(plain) if line.startswith("– einshard: "))]
    assert not any("cannot" in line for line in table)
    if width >= 80:
        titles = ("spec string", "PartitionSpec", "scaling book")
        (column,) = {line.index(title) for line, title in zip(table, titles, strict=False)}
        assert column <= 40
