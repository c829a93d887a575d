"""Runs for the views: a collective of real parts, from few words; and a browser for pages."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for
from shardviz.collectives.operations import OPERATIONS
from shardviz.hardware.group_links import Links, levels_of
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.topology import topology_for
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import Layout, PartitionSpec, ShardedArray, canonical_dtype
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.stepping.question import CollectiveQuestion, final_result

RunOf = Callable[..., CollectiveRun]
TUTORIAL = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2)
LINK = LinkSpec()


def _run_of(
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
    link_spec: LinkSpec = LINK,
    **parameters: Any,
) -> CollectiveRun:
    """`data` are all devices' numbers in the mesh's order, or, for a run without, how many there are."""
    made = parse_mesh(mesh)
    if device_order is not None:
        made = type(made)(made.axis_names, made.axis_sizes, device_order)
    operation = OPERATIONS[name](axes or made.axis_names, **parameters)
    pattern = operation.pattern(operation.dims(made))
    schedule = schedule_for(algorithm, pattern, pieces)
    values = None if isinstance(data, int) else np.array(data, dtype=dtype)
    total = data if isinstance(data, int) else len(np.ravel(data))
    shards = None if values is None else values.reshape(made.size, *shard)
    local = (total // made.size,) if shards is None else shards.shape[1:]
    shape = (local[0] * made.size, *local[1:]) if local else (made.size,)
    spec = PartitionSpec((made.axis_names, *((),) * (len(shape) - 1)))
    element = "s32" if values is None else canonical_dtype(str(values.dtype))
    array = ShardedArray("A", tuple(f"d{dim}" for dim in range(len(shape))), shape, element, spec)
    final = final_result(operation, made)
    question = CollectiveQuestion(operation, Layout(array, made), str(spec), schedule, shards, *final)
    joined = topology_for(topology, pattern.dims)
    return CollectiveRun(question, Links(joined, link_spec, levels_of(joined, link_spec, operation.axes)))


@pytest.fixture(scope="session")
def run_of() -> RunOf:
    return _run_of


@pytest.fixture(scope="session")
def tutorial() -> tuple[int, ...]:
    """The sixteen numbers of the tutorial's collectives."""
    return TUTORIAL


@pytest.fixture
def browser() -> Iterator[Any]:
    """Chromium, by playwright."""
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
