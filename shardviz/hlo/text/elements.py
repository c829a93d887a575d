"""Elements of tuples without an instruction of their own: ``%loop#2``, as newer dumps of XLA have them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from shardviz.hlo.text.instruction import open_instruction

_ELEMENT = re.compile(r"%([^\s,(){}=%#]+)#(\d{1,6})(?=[,)])")
_TAKEN = re.compile(r"#\d{1,6}[,)]")
"""What every text with such an element has, and few others; found at once."""
_DEFINITION = re.compile(r"\s*(?:ROOT\s+)?%([^\s=,(){}]+) = \(")
_PIECE = re.compile(r"/\*[^*]*\*/|[(){}\[\],]|[^(){}\[\],/]+|/")


def with_elements(text: str) -> str:
    """The same text with a ``get-tuple-element`` after the tuple for each such element, by the same name."""
    if "#" not in text or _TAKEN.search(text) is None:
        return text
    return "\n}".join(map(_spelled_out, text.split("\n}")))


def _spelled_out(computation: str) -> str:
    wanted: dict[str, set[int]] = defaultdict(set)
    for name, index in _ELEMENT.findall(computation):
        wanted[name].add(int(index))
    if not wanted:
        return computation
    lines = []
    for line in computation.split("\n"):
        lines.append(line)
        found = _DEFINITION.match(line)
        opened = open_instruction(line) if found is not None and found[1] in wanted else None
        if opened is not None:
            name = opened[0]
            lines += (
                f"  %{name}#{index} = {shape} get-tuple-element(%{name}), index={index}"
                for index, shape in enumerate(_elements(opened[1]))
                if index in wanted[name]
            )
    return "\n".join(lines)


def _elements(shape: str) -> Iterator[str]:
    """The elements of a tuple's shape, as text."""
    depth, piece = 0, ""
    for match in _PIECE.finditer(shape.strip()[1:-1]):
        part = match[0]
        if part == "," and depth == 0:
            yield piece.strip()
            piece = ""
        elif not part.startswith("/*"):
            depth += (part in "([{") - (part in ")]}")
            piece += part
    yield piece.strip()
