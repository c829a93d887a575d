"""Hardware that is not here, as JAX and the compilers want it described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardviz.hardware.chips import GPUS, HOST, KIB
from shardviz.hardware.clusters import Cluster, GpuNodes, times
from shardviz.hardware.placement import DeviceCoords, Placement


@dataclass(frozen=True)
class TopologyRequest:
    """The hardware of a TPU or GPU target, as `jax.experimental.topologies` wants it described.

    `platform` is "tpu" or "cuda"; `topology` is "v5e:2x4", or for GPUs "1x2x8" (partitions, nodes, GPUs in a
    node); `options` are the plugin's other keywords, by name.
    """

    platform: str
    topology: str
    options: tuple[tuple[str, Any], ...] = ()


def topology_request(cluster: Cluster) -> TopologyRequest:
    """The description of a cluster for the compiler of its chips."""
    if isinstance(cluster, GpuNodes):
        return TopologyRequest("cuda", f"1x{cluster.nodes}x{cluster.gpus}", (("gpu", cluster.chip.name),))
    options: list[tuple[str, Any]] = []
    if cluster.slices > 1:
        options.append(("num_slices", cluster.slices))
    if any(size % host for size, host in zip(cluster.torus, HOST, strict=False)):
        # Releases of libtpu before 0.0.52 take a part of a host only as hosts of one chip.
        options.append(("chips_per_host_bounds", (1, 1, 1)))
    if cluster.chip.name == "v4":
        options.append(("chip_config_name", "megacore"))
    return TopologyRequest("tpu", f"{cluster.chip.name}:{times(cluster.torus)}", tuple(options))


def placement_of(
    cluster: Cluster | None, devices: tuple[tuple[int, tuple[int, ...], int, int], ...]
) -> Placement | None:
    """The places of a mesh's devices that JAX has placed on a cluster; None without one.

    `devices` says of the device at each mesh position its id, the coordinates of its chip, its core and its
    slice; of a GPU its id, nothing, its number in the node, and the node.
    """
    if cluster is None or not devices:
        return None
    ids = tuple(id_ for id_, *_ in devices)
    family = cluster.family
    # JAX gives every chip of a TPU three coordinates.
    rank = len(family.torus_sizes)
    places = tuple(DeviceCoords(coords[:rank], core, slice_) for _, coords, core, slice_ in devices)
    return family.placement(ids, places)


RESERVED = KIB
"""Of a core's shared memory, what CUDA keeps for each block."""


def target_config(gpu: str) -> str:
    """A GPU of `shardviz.hardware.chips.GPUS`, by name, as XLA wants one described that is not here: a
    `GpuTargetConfigProto` as text."""
    figures = GPUS[gpu]
    major, minor = figures.capability
    return f"""
gpu_device_info {{
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: {48 * KIB}
  shared_memory_per_core: {figures.shared}
  shared_memory_per_block_optin: {figures.shared - RESERVED}
  threads_per_core_limit: 2048
  core_count: {figures.cores}
  fpus_per_core: {figures.fpus}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {round(figures.hbm_bandwidth)}
  l2_cache_size: {figures.l2}
  clock_rate_ghz: {figures.clock / 1e9:g}
  device_memory_size: {figures.hbm}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 1 }}
device_description_str: "{figures.device_kind}"
"""
