"""The collective matmuls of a module: data that goes around a ring, one device at a time, beside matmuls.

A permute belongs to one when it sends everybody's array to a neighbour on a ring, and

- what arrives is an operand of a matmul, and so is the array with which the ring began: that is an
  all-gather whose pieces are multiplied as they come; or
- what arrives is added to the result of a matmul that does not depend on it: that is a reduce-scatter whose
  sums grow on their way.

What arrives from a device may be sent on by the next permute or by the next round of a loop. Ring attention
is two of them: its keys and its values are gathered, and multiplied as they come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from math import prod

from shardviz.errors import NotationError
from shardviz.hlo.collective import Collective, CollectiveMatmul
from shardviz.hlo.replica_groups import Lists, linked, parse_pairs
from shardviz.hlo.text.call_graph import Call, times
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import MOVES
from shardviz.hlo.text.shapes import is_number, placed_arrays
from shardviz.hlo.text.values import Path, ProgramValue, Values

MAX_TERMS = 16
"""No more operands of one instruction than this are asked whether they are products."""
_JOINS = ("concatenate", "pad", "fusion")
"""Opcodes that put pieces side by side; the result is larger than a piece."""
_SUMS = ("add", "fusion")
_FETCHES = ("slice-start", "slice-done")
_PARTS = ("slice", "dynamic-slice", *_FETCHES)
_JOINED = 'custom_call_target="ConcatBitcast"'
"""The parts of an array, fetched one by one, as the array again."""
MAX_ALONE = 8
"""A chain is joined with one of the last few that go the other way."""
MAX_FOLLOWED = 64
"""Values looked at to follow one of them, at most."""
_MOVES = MOVES | {"bitcast-convert", "collective-permute-done", "get-tuple-element"}


@dataclass
class Ring:
    """A permute around a ring, and what was found of it.

    `op` is the collective that it is a piece of, "" where it is a permute and no more. It sends the values
    `sent`, under all their names: of these no permute brought the `origins`, and it sends on the result of
    those that are `earlier`. The result of those that it `met` is added to what it brings. `sums` are of what
    arrives and of products of matmuls, each with those matmuls. `rounds` is the number of runs until what is
    sent is around, None where the loop's length is unknown."""

    value: ProgramValue
    record: Collective
    pairs: Lists
    op: str = ""
    earlier: set[ProgramValue] = field(default_factory=set)
    met: set[ProgramValue] = field(default_factory=set)
    origins: frozenset[ProgramValue] = frozenset()
    sent: frozenset[ProgramValue] = frozenset()
    matmuls: set[ProgramValue] = field(default_factory=set)
    sums: dict[ProgramValue, set[ProgramValue]] = field(default_factory=dict)
    rounds: int | None = 1

    def added_before(self, rings: Iterable[Ring]) -> set[ProgramValue]:
        """The matmuls whose products are added to what it brings, before one of `rings` sends the sum on."""
        origins = (origin for ring in rings for origin in ring.origins)
        return {matmul for origin in origins for matmul in self.sums.get(origin, ())}


@dataclass
class Chain:
    """Permutes that send the same data on and on, or two such chains, one in each direction. `pieces` counts
    the parts of an array that are on their way, each around the whole ring."""

    rings: list[Ring]
    pieces: int = 1

    @property
    def directions(self) -> set[Lists]:
        return {ring.pairs for ring in self.rings}

    @property
    def origins(self) -> set[ProgramValue]:
        return {origin for ring in self.rings for origin in ring.origins}

    @property
    def group_size(self) -> int:
        """The devices among which the data goes around."""
        groups = linked(pair for pairs in self.directions for pair in pairs)
        return next(len(group) for group in groups if self.rings[0].pairs[0][0] in group)

    @property
    def hops(self) -> int | None:
        """The permutes that run until what is sent is around; None where a loop's length is unknown."""
        counts = [ring.rounds for ring in self.rings]
        return None if None in counts else sum(count or 0 for count in counts)

    @property
    def goes_around(self) -> bool:
        """Return whether every device's array reaches all others."""
        return self.hops is None or self.hops >= self.group_size - 1


def collective_matmuls(
    permutes: Iterable[tuple[Collective, Instruction]], values: Values, calls: Iterable[Call]
) -> tuple[CollectiveMatmul, ...]:
    """The collective matmuls that the `permutes` of a module make up, in program order; each has its line."""
    rings = {}
    for record, line in permutes:
        if pairs := ring_pairs(line.attributes.get("source_target_pairs", "")):
            value = ProgramValue(line)
            rings[value] = Ring(value, record, pairs)
    if not rings:
        return ()
    homes = {value.line.home for value in rings}
    called = {home.start: home for home in homes}
    inner = {called[call.callee]: call for call in calls if call.callee in called}
    homes |= {values.lines.computations.around(call.position) for call in inner.values()}
    rounds = {home: call.times for home, call in inner.items()}
    return tuple(_Search(rings, ValueFlow(values, homes), rounds).found())


class _Search:
    def __init__(
        self, rings: dict[ProgramValue, Ring], flow: ValueFlow, rounds: dict[Computation, int | None]
    ) -> None:
        self._rings = rings
        self._rounds = rounds
        self._flow, self._lines = flow, flow.lines
        self._multiplied_by: dict[ProgramValue, frozenset[ProgramValue]] = {}
        self._order = {value: number for number, value in enumerate(rings)}

    def found(self) -> Iterator[CollectiveMatmul]:
        """Every collective matmul, in the order of their first permutes."""
        for ring in self._rings.values():
            self._look_back(ring)
            self._look_ahead(ring)
        sums = {value for value, ring in self._rings.items() if ring.op == "reduce-scatter"}
        for ring in self._rings.values():
            if not ring.op and not sums.isdisjoint(self._linked(ring)) and self._meets(ring, sums):
                ring.op = "reduce-scatter"
        yield from filter(None, map(self._record, joined(self._chains())))

    def _look_back(self, ring: Ring) -> None:
        """Find what a ring sends, and where that comes from."""
        flow = self._flow
        values = {value for source in flow.sources(ring.value) for value in flow.back(source)}
        ring.earlier = values & self._rings.keys()
        ring.sent = frozenset(values - ring.earlier)
        # It is made here, or comes from a computation around, which is not looked into.
        begins = (value for value in ring.sent if not flow.is_move(value) or not flow.sources(value))
        ring.origins = frozenset(begins)

    def _look_ahead(self, ring: Ring) -> None:
        """Find what is done with what arrives."""
        arrived = self._flow.ahead(ring.value)
        for user in [value for value, passed in arrived.items() if not passed]:
            if self._multiplies(user, arrived):
                ring.matmuls.add(user)
            elif added := self._added(user, {*arrived, *ring.sent}):
                ring.op = "reduce-scatter"
                ring.sums[user] = added
                ring.matmuls |= added
                ring.met.update(value for value in self._others(user, arrived) if value in self._rings)
            else:
                ring.matmuls |= self._multiplied_together(user, ring.value)
        if ring.matmuls:
            ring.op = ring.op or "all-gather"

    def _meets(self, ring: Ring, sums: Collection[ProgramValue]) -> bool:
        """Return whether it ends a ring in two directions: it brings the sum of one to the other's."""
        arrived = self._flow.ahead(ring.value)
        return any(
            earlier in sums
            for user, passed in arrived.items()
            if not passed and user.line.opcode in _SUMS and not _is_larger(user, ring.value)
            for other in self._others(user, arrived)
            for source in self._flow.sources(other)[:MAX_TERMS]
            for earlier in self._flow.back(source)
        )

    def _multiplied_together(self, user: ProgramValue, piece: ProgramValue) -> frozenset[ProgramValue]:
        """The matmuls of an array that an instruction makes of a piece and others beside it."""
        if user.line.opcode not in _JOINS or self._lines.is_matmul(user.line) or not _is_larger(user, piece):
            return frozenset()
        # Also what was padded to stand beside it.
        whole = self._flow.ahead(user, lambda v: self._flow.is_move(v) or v.line.opcode == "maximum")
        return frozenset(value for value in whole if self._multiplies(value, whole))

    def _multiplies(self, user: ProgramValue, values: Collection[ProgramValue]) -> bool:
        return any(ProgramValue(line) in values for line in self._lines.factors_of(user.line))

    def _added(self, user: ProgramValue, sums: Set[ProgramValue]) -> set[ProgramValue]:
        """The matmuls to whose result an instruction adds one of the `sums`; none if they are made of it."""
        values = {user} if self._lines.is_matmul(user.line) else set()
        if not values and user.line.opcode in _SUMS:
            values = {value for value in self._others(user, sums) if self._lines.is_matmul(value.line)}
        return set() if any(self._depends(value, sums) for value in values) else values

    def _depends(self, matmul: ProgramValue, values: Set[ProgramValue]) -> bool:
        """Return whether a matmul multiplies what is made of one of the values in the same loop round."""
        home, factors = matmul.line.home, self._lines.factors_of(matmul.line)
        starts = (value.line.start for value in values if value.line.home is home)
        first = min(starts, default=matmul.line.stop)

        def is_behind(value: ProgramValue) -> bool:
            # What is made of a value stands behind it.
            return value.line.start > first and value.line.opcode not in ("parameter", "while")

        begun = {source: is_behind(source) for source in self._flow.sources(matmul) if source.line in factors}
        return not values.isdisjoint(_followed(begun, is_behind, self._flow.sources))

    def _is_fetched(self, value: ProgramValue) -> bool:
        """Return whether a value is its source, at once or fetched in parts and put together again."""
        line = value.line
        return self._flow.is_move(value) or line.opcode in _FETCHES or line.says(_JOINED)

    def _others(self, user: ProgramValue, values: Collection[ProgramValue]) -> set[ProgramValue]:
        """The other values that an instruction takes, back to where they, or the whole of them, are made."""
        return {
            value
            for source in self._flow.sources(user)[:MAX_TERMS]
            if source not in values
            for value in self._flow.back(source, lambda v: self._is_fetched(v) or v.line.opcode in _PARTS)
        }

    def _chains(self) -> list[Chain]:
        """The permutes that hang together, in program order; one that sends the zeros with which several sums
        of one shape begin, as XLA does once for all, begins several chains."""
        links = {value: self._linked(ring) for value, ring in self._rings.items() if ring.op}
        first = {value: ring for value, ring in self._rings.items() if ring.sums and links[value] <= ring.met}
        chain_of: dict[ProgramValue, Chain] = {}
        for value in [value for value in links if value not in first]:
            ring = self._rings[value]
            begun_by = [first[value] for value in links[value] & first.keys()]
            products = {matmul for starter in begun_by for matmul in starter.added_before([ring])}
            others = [
                chain_of[value] for value in links[value] - first.keys() | products if value in chain_of
            ]
            chains = {id(other): other for other in others if other.rings[0].op == ring.op}.values()
            chain = max(chains, key=lambda other: len(other.rings), default=Chain([]))
            for other in chains:
                if other is not chain:
                    chain.rings += other.rings
                    chain_of.update((value, chain) for value, its in chain_of.items() if its is other)
            chain.rings.append(ring)
            chain_of.update((value, chain) for value in {value, *products})
        all_chains = [*{id(chain): chain for chain in chain_of.values()}.values()]
        for value, ring in first.items():
            begun = [chain for chain in all_chains if any(value in links[ring.value] for ring in chain.rings)]
            for chain in begun:
                chain.rings.append(replace(ring, matmuls=ring.added_before(chain.rings)))
            if not begun:
                all_chains.append(Chain([ring]))
        for chain in all_chains:
            self._count_rounds(chain)
        return sorted(all_chains, key=lambda chain: min(self._order[ring.value] for ring in chain.rings))

    def _count_rounds(self, chain: Chain) -> None:
        """Count the runs of each until the array is around: those of a loop that sends on what its round
        before has brought, not of one around it, over the layers of a model."""
        members = {ring.value for ring in chain.rings}
        loops = {
            ring.value.line.home
            for ring in chain.rings
            for value in (self._linked(ring) - ring.met) & members
            if value.line.home is ring.value.line.home and self._order[value] >= self._order[ring.value]
        }
        for ring in chain.rings:
            ring.rounds = self._rounds.get(ring.value.line.home, 1) if ring.value.line.home in loops else 1

    def _linked(self, ring: Ring) -> set[ProgramValue]:
        """The permutes whose data it sends on, or a sum with it, and those that it meets."""
        if ring.op == "all-gather":
            return ring.earlier
        added_to = {
            value
            for origin in ring.origins
            for source in self._flow.sources(origin)[:MAX_TERMS]
            for value in self._flow.back(source)
            if value in self._rings
        }
        return ring.earlier | ring.met | added_to

    def _record(self, chain: Chain) -> CollectiveMatmul | None:
        rings = sorted(chain.rings, key=lambda ring: self._order[ring.value])
        first = rings[0].record
        op = rings[0].op
        matmuls = {matmul for ring in rings for matmul in ring.matmuls}
        if op == "reduce-scatter":
            matmuls |= {origin for origin in chain.origins if self._lines.is_matmul(origin.line)}
        else:
            sent = {value for ring in rings if ring.origins for value in ring.sent}
            own = {matmul for value in sent for matmul in self._multiplied(value)}
            if not own:
                return None
            matmuls |= own
        is_interleaved = len(matmuls) > 1 or any(ring.rounds != 1 for ring in rings)
        if not chain.goes_around or not is_interleaved:
            return None
        hops = [ring.record for ring in rings]
        carried = [times(hop.count, hop.wire_bytes) for hop in hops]
        return CollectiveMatmul(
            op=op,
            axes=first.axes,
            directions=min(len(chain.directions), 2),
            group_size=chain.group_size,
            permutes=tuple(hop.name for hop in hops),
            matmuls=tuple(value.line.name for value in sorted(matmuls, key=lambda value: value.line.start)),
            bytes=chain.group_size * first.bytes * chain.pieces,
            wire_bytes=None if None in carried else sum(size or 0 for size in carried),
            source=hops[-1].source,
        )

    def _multiplied(self, value: ProgramValue) -> frozenset[ProgramValue]:
        """The matmuls that multiply a value, under any name, alone or beside others."""
        if value not in self._multiplied_by:
            names = self._flow.ahead(value, self._is_fetched)
            values = {user for user in names if self._multiplies(user, names)}
            values.update(*(self._multiplied_together(user, value) for user in names))
            self._multiplied_by[value] = frozenset(values)
        return self._multiplied_by[value]


@lru_cache(maxsize=256)
def ring_pairs(text: str) -> Lists:
    """Pairs in which every device sends once and receives once, around rings of one size; else none. In a
    collective matmul no device sends to itself."""
    try:
        pairs = parse_pairs(text)
    except NotationError:
        return ()
    target = {pair[0]: pair[1] for pair in pairs}
    if len(target) != len(pairs) or target.keys() != {*target.values()}:
        return ()
    sizes = {len(group) for group in linked(pairs)}
    return pairs if len(sizes) == 1 and 1 not in sizes else ()


def joined(chains: Iterable[Chain]) -> list[Chain]:
    """Chains in opposite directions that carry one array between them, as one."""
    kept: dict[int, Chain] = {}
    alone: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for number, chain in enumerate(chains):
        record = chain.rings[0].record
        waiting = alone[chain.rings[0].op, record.operand_shape, record.dtype]
        others = [key for key in waiting if _are_opposite(kept[key], chain)]
        begun_alike = [key for key in others if not kept[key].origins.isdisjoint(chain.origins)]
        of_a_line = [key for key in others if kept[key].rings[0].record.source == record.source]
        index = next(iter(begun_alike or of_a_line[-1:]), None)
        if index is None:
            kept[number] = chain
            waiting.append(number)
            del waiting[:-MAX_ALONE]
            continue
        waiting.remove(index)
        other = kept[index]
        whole = other.goes_around and chain.goes_around
        if None in (other.hops, chain.hops):
            whole = other.origins.isdisjoint(chain.origins)
        # Each goes all the way around with a half, or each goes half the way with the whole.
        kept[index] = Chain(other.rings + chain.rings, 2 if whole else 1)
    return list(kept.values())


def _are_opposite(one: Chain, other: Chain) -> bool:
    turned = {tuple(sorted((target, source) for source, target in pairs)) for pairs in one.directions}
    ways = {tuple(sorted(pairs)) for pairs in other.directions}
    return one.directions.isdisjoint(other.directions) and turned == ways


def _is_larger(one: ProgramValue, other: ProgramValue) -> bool:
    """Return whether the first array of one result is larger than that of another."""
    return prod(sizes(one.line)) > prod(sizes(other.line))


def sizes(line: Instruction) -> tuple[int, ...]:
    """The dimensions of the first array that an instruction makes; none where its shape is not to be read."""
    arrays = placed_arrays(line.shape)
    return arrays[0].sizes if arrays else ()


class ValueFlow:
    """The values of the computations `homes`, and of those whose loops run them: a fusion is one step."""

    def __init__(self, values: Values, homes: Iterable[Computation]) -> None:
        self.lines = values.lines
        self._values = values
        self._homes = {*homes}
        self._sources: dict[ProgramValue, list[ProgramValue]] = {}
        self._moves: dict[Instruction, bool] = {}

    def sources(self, value: ProgramValue) -> list[ProgramValue]:
        """The values that it is made of; of a loop's state what it starts with and what the body makes."""
        if value not in self._sources:
            line, _, path = value
            found: Iterable[ProgramValue]
            if path and line.opcode == "while":
                found = self._at(self.lines.body(line), self.lines.root, path)
            elif path and line.opcode == "parameter":
                loop = self._loop(line.home)
                before = None if loop is None else self.lines.operand(loop, 0)
                found = [] if before is None else [ProgramValue(before, None, path)]
                found += [] if loop is None else self._at(line.home, self.lines.root, path)
            elif path and line.opcode != "tuple":
                found = [ProgramValue(line)]
            elif path:
                made = self.lines.operand(line, path[0])
                found = [] if made is None else [ProgramValue(made)]
            else:
                index = line.element_index if line.opcode == "get-tuple-element" else None
                element = () if index is None else (index,)
                found = [ProgramValue(made, None, element) for made in self.lines.taken(line)]
            self._sources[value] = [*found]
        return self._sources[value]

    def users(self, value: ProgramValue) -> Iterator[ProgramValue]:
        """The values that are made of it, numbers left out; it is an element of a tuple or of a loop's state
        that it becomes, in the body and behind the loop."""
        line, _, path = value
        for user in self.lines.users(line):
            if user.opcode in ("constant", "parameter") or is_number(user.shape):
                continue
            if user.opcode == "get-tuple-element":
                if not path or path[0] == user.element_index:
                    yield ProgramValue(user)
            elif user.opcode == "tuple":
                numbers = (number for number, name in enumerate(user.operands) if name == line.name)
                yield from (ProgramValue(user, None, (number,)) for number in numbers)
            elif not path:
                yield ProgramValue(user)
            elif user.opcode == "while":
                yield from self._at(self.lines.body(user), self._state, path)
        loop = self._loop(line.home) if path and line.is_root else None
        if loop is not None:
            yield ProgramValue(loop, None, path)
            yield from self._at(line.home, self._state, path)

    def _loop(self, body: Computation) -> Instruction | None:
        """The loop that runs a body, where both are looked into."""
        loop = self._values.caller_of(body) if body in self._homes else None
        return loop if loop is not None and loop.opcode == "while" and loop.home in self._homes else None

    def _at(
        self, body: Computation | None, find: Callable[[Computation], Instruction | None], path: Path
    ) -> list[ProgramValue]:
        """An element of what is found in a body, if that is looked into."""
        line = find(body) if body is not None and body in self._homes else None
        return [] if line is None else [ProgramValue(line, None, path)]

    def _state(self, body: Computation) -> Instruction | None:
        return self.lines.parameter(body, 0)

    def is_move(self, value: ProgramValue) -> bool:
        """Return whether a value is nothing but its source, in another place or form."""
        line = value.line
        if value.path or line.opcode in _MOVES:
            return True
        if line.opcode != "fusion":
            return False
        if line not in self._moves:
            taken = [self.lines.operand(line, number) for number in range(len(line.operands))]
            arrays = [made for made in taken if made is None or not is_number(made.shape)]
            # With a number beside the array it may be a part of it, or, in a loop's first round, zeros.
            array = arrays[0] if len(arrays) == 1 else line
            is_whole = len(taken) == 1 or (array is not None and sizes(array) == sizes(line))
            self._moves[line] = len(arrays) == 1 and is_whole and not self.lines.is_matmul(line)
        return self._moves[line]

    def back(
        self, value: ProgramValue, passes: Callable[[ProgramValue], bool] | None = None
    ) -> dict[ProgramValue, bool]:
        """The values that one is made of, itself included, through those that `passes` lets through, by
        default moves. Each with whether it was let through; the others are where the way ends."""
        passes = passes or self.is_move
        return _followed({value: passes(value)}, passes, self.sources)

    def ahead(
        self, value: ProgramValue, passes: Callable[[ProgramValue], bool] | None = None
    ) -> dict[ProgramValue, bool]:
        """The values that take one, itself included and let through, in the same way."""
        return _followed({value: True}, passes or self.is_move, self.users)


def _followed(
    found: dict[ProgramValue, bool],
    passes: Callable[[ProgramValue], bool],
    following: Callable[[ProgramValue], Iterable[ProgramValue]],
) -> dict[ProgramValue, bool]:
    waiting = [value for value, passed in found.items() if passed]
    while waiting and len(found) < MAX_FOLLOWED:
        for value in islice(following(waiting.pop()), MAX_FOLLOWED):
            if value not in found:
                found[value] = passes(value)
                if found[value]:
                    waiting.append(value)
    return found
