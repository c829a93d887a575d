"""Versions as a short table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.render.lines import sentence, table


def info_view(versions: Sequence[tuple[str, str]], width: int) -> list[Text]:
    """`versions` are (name, version)."""
    installed = [[Text(name), Text(version)] for name, version in versions]
    elsewhere = "shardviz targets lists who can be asked, and what installs who is missing."
    return [*table(installed, width), Text(), *sentence(elsewhere, width, style="dim")]
