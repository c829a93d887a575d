"""Hardware that is not here, as JAX and the compilers want it described."""

from __future__ import annotations

from typing import Any

from shardviz.compiler.messages import TopologyRequest
from shardviz.hardware.chips import GPUS, HOST, KIB
from shardviz.hardware.clusters import Cluster, GpuNodes, times


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
