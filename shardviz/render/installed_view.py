"""The installation: versions, and the targets that can be asked."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.compiler.groups import TargetGroup
from shardviz.render.lines import GLUE, sentence, table


def info_view(versions: Sequence[tuple[str, str]], warning: str, width: int) -> list[Text]:
    """`versions` are (name, version); `warning` says what is wrong with them, or is empty."""
    installed = [[Text(name), Text(version)] for name, version in versions]
    cure = "pip install -U 'shardviz[tpu]' takes the one that it asks for."
    warned = [Text(), *sentence(f"{warning}. {cure}", width, style="bold")] if warning else []
    elsewhere = "shardviz targets lists who can be asked, and what installs who is missing."
    return [*table(installed, width), *warned, Text(), *sentence(elsewhere, width, style="dim")]


def targets_view(groups: Sequence[TargetGroup], width: int) -> list[Text]:
    """A heading for every group, its targets as a table, and the names that it takes."""
    lines: list[Text] = []
    for group in groups:
        lines += [Text()] * bool(lines) + _heading(group, width)
        lines += table([[Text(each.name), Text(each.what)] for each in group.choices], width, 2)
        lines += sentence(group.takes, width, 2, style="dim")
    return lines


def _heading(group: TargetGroup, width: int) -> list[Text]:
    if not group.missing:
        versions = ", ".join(f"{name} {version}" for name, version in group.versions)
        return sentence(f"ready  {versions}".rstrip(), width, 0, f"{group.title}  ")
    command = f": {group.command.replace(' ', GLUE)}" if group.command else ""
    return sentence(f"{group.missing}{command}", width, 0, f"{group.title}  ")
