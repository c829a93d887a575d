"""Versions and targets as two short tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.render.lines import table


def info_view(
    versions: Sequence[tuple[str, str]], targets: Sequence[tuple[str, str, bool]], width: int
) -> list[Text]:
    """`versions` are (name, version), `targets` (name, what it is, whether it can answer here)."""
    installed = [[Text(name), Text(version)] for name, version in versions]
    asked = [
        [Text(name, "bold"), Text("ready") if ready else Text("not installed", "bold"), Text(what)]
        for name, what, ready in targets
    ]
    return [*table(installed, width), Text(), *table(asked, width)]
