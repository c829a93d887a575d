"""How lines of a program are found by what they move."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.hlo import Collective


def marks(collective: Collective | None) -> str:
    """What a page says of a collective beyond its line, for a search: `` all-reduce over Y``."""
    return f" {collective.op} over {', '.join(collective.axes)}" if collective is not None else ""
