"""The links between devices: rings, lines and tori, a switch in the middle, or several of these in levels.

A topology has `devices` and directed `links`, which count from 0; `ends` are the device at which a link
begins and the one at which it ends, and `flat` is the same in one level, for pictures."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from shardviz.errors import NotationError, QuestionError, plural, quote
from shardviz.hardware.chips import times
from shardviz.hardware.links import LinkSpec

MAX_DEVICES = 2**20
"""With more devices, arrays with a number for every link would take too much memory."""
MAX_LINKS = 2**23
"""The same limit on links, for tori of many axes."""
MAX_RANK = 16
HINT = "use ring, line, torus, switch, or the sizes of a torus, as in 4x4"


@dataclass(frozen=True)
class Torus:
    """Devices on a grid of the sizes `dims`, each linked to its neighbours along every axis, both ways; where
    `wrap`, the last of an axis is linked to the first. An axis of two has one link each way, wrapped or not.
    One axis makes a ring or a line.

    Links count by axis, then direction (towards larger coordinates first), then by the place of their segment
    in row-major order; segment s of an axis joins the coordinates s and s + 1."""

    dims: tuple[int, ...]
    wrap: tuple[bool, ...]

    def __post_init__(self) -> None:
        _check_devices(self.devices)
        if self.links > MAX_LINKS:
            problem = f"the {self.links:,} links of a torus of {times(self.dims)} are too many to follow"
            raise QuestionError(problem, "use a smaller group, or --topology ring or switch")

    def __str__(self) -> str:
        axes = [axis for axis, size in enumerate(self.dims) if size > 1]
        closed = all(self.wrap[axis] for axis in axes)
        if len(axes) < 2:
            return f"{'ring' if closed else 'line'} of {self.devices}"
        return f"{'torus' if closed else 'grid'} of {times(self.dims)}"

    @property
    def flat(self) -> Torus:
        return self

    @property
    def devices(self) -> int:
        return math.prod(self.dims)

    @property
    def links(self) -> int:
        return 2 * sum(map(self.links_along, range(len(self.dims))))

    def is_ring(self, axis: int) -> bool:
        return self.wrap[axis] and self.dims[axis] > 2

    def segments(self, axis: int) -> int:
        """Pairs of neighbours on one line along an axis."""
        return self.dims[axis] - (not self.is_ring(axis))

    def stride(self, axis: int) -> int:
        return math.prod(self.dims[axis + 1 :])

    def links_along(self, axis: int) -> int:
        return self.devices // self.dims[axis] * self.segments(axis)

    def first_link(self, axis: int, up: bool) -> int:
        """The first of the links along an axis; `up` leads to larger coordinates."""
        before = 2 * sum(map(self.links_along, range(axis)))
        return before if up else before + self.links_along(axis)

    def ends(self, link: int) -> tuple[int, int]:
        for axis, count in enumerate(map(self.links_along, range(len(self.dims)))):
            if link < 2 * count:
                down, index = divmod(link, count)
                outer, rest = divmod(index, self.segments(axis) * self.stride(axis))
                segment, inner = divmod(rest, self.stride(axis))
                low, high = (
                    (outer * self.dims[axis] + coordinate) * self.stride(axis) + inner
                    for coordinate in (segment, (segment + 1) % self.dims[axis])
                )
                return (high, low) if down else (low, high)
            link -= 2 * count
        raise IndexError(link)


@dataclass(frozen=True)
class Switch:
    """Every device has a link to a switch and one from it: 0 … `devices` - 1 lead there, the rest back.

    The switch is the node with the number `devices`. It passes a message on while it still comes in (cut
    through): from device to device a message takes one latency and is sent once, but waits for its sender's
    link and for its receiver's."""

    devices: int

    def __post_init__(self) -> None:
        _check_devices(self.devices)

    def __str__(self) -> str:
        return f"switch with {self.devices}"

    @property
    def flat(self) -> Switch:
        return self

    @property
    def links(self) -> int:
        return 2 * self.devices

    def ends(self, link: int) -> tuple[int, int]:
        down, device = divmod(link, self.devices)
        return (self.devices, device) if down else (device, self.devices)


@dataclass(frozen=True)
class LinkedLevel:
    """The links of one level of a hierarchy, with figures of their own. They carry what goes from one block
    of `block` devices to another. `shared` devices stand at each node of the topology, and use its links
    together."""

    topology: Torus | Switch | Hierarchy
    spec: LinkSpec
    block: int
    shared: int = 1


@dataclass(frozen=True)
class Hierarchy:
    """Blocks of devices on links of their own, joined by other links: nodes of GPUs, slices of TPUs, chips of
    two devices.

    `levels` are the outermost first; a message goes over the first of them between whose blocks it goes, and
    messages on different levels do not meet. Links count by level."""

    levels: tuple[LinkedLevel, ...]
    name: str
    flat: Torus | Switch

    def __str__(self) -> str:
        return self.name

    @property
    def devices(self) -> int:
        return self.flat.devices

    @property
    def links(self) -> int:
        return sum(level.topology.links for level in self.levels)

    def ends(self, link: int) -> tuple[int, int]:
        for level in self.levels:
            if link < level.topology.links:
                begin, end = level.topology.ends(link)
                return begin * level.shared, end * level.shared
            link -= level.topology.links
        raise IndexError(link)


Topology = Torus | Switch | Hierarchy


def topology_for(text: str | None, dims: tuple[int, ...]) -> Topology:
    """The topology that joins a group whose axes have the sizes `dims`.

    None is a ring for one axis and a torus for several; ``ring`` is one ring through all members in order;
    ``line`` the grid of `dims` without wraparound; ``torus`` the grid with it; ``switch`` a switch; sizes as
    ``4x4`` a torus. Raises `NotationError` for another text, `QuestionError` for sizes that do not multiply
    to the group."""
    members = math.prod(dims)
    word = "torus" if text is None else text.strip().lower()
    if word == "torus":
        return Torus(dims, (True,) * len(dims))
    if word == "line":
        return Torus(dims, (False,) * len(dims))
    if word == "ring":
        return Torus((members,), (True,))
    if word == "switch":
        return Switch(members)
    sizes = _sizes(text or "")
    if math.prod(sizes) != members:
        devices = plural(math.prod(sizes), "device")
        problem = f"a topology of {times(sizes)} has {devices}, but the group has {members:,}"
        raise QuestionError(problem, f"give sizes that multiply to {members:,}, as in {times(dims)}")
    return Torus(sizes, (True,) * len(sizes))


def _sizes(text: str) -> tuple[int, ...]:
    start = len(text) - len(text.lstrip())
    if not re.fullmatch(r"\s*[0-9]+(?:[x×][0-9]+)*\s*", text, re.IGNORECASE | re.ASCII):
        problem = f"{quote(text.strip(), 30)} is not a topology" if text.strip() else "there is no topology"
        raise NotationError(problem, text, start, max(len(text.rstrip()), start + 1), HINT)
    sizes = list(re.finditer("[0-9]+", text))
    if len(sizes) > MAX_RANK:
        problem = f"more than {MAX_RANK} axes"
        raise NotationError(problem, text, *sizes[MAX_RANK].span(), hint="use fewer axes")
    for size in sizes:
        if len(size.group()) > len(str(MAX_DEVICES)) or int(size.group()) < 1:
            problem = f"an axis of {quote(size.group(), 20)} devices is not possible"
            raise NotationError(problem, text, *size.span(), hint=f"use sizes from 1 to {MAX_DEVICES:,}")
    return tuple(int(size.group()) for size in sizes)


def _check_devices(count: int) -> None:
    if count > MAX_DEVICES:
        problem = f"the links of {count:,} devices are too many to follow"
        raise QuestionError(problem, f"use a group of at most {MAX_DEVICES:,} devices")
