"""A dialog of choices: the list, and beside or below it what is said of the one under the cursor."""

from __future__ import annotations

from shardviz.tui.dialogs.dialog import Dialog


class ListDialog(Dialog):
    """Has an `OptionList` and a `Static#about` in a `Vertical#choice`, side by side in a broad window."""

    DEFAULT_CSS = """
    ListDialog OptionList { border: none; padding: 0; background: transparent; height: 1fr; }
    ListDialog OptionList { scrollbar-size: 1 1; }
    ListDialog #about { height: auto; padding-top: 1; }
    ListDialog.-low #about { padding-top: 0; }
    ListDialog #choice { height: 1fr; layout: vertical; }
    ListDialog.-broad.-high #choice { layout: horizontal; }
    ListDialog.-broad.-high OptionList { height: 100%; }
    ListDialog.-broad.-high #about { width: 1fr; padding: 0 0 0 3; }
    """
