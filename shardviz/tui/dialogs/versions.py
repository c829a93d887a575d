"""The versions that answers depend on."""

from __future__ import annotations

from rich.text import Text

from shardviz.render.machine_view import info_view
from shardviz.targets import installed_versions, libtpu_mismatch
from shardviz.tui.dialogs.lines_dialog import LinesDialog


class VersionsDialog(LinesDialog):
    """The page of `shardviz info`."""

    title_text = "Versions"
    line = "shardviz info"

    def lines(self, width: int) -> list[Text]:
        versions = installed_versions()
        return info_view(versions, libtpu_mismatch(versions), width)
