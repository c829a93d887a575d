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

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.drafts.edits.entry import enter as enter
    from shardviz.drafts.edits.mesh_axes import (
        add_axis as add_axis,
        double_axis as double_axis,
        enter_axis as enter_axis,
        halve_axis as halve_axis,
        move_axis as move_axis,
        remove_axis as remove_axis,
        rename_axis as rename_axis,
        resize_axis as resize_axis,
    )
    from shardviz.drafts.edits.spec_dims import (
        assign as assign,
        clear as clear,
        cycle as cycle,
        cycle_unreduced as cycle_unreduced,
        toggle_open as toggle_open,
        toggle_unreduced as toggle_unreduced,
    )
else:
    # Loaded with the first edit: the application opens without any.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "entry": "enter",
            "mesh_axes": "add_axis double_axis enter_axis halve_axis move_axis remove_axis rename_axis "
            "resize_axis",
            "spec_dims": "assign clear cycle cycle_unreduced toggle_open toggle_unreduced",
        },
    )
