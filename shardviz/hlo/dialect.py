"""Reads a text in whichever of the compilers' languages it is written."""

from __future__ import annotations

from shardviz.errors import NotationError
from shardviz.hlo.module import HloModule, is_hlo, read_hlo
from shardviz.hlo.shardy import ShardyModule, is_mlir, read_shardy
from shardviz.sharding import Mesh


def read(text: str, mesh: Mesh | None = None) -> HloModule | ShardyModule:
    """HLO, StableHLO or Shardy text → its collectives; see `read_hlo` and `read_shardy`.

    Raises `NotationError` for a text that is none of them.
    """
    if is_mlir(text) and not text.lstrip().startswith("HloModule"):
        return read_shardy(text, mesh)
    if is_hlo(text):
        return read_hlo(text, mesh)
    raise NotationError(
        "this is neither HLO nor StableHLO nor Shardy text",
        text,
        0,
        hint="HLO begins with HloModule, StableHLO with module; try compiled.as_text() or lowered.as_text()",
    )
