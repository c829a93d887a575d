"""A model: its parameters by name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.sharding import PartitionSpec, array_bytes

if TYPE_CHECKING:
    from shardviz.models.architecture import Architecture


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


@dataclass(frozen=True)
class Model:
    """A model: what it is called, where its parameters are said, and these in order.

    `architecture` is None where nothing says how the parameters are used: then a step of it cannot be
    planned.
    """

    name: str
    source: str
    parameters: tuple[ModelParameter, ...]
    architecture: Architecture | None = None

    @property
    def elements(self) -> int:
        """The number of parameters, as models are called after it."""
        return sum(each.elements for each in self.parameters)

    @property
    def nbytes(self) -> int:
        """Bytes of one whole copy of all parameters."""
        return sum(each.nbytes for each in self.parameters)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the parameters, that of the most bytes first."""
        held: dict[str, int] = {}
        for each in self.parameters:
            held[each.dtype] = held.get(each.dtype, 0) + each.nbytes
        return tuple(sorted(held, key=lambda dtype: -held[dtype]))
