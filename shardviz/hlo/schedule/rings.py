"""Permutes around rings, and the chains that they make up: whose data goes on and on to the next device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective
from shardviz.hlo.groups.group_text import parse_pairs
from shardviz.hlo.groups.replica_groups import Lists
from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.value_flow import Value

MAX_ALONE = 8
"""A chain is joined with one of the last few that go the other way."""


class Permute(NamedTuple):
    """A permute of a module: its record, its line, and the computation that it stands in."""

    record: Collective
    instruction: Instruction
    home: Computation


@dataclass
class Ring:
    """A permute around a ring, and what was found of it."""

    value: Value
    permute: Permute
    pairs: Lists
    op: str = ""
    """The collective that it is a piece of, "" where it is a permute and no more."""
    earlier: set[Value] = field(default_factory=set)
    """The permutes whose result it sends on."""
    met: set[Value] = field(default_factory=set)
    """The permutes whose result is added to what it brings."""
    origins: frozenset[Value] = frozenset()
    """What it sends that no permute brought."""
    sent: frozenset[Value] = frozenset()
    """The values that it sends, under all their names."""
    matmuls: set[Value] = field(default_factory=set)
    sums: dict[Value, set[Value]] = field(default_factory=dict)
    """What is made by adding to what arrives, and the matmuls whose products are added."""
    rounds: int | None = 1
    """How often it runs until what is sent is around; None where the loop's length is unknown."""

    def added_before(self, rings: Iterable[Ring]) -> set[Value]:
        """The matmuls whose products are added to what it brings, before one of `rings` sends the sum on."""
        origins = (origin for ring in rings for origin in ring.origins)
        return {matmul for origin in origins for matmul in self.sums.get(origin, ())}


@dataclass
class Chain:
    """Permutes that send the same data on and on; or two such chains, one in each direction."""

    rings: list[Ring]
    pieces: int = 1
    """How many parts of an array are on their way, each around the whole ring."""

    @property
    def directions(self) -> set[Lists]:
        return {ring.pairs for ring in self.rings}

    @property
    def origins(self) -> set[Value]:
        return {origin for ring in self.rings for origin in ring.origins}

    @property
    def group_size(self) -> int:
        """The devices among which the data goes around."""
        reached = {self.rings[0].pairs[0][0]}
        targets = [_targets(pairs) for pairs in self.directions]
        waiting = [*reached]
        while waiting:
            device = waiting.pop()
            for each in {target.get(device, device) for target in targets} - reached:
                reached.add(each)
                waiting.append(each)
        return len(reached)

    @property
    def hops(self) -> int | None:
        """How many permutes run until what is sent is around, None where a loop's length is unknown."""
        counts = [ring.rounds for ring in self.rings]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def goes_around(self) -> bool:
        """Whether every device's array reaches all others."""
        return self.hops is None or self.hops >= self.group_size - 1


@lru_cache(maxsize=256)
def ring_pairs(text: str) -> Lists:
    """Pairs in which every device sends once and receives once, around rings of one size; else none."""
    try:
        pairs = parse_pairs(text)
    except NotationError:
        return ()
    target = _targets(pairs)
    if len(target) != len(pairs) or target.keys() != set(target.values()):
        return ()
    return pairs if len({*_ring_sizes(target), 1}) == 2 else ()


def _targets(pairs: Lists) -> dict[int, int]:
    return {pair[0]: pair[1] for pair in pairs}


def _ring_sizes(target: dict[int, int]) -> set[int]:
    sizes, seen = set(), set()
    for device in target:
        size = 0
        while device not in seen:
            seen.add(device)
            device, size = target[device], size + 1
        sizes.add(size or 1)
    return sizes


def joined(chains: Iterable[Chain]) -> list[Chain]:
    """Chains in opposite directions that carry one array between them, as one."""
    found: dict[int, Chain] = {}
    alone: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, chain in enumerate(chains):
        record = chain.rings[0].permute.record
        waiting = alone[chain.rings[0].op, record.operand_shape, record.dtype]
        others = [each for each in waiting if _are_opposite(found[each], chain)]
        begun_alike = [each for each in others if not found[each].origins.isdisjoint(chain.origins)]
        of_a_line = [each for each in others if found[each].rings[0].permute.record.source == record.source]
        place = next(iter(begun_alike or of_a_line[-1:]), None)
        if place is None:
            found[number] = chain
            waiting.append(number)
            del waiting[:-MAX_ALONE]
            continue
        waiting.remove(place)
        other = found[place]
        whole = other.goes_around and chain.goes_around
        if None in (other.hops, chain.hops):
            whole = other.origins.isdisjoint(chain.origins)
        # Each goes all the way around with a half, or each goes half the way with the whole.
        found[place] = Chain(other.rings + chain.rings, 2 if whole else 1)
    return list(found.values())


def _are_opposite(one: Chain, other: Chain) -> bool:
    turned = {tuple(sorted((target, source) for source, target in pairs)) for pairs in one.directions}
    return one.directions.isdisjoint(other.directions) and turned == {
        tuple(sorted(pairs)) for pairs in other.directions
    }
