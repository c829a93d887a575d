"""Collectives out of HLO, StableHLO and Shardy text."""

from __future__ import annotations

import re

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective, CollectiveMatmul, Origin, Work
from shardviz.hlo.device_numbers import mesh_of_collectives
from shardviz.hlo.mlir.shardy import ShardyModule, read_shardy
from shardviz.hlo.module import HloModule, is_hlo, read_hlo
from shardviz.hlo.records import wire_bytes
from shardviz.sharding import Mesh

__all__ = [
    "Collective",
    "CollectiveMatmul",
    "HloModule",
    "Origin",
    "ShardyModule",
    "Work",
    "read",
    "read_hlo",
    "read_shardy",
    "wire_bytes",
]

_FIRST = re.compile(
    r'"(?:[^"\\]|\\.)*+"|(?s:/\*(?:(?!/\*).)*?\*/)|//(?<![^\s,(){}]//)[^\n]*+'
    r"|(?P<hlo>^[ \t]*+HloModule\s+[^\s,])"
    r"|(?P<mlir>(?<![%.\w-])(?:func\.func|(?:stablehlo|sdy|mhlo)\.\w))",
    re.MULTILINE,
)
"""Marks of a language outside of strings and comments; a header of HLO's may quote the other language."""


def read(
    text: str, mesh: Mesh | None = None, *, infer: bool = False, origins: bool = False
) -> HloModule | ShardyModule:
    """HLO, StableHLO or Shardy text → its collectives; see `read_hlo` and `read_shardy`. `infer` asks for the
    mesh that the groups seem to be made for where neither the caller nor the text has one, `origins` where
    the operands of HLO's collectives come from. The module's `mesh` is the one whose axes its collectives
    name, None without one. Raises `NotationError` for other text."""
    # What a log says before an HLO module may name operations of MLIR; no MLIR has that module's header.
    languages = (match.lastgroup for match in _FIRST.finditer(text) if match.lastgroup)
    language = next(languages, None)
    if language == "mlir" and "HloModule" in text and "hlo" in languages:
        language = "hlo"
    if language == "mlir":
        module = read_shardy(text, mesh)
        if (
            infer
            and module.mesh is None
            and (inferred := mesh_of_collectives(module.collectives, module.num_devices)) is not None
        ):
            return read_shardy(text, inferred)
        return module
    if language == "hlo" or is_hlo(text):
        return read_hlo(text, mesh, infer=infer, origins=origins)
    hint = "HLO begins with HloModule, StableHLO with module; try compiled.as_text()"
    raise NotationError("this is neither HLO nor StableHLO nor Shardy text", text, 0, hint=hint)
