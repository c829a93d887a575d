"""Hardware that is not here, as JAX and the compilers want it described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardviz.compiler.messages import TopologyRequest
from shardviz.hardware.chips import GPUS, HOST
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


@dataclass(frozen=True)
class GpuFigures:
    """One SXM module. `shared` and `l2` are bytes (a core's shared memory, the second-level cache), `memory`
    is bytes and `bandwidth` bytes a second of HBM, `clock` GHz at boost.

    Figures are NVIDIA's: the architecture whitepapers of Ampere, Hopper and Blackwell, the data sheets of the
    SXM modules, and the table of compute capabilities in the CUDA programming guide.
    """

    capability: tuple[int, int]
    cores: int
    fpus: int
    shared: int
    l2: int
    memory: int
    bandwidth: int
    clock: float


KIB, MIB, GB = 2**10, 2**20, 10**9

FIGURES = {
    "a100": GpuFigures((8, 0), 108, 64, 164 * KIB, 40 * MIB, 80 * GB, 2_039 * GB, 1.41),
    "h100": GpuFigures((9, 0), 132, 128, 228 * KIB, 50 * MIB, 80 * GB, 3_350 * GB, 1.98),
    "h200": GpuFigures((9, 0), 132, 128, 228 * KIB, 50 * MIB, 141 * GB, 4_800 * GB, 1.98),
    "b200": GpuFigures((10, 0), 148, 128, 228 * KIB, 126 * MIB, 180 * GB, 8_000 * GB, 1.965),
}

RESERVED = KIB
"""Of a core's shared memory, what CUDA keeps for each block."""


def target_config(gpu: str) -> str:
    """A GPU of `shardviz.hardware.chips.GPUS`, by name, as XLA wants one described that is not here: a
    `GpuTargetConfigProto` as text."""
    figures = FIGURES[gpu]
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
  memory_bandwidth: {figures.bandwidth}
  l2_cache_size: {figures.l2}
  clock_rate_ghz: {figures.clock}
  device_memory_size: {figures.memory}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 1 }}
device_description_str: "{GPUS[gpu].device_kind}"
"""
