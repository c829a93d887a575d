"""Links that are assumed where nobody has named a machine: every mesh axis is a ring of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

from shardviz.hardware.family import AxisLevels, Dimension, Family
from shardviz.hardware.levels import LinkLevel
from shardviz.hardware.links import LinkSpec
from shardviz.sharding import Mesh


@dataclass(frozen=True)
class AxisRings(Family):
    """Rings over `link`, as many as a mesh has axes; of `members` devices, 0 for as many as a mesh has."""

    link: LinkSpec
    members: int = 0

    @property
    def devices(self) -> int:
        return self.members

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        return ()

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        return {"ring": self.link}

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        return replace(self, link=links["ring"])

    def size_words(self) -> str:
        return f"{self.chip}, a ring for each mesh axis"

    def jax_order(self, sizes: Sequence[int]) -> tuple[int, ...]:
        return tuple(range(math.prod(sizes)))

    def levels_of_mesh(self, mesh: Mesh) -> AxisLevels:
        """A ring for each axis of a mesh."""
        return tuple((axis, (LinkLevel("ring", size, self.link, axis),)) for axis, size in mesh.shape.items())
