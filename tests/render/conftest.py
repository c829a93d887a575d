"""Walks for the views: a collective of real parts, from few words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from shardviz.collectives import OPERATIONS, Frames, lower_bound, schedule_for
from shardviz.hardware import Wire, comparison, timeline, topology_for
from shardviz.notation import parse_mesh
from shardviz.render.walk import Walk
from shardviz.sharding import canonical_dtype

WalkOf = Callable[..., Walk]
TUTORIAL = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2)
LINK = Wire()
REDUCED = ("psum", "pmean", "pmax", "pmin", "pbroadcast")


def _walk_of(
    name: str,
    mesh: str,
    data: Sequence[Any] | np.ndarray | int,
    algorithm: str = "ring",
    *,
    axes: tuple[str, ...] | None = None,
    shard: tuple[int, ...] = (-1,),
    dtype: str = "int32",
    pieces: int | None = None,
    topology: str | None = None,
    device_order: tuple[int, ...] | None = None,
    wire: Wire = LINK,
    **parameters: Any,
) -> Walk:
    """`data` are all devices' numbers in the mesh's order, or, for a walk without, how many there are."""
    made = parse_mesh(mesh)
    if device_order is not None:
        made = type(made)(made.axis_names, made.axis_sizes, device_order)
    operation = OPERATIONS[name](axes or made.axis_names, **parameters)
    pattern = operation.pattern(operation.dims(made))
    schedule = schedule_for(algorithm, pattern, pieces)
    values = np.zeros(0) if isinstance(data, int) else np.array(data, dtype=dtype)
    total = data if isinstance(data, int) else values.size
    if isinstance(data, int):
        frames, shape, itemsize = Frames(schedule), (total // made.size,), 4
    else:
        shards = values.reshape(made.size, *shard)
        frames, shape, itemsize = Frames(schedule, operation, made, shards), shards.shape[1:], shards.itemsize
    share = math.prod(shape) * itemsize
    payload = share * pattern.group_size if pattern.kind == "all_gather" else share
    per_member = schedule.chunks
    if pattern.kind in ("all_to_all", "permute"):
        per_member //= pattern.group_size
    links = topology_for(topology, pattern.dims)
    positions = tuple(range(made.size))
    if name in REDUCED:
        positions = tuple(group[0] for group in made.groups(operation.axes))
    others = [axis for axis in made.axis_names if axis not in operation.axes or name not in REDUCED]
    final_spec = f"P({', '.join(map(repr, others))})"
    return Walk(
        operation=operation,
        mesh=made,
        frames=frames,
        shape=(total,),
        dtype="s32" if isinstance(data, int) else canonical_dtype(str(values.dtype)),
        spec=f"P({', '.join(map(repr, made.axis_names))})",
        shard_shape=shape,
        chunk_bytes=max(payload // per_member, 1),
        bytes=payload,
        timeline=timeline(schedule, max(payload // per_member, 1), links, wire),
        topology=links,
        wire=wire,
        bound=lower_bound(pattern, payload),
        rows=comparison(pattern, payload, links, wire),
        final_spec=final_spec,
        final_positions=positions,
    )


@pytest.fixture(scope="session")
def walk_of() -> WalkOf:
    return _walk_of


@pytest.fixture(scope="session")
def tutorial() -> tuple[int, ...]:
    """The sixteen numbers of the tutorial's collectives."""
    return TUTORIAL
