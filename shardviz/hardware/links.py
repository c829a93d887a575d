"""Links: the figures of one, those along one physical dimension of a machine, and those of a group there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from shardviz.errors import QuestionError, quote
from shardviz.hardware.quantities import BANDWIDTH, LATENCY, figure
from shardviz.strict_table import StrictTable

ASSUMED = "v5e"
"""The chip whose links are assumed where none is named."""
LINK_FIGURES = {"bandwidth": BANDWIDTH, "latency": LATENCY, "start": LATENCY}
"""The figures of a link by their keys in a machine's file, which are the fields of `LinkSpec`."""
_BOUNDS = {
    "latency": (0.0, 1e6, "latencies are from 0 to 1e+06 s"),
    "bandwidth": (1.0, 1e18, "bandwidths are from 1 to 1e+18 B/s, or inf"),
}
"""Within these all times of a schedule stay far within a float."""


class UnpublishedLinkError(QuestionError):
    """Nobody publishes the bandwidth of a link."""


LevelKind = Literal["ring", "line", "switch", "network", "chip"]


@dataclass(frozen=True)
class LinkSpec:
    """A message of b bytes takes `latency` + b / `bandwidth` seconds over one directed link, by default a TPU
    v5e's, one way. `start` are the seconds that a collective over such links takes besides, once."""

    latency: float = 1e-6
    bandwidth: float = 4.5e10
    start: float = 0.0

    def seconds(self, count: float) -> float:
        return self.latency + count / self.bandwidth


def link_as_given(before: LinkSpec, latency: str | None = None, bandwidth: str | None = None) -> LinkSpec:
    """The link with the figures that are given as text: ``1us``, ``0.5 ms`` or ``0``, ``45GB/s`` or ``inf``.
    Of such a link nobody has measured a start. Raises `NotationError`, and `QuestionError` out of bounds."""
    for name, quantity, text in (("latency", LATENCY, latency), ("bandwidth", BANDWIDTH, bandwidth)):
        if text is not None:
            value = quantity.parse(text)
            least, most, hint = _BOUNDS[name]
            if not least <= value <= most and (name, value) != ("bandwidth", math.inf):
                raise QuestionError(f"a {name} of {quote(text.strip(), 30)} is not possible", hint)
            before = replace(before, start=0.0, **{name: value})
    return before


def read_link(table: StrictTable, before: LinkSpec | None, hop: float) -> LinkSpec:
    """The link of a table; its bandwidth has to be there where none was `before`, with `hop` of latency."""
    usual = {"latency": hop, "start": 0.0} if before is None else vars(before)
    return LinkSpec(
        **{key: figure(table, key, quantity, usual.get(key)) for key, quantity in LINK_FIGURES.items()}
    )


def link_toml(link: LinkSpec) -> list[str]:
    figures = [(key, quantity.toml(getattr(link, key))) for key, quantity in LINK_FIGURES.items()]
    return [f"{key} = {text}" for key, text in figures if key != "start" or link.start > 0]


@dataclass(frozen=True)
class LinkLevel:
    """One physical dimension of a group: `size` members joined as `kind` by links of `spec`, one way.

    "ring" and "line": neighbours on a torus axis; "switch": NVLink or the like; "network": between slices or
    nodes, `spec` being one device's part; "chip": two devices on one chip. `name` is what people call it:
    "x", "DCN". `hops` are the links between neighbours of the group; other groups use those in between, too:
    `load` is how many messages pass the busiest one, 0 where that is as many as the hops. GPUs have in `nccl`
    a key of `gpu_times.NCCL`. Where it is `direct` there is no switch: a member uses the links to all others
    at once."""

    kind: LevelKind
    size: int
    spec: LinkSpec
    name: str
    hops: int = 1
    nccl: str = ""
    load: int = 0
    direct: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The physical dimensions by name; several where neighbours differ in several."""
        return tuple(self.name.split(" and "))

    @property
    def is_torus(self) -> bool:
        return self.kind in ("ring", "line")

    @property
    def messages(self) -> int:
        return self.load or self.hops

    @property
    def closes(self) -> bool:
        """There are links in both directions around; two neighbours have but the one between them."""
        return self.kind == "ring" and (self.size > 2 or self.hops > 1)

    @property
    def one_way(self) -> float:
        """Bytes per second to the next member: links that lead past others are shared with their groups."""
        return self.spec.bandwidth / self.messages

    @property
    def peers(self) -> int:
        """The members to which one has a link of its own, or 1."""
        return self.size - 1 if self.direct else 1

    def farthest(self, ways: int) -> int:
        """Steps between members that are farthest apart, where messages go `ways` ways round a ring."""
        if not self.is_torus:
            return 1
        return self.size // 2 if self.closes and ways == 2 else self.size - 1


@dataclass(frozen=True)
class Dimension:
    """One physical dimension of a machine, "x", "core" or "gpu": `size` places, `stride` apart in the
    devices' ids. The others are those of a `LinkLevel` along all of it; `link` is None where it has one
    place, or nobody has given the figures."""

    name: str
    size: int
    stride: int
    kind: LevelKind
    link: LinkSpec | None
    label: str
    nccl: str = ""
    direct: bool = False

    @property
    def is_torus(self) -> bool:
        return self.kind in ("ring", "line")

    def level(self, size: int, step: int = 1) -> LinkLevel:
        """The level of so many places, `step` apart: every second of a ring of 8 are a ring of 4, the first
        four a line."""
        if self.link is None:
            hint = "give it in a machine file, under [node]: bandwidth"
            raise UnpublishedLinkError(f"the bandwidth of {self.label} is not published", hint)
        if not self.is_torus:
            return LinkLevel(self.kind, size, self.link, self.label, nccl=self.nccl, direct=self.direct)
        closes = self.kind == "ring" and size * step == self.size
        return LinkLevel("ring" if closes else "line", size, self.link, self.label, step)

    def level_of(self, places: Sequence[int]) -> LinkLevel:
        """The level of these places, in rising order, with the widest step between neighbours."""
        if not self.is_torus:
            return self.level(len(places))
        steps = [after - before for before, after in pairwise(places)]
        if self.kind == "line":
            return self.level(len(places), max(steps))
        *shorter, widest = sorted([*steps, places[0] + self.size - places[-1]])
        # Neighbours that are n steps apart share each link with n - 1 other groups. On a ring of 8 the places
        # 0, 2 and 5 have steps of 2, 3 and, round the ring, 3: as a ring, both ways carry a third of a link;
        # as a line without one step of 3, one way carries a third. The places 0, 1, 2 and 3 have steps of 1,
        # 1, 1 and 5: a line at the full link beats a ring at two fifths of it. So the ring is taken unless
        # its widest step is twice as wide as all others.
        if widest < 2 * shorter[-1]:
            return replace(self.level(len(places), widest), kind="ring")
        return replace(self.level(len(places), shorter[-1]), kind="line")


def joined_levels(levels: Iterable[LinkLevel]) -> tuple[LinkLevel, ...]:
    """The levels, of which those that share physical dimensions are one, as slow as the slowest."""
    joined: list[LinkLevel] = []
    for level in levels:
        for other in tuple(joined):
            words = dict.fromkeys((*other.words, *level.words))
            if len(words) < len(other.words) + len(level.words):
                joined.remove(other)
                slower = max(other, level, key=lambda one: (one.is_torus, -one.spec.bandwidth))
                level = replace(
                    slower,
                    kind="line" if slower.kind == "ring" else slower.kind,
                    size=other.size * level.size,
                    name=" and ".join(words),
                    hops=max(other.hops, level.hops),
                    load=max(other.messages, level.messages),
                )
        joined.append(level)
    return tuple(joined)
