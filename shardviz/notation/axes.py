"""Mesh axes in an order: ``X,Y``; the first is the major one."""

from __future__ import annotations

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner
from shardviz.sharding import Mesh

_HINT = "write mesh axes with commas between them: X,Y"


def parse_axes(text: str, mesh: Mesh) -> tuple[str, ...]:
    """Read axes of the mesh, apart by commas, spaces or both.

    Raises `NotationError` for text of another form, none at all, an unknown axis and one named twice.
    """
    scanner = Scanner(text)
    axes: list[str] = []
    while not scanner.at_end:
        word = scanner.name("an axis name", _HINT)
        if word.text not in mesh.axis_names:
            scanner.fail_unknown(word, mesh.axis_names)
        if word.text in axes:
            problem = f"mesh axis {quote(word.text, 30)} is named twice, again"
            scanner.fail(problem, word.start, word.stop, "name every axis once")
        axes.append(word.text)
        scanner.separate("another axis", _HINT)
    if not axes:
        scanner.fail("there is no mesh axis", 0, len(text), _HINT)
    return tuple(axes)
