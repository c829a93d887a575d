"""Device ids in a mesh's row-major order: ``0,1,3,2``."""

from __future__ import annotations

import re
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.notation.shape import count_at
from shardviz.sharding import Mesh

_HINT = "write the ids with commas: 0,1,3,2"


def with_device_order(mesh: Mesh, text: str) -> Mesh:
    """The mesh, its devices in the order of the ids in the text.

    Raises `NotationError` for what is no id, `QuestionError` for ids that are not each device's once.
    """
    ids = [count_at(match, text, "device id", _HINT) for match in re.finditer(r"[^,\s]+", text)]
    if len(ids) != mesh.size:
        raise QuestionError(
            f"the device order names {len(ids):,} devices, but the mesh {mesh} has {mesh.size:,}",
            "name each device once",
        )
    return replace(mesh, device_order=tuple(ids))
