"""Groups of targets: what each takes, whether it can answer here, and what installs it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.compiler.groups import TargetGroup
from shardviz.render.lines import GLUE, sentence, table


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
