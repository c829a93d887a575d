"""The sharding that a notation states of one array, and the mesh that it is read against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import NamedTuple

from shardviz.errors import QuestionError, plural
from shardviz.notation.scanner import MAX_RANK, Scanner
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import axis_part, whole_axis


@dataclass(frozen=True)
class Context:
    """The knowledge of a reader beside the text: the `mesh` whose axes it names or whose devices it numbers,
    the `rank` for notations that do not say it, and `sizes`, elements by dimension, for those that show them.
    Raises `QuestionError` for a rank over `MAX_RANK`."""

    mesh: Mesh | None = None
    rank: int | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.rank is not None and self.rank > MAX_RANK:
            problem = f"an array has at most {MAX_RANK} dimensions, not {self.rank:,}"
            raise QuestionError(problem, "use fewer dimensions")

    @property
    def axis_sizes(self) -> Mapping[str, int] | None:
        return None if self.mesh is None else self.mesh.shape

    def known_mesh(self, what: str) -> Mesh:
        if self.mesh is None:
            problem = f"{what} numbers devices, and no mesh is given"
            raise QuestionError(problem, "give the mesh, as in X=2,Y=4")
        return self.mesh

    def devices_at(self, positions: Sequence[int]) -> tuple[int, ...]:
        """The ids of the devices at these row-major places of the mesh; none where that is its own order."""
        own = range(len(positions)) if self.mesh is None else range(self.mesh.size)
        if list(positions) == [*own]:
            return ()
        return tuple(positions) if self.mesh is None else tuple(map(self.mesh.device_id, positions))

    def positions_of(self, devices: Sequence[int]) -> tuple[int, ...]:
        """The row-major places in the mesh of devices by their ids."""
        order = None if self.mesh is None else self.mesh.device_order
        if order is None:
            return tuple(devices)
        places = {device: index for index, device in enumerate(order)}
        return tuple(places[device] for device in devices)

    def check_rank(self, scanner: Scanner, rank: int) -> None:
        if self.rank is not None and rank != self.rank:
            problem = f"{plural(rank, 'dimension')}, but the array has {self.rank},"
            scanner.fail(problem, 0, len(scanner.text), "write one entry for each dimension")

    def known_rank(self, scanner: Scanner) -> int:
        if self.rank is None:
            hint = "give it, as in --rank 2"
            scanner.fail("the number of dimensions is missing", 0, len(scanner.text), hint)
        return self.rank

    def mesh_order(self, axes: Sequence[str]) -> tuple[str, ...]:
        """`axes` in the order in which the mesh has them, as JAX prints sets of axes."""
        places = {name: index for index, name in enumerate(self.axis_sizes or ())}

        def place(name: str) -> tuple[int, int]:
            part = axis_part(name)
            return places.get(whole_axis(name), len(places)), 0 if part is None else part.before

        return tuple(sorted(axes, key=place))


class Reading(NamedTuple):
    """One array's sharding, and all else that the text says of the array; None where it says nothing.

    `open_dims` are dimensions that the compiler may split further, `manual` the axes along which the program
    moves data itself, so that the layout is that of one device's piece along them. `notes` are sentences
    about what the text says beyond the layout."""

    spec: PartitionSpec
    dims: tuple[str, ...] | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    name: str | None = None
    open_dims: tuple[int, ...] = ()
    manual: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def dim_names(self) -> tuple[str, ...]:
        """The dimensions' names; I, J, K, … where the text gives none."""
        return placeholder_dims(self.spec.rank) if self.dims is None else self.dims


def placeholder_dims(rank: int, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Names for dimensions that have none: I, J, …, Z, A, …, H, then II, IJ, …, but none of `taken`."""
    letters = "IJKLMNOPQRSTUVWXYZABCDEFGH"
    names = chain(letters, map("".join, product(letters, repeat=2)))
    return tuple(islice((name for name in names if name not in taken), rank))
