"""The mesh that a sharding's text has of its own: ``NamedSharding(mesh=Mesh('X': 2, 'Y': 4), spec=P('X'))``,
Shardy's ``mesh<["X"=2, "Y"=4]>``, HLO's ``{mesh['X'=2,'Y'=4], [{'X'}]}``."""

from __future__ import annotations

import re

_PYTHON = re.compile(r"(?:Abstract)?Mesh\(")
_SPEC = re.compile(r"(?:PartitionSpec|\bP)\s*\(")
_AXIS = r"\s*+[\"']?\w++[\"']?\s*+=\s*+\d++\s*+"
_MLIR = re.compile(rf"\bmesh(?:<\[|\[|<)({_AXIS}(?:,{_AXIS})*)[\]>]")
_QUOTES = str.maketrans("", "", "\"' ")


def mesh_in_text(text: str) -> str | None:
    """The mesh as `parse_mesh` reads it; None where the text has none."""
    if (said := _PYTHON.search(text)) is not None:
        return text[said.start() : _closed(text, said.end())]
    if (said := _MLIR.search(text)) is not None:
        return said[1].translate(_QUOTES)
    return None


def spec_alone(text: str) -> str:
    """The PartitionSpec within a ``NamedSharding(…)``; any other text as it is."""
    if "NamedSharding(" not in text:
        return text
    mesh = _PYTHON.search(text)
    start = 0 if mesh is None else _closed(text, mesh.end())
    found = _SPEC.search(text, start)
    return text if found is None else text[found.start() : _closed(text, found.end())]


def _closed(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one before `start`; the end of the text where none does."""
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return len(text)
