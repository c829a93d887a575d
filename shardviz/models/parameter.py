"""A parameter of a model: its name, shape and dtype, and what its source says of its sharding."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shardviz.sharding import PartitionSpec, array_bytes


@dataclass(frozen=True)
class ModelParameter:
    """A parameter as its source names it: the shape in elements, and the dtype as HLO prints it.

    `dims` are the logical axes of its dimensions, such as ``("heads", "embed")``, "" for one without a name;
    () where the source says nothing. `spec` is the sharding that the source itself says, None where it says
    none.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    dims: tuple[str, ...] = ()
    spec: PartitionSpec | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of one whole copy."""
        return array_bytes(self.shape, self.dtype)
