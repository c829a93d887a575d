"""The shardings that Shardy gives to what statements make, from its text with the places of operations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from shardviz.errors import NotationError, QuestionError
from shardviz.hlo.mlir.attributes import Meshes, parse_sharding, parse_tensors
from shardviz.hlo.named_scopes import NamedScope, named_scope
from shardviz.sharding import PartitionSpec

NAMED_PLACE = re.compile(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"', re.MULTILINE)
PLACE = re.compile(r'loc\((?:(#loc\d*)|"((?:[^"\\]|\\.)*)")[^()]*\)$')
_SHARDING = re.compile(r"(?:out_sharding=|sdy\.sharding_per_value<\[)(?=<)")


def named_shardings(text: str, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, PartitionSpec]:
    """The sharding in which each array of `shapes` is left by the operations that make it.

    These stand one after the other, with the collectives that add its partial sums or move it at once; what
    stands later moves it for one of its uses.
    """
    names, meshes = dict(NAMED_PLACE.findall(text)), Meshes(text)
    found: dict[str, PartitionSpec] = {}
    finished: set[str] = set()
    current = ""
    for line in text.splitlines():
        scope = _scope(line, names, shapes)
        name = scope.name if scope is not None and scope.phase == "forward" else ""
        if name != current and current in found:
            finished.add(current)
        current = name
        if not name or name in finished:
            continue
        for spec, shape in _sharded(line, meshes):
            if shape == shapes[name]:
                found[name] = spec
    return found


def _scope(line: str, names: Mapping[str, str], shapes: Mapping[str, object]) -> NamedScope | None:
    place = PLACE.search(line)
    return named_scope(place[2] or names.get(place[1], ""), shapes) if place else None


def _sharded(line: str, meshes: Meshes) -> Iterator[tuple[PartitionSpec, tuple[int, ...]]]:
    """The sharding of the first value that a line defines, with its global shape."""
    sharding = _SHARDING.search(line)
    if sharding is None:
        return
    try:
        tensor = [*parse_tensors(line)][-1]
        yield parse_sharding(line, sharding.end(), meshes)[0].spec(), tuple(tensor.sizes)
    except (NotationError, QuestionError, IndexError):
        return
