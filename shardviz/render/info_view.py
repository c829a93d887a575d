"""Versions as a short table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.render.lines import sentence, table


def info_view(versions: Sequence[tuple[str, str]], warning: str, width: int) -> list[Text]:
    """`versions` are (name, version); `warning` says what is wrong with them, or is empty."""
    installed = [[Text(name), Text(version)] for name, version in versions]
    cure = "pip install -U 'shardviz[tpu]' takes the one that it asks for."
    warned = [Text(), *sentence(f"{warning}. {cure}", width, style="bold")] if warning else []
    elsewhere = "shardviz targets lists who can be asked, and what installs who is missing."
    return [*table(installed, width), *warned, Text(), *sentence(elsewhere, width, style="dim")]
