"""Reads a text in whichever of the compilers' languages it is written."""

from __future__ import annotations

import re

from shardviz.errors import NotationError
from shardviz.hlo.groups.mesh_inference import mesh_of_collectives
from shardviz.hlo.mlir.shardy import ShardyModule, read_shardy
from shardviz.hlo.module import HloModule, is_hlo, read_hlo
from shardviz.sharding import Mesh

_FIRST = re.compile(r"HloModule\s+[^\s,]|(?:func\.func|stablehlo\.\w|sdy\.\w|mhlo\.\w)")
"""What comes first tells the language; an HLO module's header may quote the others."""


def read(text: str, mesh: Mesh | None = None, *, infer: bool = False) -> HloModule | ShardyModule:
    """HLO, StableHLO or Shardy text → its collectives; see `read_hlo` and `read_shardy`.

    `infer` asks for the mesh that the groups seem to be made for where neither the caller nor the text has
    one. The module's `mesh` is the one whose axes its collectives name, None where there is none.
    Raises `NotationError` for a text that is none of them.
    """
    first = _FIRST.search(text)
    if first is not None and not first[0].startswith("HloModule"):
        module = read_shardy(text, mesh)
        if infer and module.mesh is None and (found := mesh_of_collectives(module.collectives)) is not None:
            return read_shardy(text, found)
        return module
    if first is not None or is_hlo(text):
        return read_hlo(text, mesh, infer=infer)
    raise NotationError(
        "this is neither HLO nor StableHLO nor Shardy text",
        text,
        0,
        hint="HLO begins with HloModule, StableHLO with module; try compiled.as_text()",
    )
