"""Specs of arrays by name, in any order: ``W1=_Y, X=X_``. Those that are not named are not split."""

from __future__ import annotations

import re
from collections.abc import Mapping

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner
from shardviz.notation.spec_string import scan_spec, write_spec
from shardviz.sharding import PartitionSpec

_HINT = "write a spec for each array that is split, as in X=X_,W1=_Y"
_NAMED = re.compile(r"\s*[A-Za-z][A-Za-z0-9_']*\s*=(?!=)")


def is_named(text: str) -> bool:
    """Return whether specs are given by the names of their arrays."""
    return _NAMED.match(text) is not None


def parse_named_specs(
    text: str, axis_sizes: Mapping[str, int] | None, ranks: Mapping[str, int]
) -> dict[str, PartitionSpec | None]:
    """Read the specs of arrays by name; None for ``?``, which leaves one open. `ranks` are all arrays'.

    Raises `NotationError` as `parse_specs` does, for a name that is not an array's or stands twice, and for a
    spec of another rank.
    """
    scanner = Scanner(text, _HINT)
    found: dict[str, PartitionSpec | None] = {}
    while not scanner.at_end:
        name = scanner.name("the name of an array")
        if name.text not in ranks:
            scanner.fail(
                f"no array is called {quote(name.text, 30)}, which is given a spec,",
                name.start,
                name.stop,
                f"the arrays are {', '.join(ranks)}",
            )
        if name.text in found:
            scanner.fail(
                f"{name.text} is given a spec twice, again", name.start, name.stop, "give it one spec"
            )
        scanner.expect("=")
        scanner.skip()
        start = scanner.pos
        rank = ranks[name.text]
        spec = scan_spec(scanner, axis_sizes, rank)
        if spec is not None and spec.rank != rank:
            scanner.fail(
                f"the spec {quote(write_spec(spec))} of {name.text} has {spec.rank} of {rank} entries,",
                start,
                scanner.pos,
                "write one entry for each dimension; _ leaves a dimension whole",
            )
        found[name.text] = spec
        if not scanner.at_end and not scanner.take(",", ";"):
            scanner.fail_here("',' and the next array")
    return found


def write_named_specs(specs: Mapping[str, PartitionSpec | None]) -> str:
    """The text that `parse_named_specs` reads as `specs`."""
    return ", ".join(f"{name}={write_spec(spec)}" for name, spec in specs.items())
