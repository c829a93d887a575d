"""The value of each line of a program of the user's on every simulated device, as JAX ran it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.sharding import Mesh

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class LineValue:
    """The value of a statement that begins in a line, or of the parameter `name` of a function defined there.

    `shape` is that of a device's part within `shard_map`, where `spec` is empty, else of the whole array.
    `devices` are pairs of a position in the mesh and the part of that device, of the `shard_shape`; of large
    parts there are the first numbers of the first device. `note` says what kind of line it is: "gradient".
    """

    file: str
    line: int
    text: str
    name: str
    note: str
    dtype: str
    shape: tuple[int, ...]
    spec: str = ""
    shard_shape: tuple[int, ...] = ()
    devices: tuple[tuple[int, NDArray[Any]], ...] = ()

    @property
    def is_cut(self) -> bool:
        """Only the first numbers are here."""
        return self.devices[0][1].shape != self.shard_shape


@dataclass(frozen=True)
class ProgramValues:
    """The lines in the order in which they ran, on as many simulated devices as the mesh has."""

    mesh: Mesh
    lines: tuple[LineValue, ...]
    jax_version: str
