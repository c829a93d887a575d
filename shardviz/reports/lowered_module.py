"""A program before any compiler has seen it."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.sharding import Mesh


@dataclass(frozen=True)
class LoweredModule:
    """A program before any compiler has seen it: `code` is its StableHLO module as MLIR's bytes.

    `platform` is the one that it is lowered for, "" where that was done before and cannot be told. It runs on
    `devices`, which all of its `meshes` have in the same order: JAX takes no others. Without a mesh it runs
    on one device.

    `unsplit` are the paths of large arguments that have no sharding, nor does the jit give them one,
    `donated` the number and the path of each argument whose memory a result may take, and `lost_donation` is
    JAX's warning of others. `notes` are sentences on how it was traced.
    """

    name: str
    platform: str
    devices: int
    meshes: tuple[Mesh, ...]
    code: bytes
    unsplit: tuple[str, ...] = ()
    donated: tuple[tuple[int, str], ...] = ()
    lost_donation: str = ""
    notes: tuple[str, ...] = ()

    @property
    def mesh(self) -> Mesh:
        """The mesh that is laid on the devices."""
        return self.meshes[0] if self.meshes else Mesh(("device",), (self.devices,))
