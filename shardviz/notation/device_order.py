"""Device ids in a mesh's row-major order: ``0,1,3,2``, or ``row-major`` for 0, 1, 2, …"""

from __future__ import annotations

import re
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.notation.shape import count_at
from shardviz.sharding import Mesh

ROW_MAJOR = "row-major"
MAX_DEVICES = 2**20
"""Longer orders than any compiler takes would fill the memory."""
_HINT = f"write the ids with commas, as in 0,1,3,2, or {ROW_MAJOR}"


def with_device_order(mesh: Mesh, text: str) -> Mesh:
    """The mesh, its devices in the order of the ids in the text.

    Raises `NotationError` for what is no id, `QuestionError` for ids that are not each device's once.
    """
    if mesh.size > MAX_DEVICES:
        raise QuestionError(
            f"an order of {mesh.size:,} devices is too long",
            f"give one for a mesh of at most {MAX_DEVICES:,}",
        )
    if text.strip().lower() == ROW_MAJOR:
        return replace(mesh, device_order=tuple(range(mesh.size)))
    ids = [count_at(match, text, "device id", _HINT) for match in re.finditer(r"[^,\s]+", text)]
    if len(ids) != mesh.size:
        raise QuestionError(
            f"the device order names {len(ids):,} devices, but the mesh {mesh} has {mesh.size:,}",
            "name each device once",
        )
    return replace(mesh, device_order=tuple(ids))
