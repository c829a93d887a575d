"""Reads a text in whichever of the compilers' languages it is written."""

from __future__ import annotations

import re

from shardviz.errors import NotationError
from shardviz.hlo.groups.mesh_inference import mesh_of_collectives
from shardviz.hlo.mlir.shardy import ShardyModule, read_shardy
from shardviz.hlo.module import HloModule, is_hlo, read_hlo
from shardviz.hlo.text.normal_form import without_comments
from shardviz.sharding import Mesh

_FIRST = re.compile(
    r'"(?:[^"\\\n]|\\.)*+"|(?P<hlo>HloModule\s+[^\s,])|(?P<mlir>func\.func|(?:stablehlo|sdy|mhlo)\.\w)'
)
"""What comes first outside of strings tells the language; an HLO module's header may quote the others."""


def read(text: str, mesh: Mesh | None = None, *, infer: bool = False) -> HloModule | ShardyModule:
    """HLO, StableHLO or Shardy text → its collectives; see `read_hlo` and `read_shardy`.

    `infer` asks for the mesh that the groups seem to be made for where neither the caller nor the text has
    one. The module's `mesh` is the one whose axes its collectives name, None where there is none.
    Raises `NotationError` for a text that is none of them.
    """
    found = (each.lastgroup for each in _FIRST.finditer(without_comments(text)))
    first = next((language for language in found if language), None)
    if first == "mlir":
        module = read_shardy(text, mesh)
        if (
            infer
            and module.mesh is None
            and (inferred := mesh_of_collectives(module.collectives)) is not None
        ):
            return read_shardy(text, inferred)
        return module
    if first == "hlo" or is_hlo(text):
        return read_hlo(text, mesh, infer=infer)
    raise NotationError(
        "this is neither HLO nor StableHLO nor Shardy text",
        text,
        0,
        hint="HLO begins with HloModule, StableHLO with module; try compiled.as_text()",
    )
