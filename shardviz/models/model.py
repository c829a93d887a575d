"""A model: its parameters by name."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.models.architecture import Architecture
from shardviz.models.parameter import ModelParameter


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
