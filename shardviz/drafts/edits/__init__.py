"""One change of a draft each: every function takes a draft and gives another.

None of them raises for text that cannot be read: it stays in its field as it was typed, and `read` says what
is wrong with it. Nor does one that has nothing to change: it gives the draft as it was.

entry          text into any field, in any notation
sharding_text  text into the spec of an array, which may say more than that
mesh_axes      axes of the mesh, and the specs that follow them
spec_dims      axes on the dimensions of an array
carrying       what of specs and sizes stays when the einsum changes
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.drafts.edits.entry import enter
    from shardviz.drafts.edits.mesh_axes import (
        add_axis,
        double_axis,
        enter_axis,
        halve_axis,
        move_axis,
        remove_axis,
        rename_axis,
        resize_axis,
    )
    from shardviz.drafts.edits.spec_dims import (
        assign,
        clear,
        cycle,
        cycle_unreduced,
        toggle_open,
        toggle_unreduced,
    )

__all__ = [
    "add_axis",
    "assign",
    "clear",
    "cycle",
    "cycle_unreduced",
    "double_axis",
    "enter",
    "enter_axis",
    "halve_axis",
    "move_axis",
    "remove_axis",
    "rename_axis",
    "resize_axis",
    "toggle_open",
    "toggle_unreduced",
]

_HOMES = {
    "entry": ("enter",),
    "mesh_axes": (
        "add_axis",
        "double_axis",
        "enter_axis",
        "halve_axis",
        "move_axis",
        "remove_axis",
        "rename_axis",
        "resize_axis",
    ),
    "spec_dims": ("assign", "clear", "cycle", "cycle_unreduced", "toggle_open", "toggle_unreduced"),
}


def __getattr__(name: str) -> object:
    # Loaded with the first edit: the application opens without any.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
