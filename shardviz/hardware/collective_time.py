"""The time of a collective on links, in closed form, and the convention that it is counted by.

The formulas are those of "How to Scale Your Model" (https://jax-ml.github.io/scaling-book), with (N−1)/N of V
bytes where the book rounds it up to V. The axes of a torus carry at once: their bandwidths add up, two
directions of a ring, one of a line. Over other levels a collective goes one after the other, the outer ones
on as many parts as the inner ones have members; NCCL's rings pass through all of them at once."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add, attrgetter
from typing import NamedTuple

from shardviz.hardware.chips import DCN_LATENCY
from shardviz.hardware.gpu_times import EXCHANGE, NCCL, PERMUTE, nccl_time
from shardviz.hardware.links import LevelKind, LinkLevel
from shardviz.hardware.measured import MeasuredTimes, measured_times
from shardviz.units import human_bytes, rate, seconds as duration

GATHERS = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2}
"""How often (N−1)/N of the bytes pass: an all-reduce is a reduce-scatter and an all-gather."""
RAGGED = "ragged-all-to-all"
EXCHANGES = ("all-to-all", RAGGED)
MESSAGES = ("send", "recv")
SHIFTS = (PERMUTE, EXCHANGE)
BROADCASTS = ("collective-broadcast",)
TIMED = (*GATHERS, *EXCHANGES, *SHIFTS, *BROADCASTS, *MESSAGES)
Pairs = Collection[tuple[int, int]]
"""Sources and targets of messages."""
IN_FULL, NO_START = "no collective reaches its links' full bandwidth", "starting one takes time"
Route = tuple[int, float]
"""The most hops of a message along a level, and the most messages over one of its links."""


@dataclass(frozen=True)
class CollectiveTime:
    """Seconds of one collective.

    `seconds` is `start_seconds` and the longer of `latency_seconds` and `bandwidth_seconds`; all three in
    rounds, for a single message, a permute, a broadcast and for NCCL, whose start is in the latency.
    `convention` is a clause on how they are counted. `textbook_seconds` is what "How to Scale Your Model"
    counts: no start, and V/W on rings and networks, without (N−1)/N. `bound` is "latency" or the name of the
    level that takes longest, "" where nothing is sent. `is_measured`: measured times stand for the formula;
    `is_fitted`: it is fitted to NCCL's; `reached` is the part of the links' bandwidth that either reaches."""

    seconds: float
    latency_seconds: float
    bandwidth_seconds: float
    textbook_seconds: float
    bound: str
    convention: str
    is_measured: bool = False
    start_seconds: float = 0.0
    reached: float = 1.0
    is_fitted: bool = False

    @property
    def optimistic(self) -> str:
        """Why it may take longer; "" of what was measured."""
        if self.is_measured or self.reached < 1 or not self.bound:
            return ""
        return IN_FULL if self.start_seconds or self.is_fitted else f"{IN_FULL}, {NO_START}"

    @property
    def words(self) -> str:
        return "as measured" if self.is_measured else "by formula"


NOTHING = CollectiveTime(0.0, 0.0, 0.0, 0.0, "", "one device: nothing is sent")


def collective_time(
    op: str,
    size: int,
    levels: Sequence[LinkLevel],
    *,
    strategy: str = "",
    pairs: Pairs | None = None,
    in_rounds: bool = False,
    measured: Sequence[MeasuredTimes] = (),
) -> CollectiveTime:
    """The time of one collective, by HLO's name, over a group.

    `size` are the bytes of the larger of a device's operand and result (what a device sends of a permute),
    `levels` the group's dimensions, the major first. What was `measured` over such links stands for the
    formula; of a permute between neighbours. `strategy` is what the TPU compiler wrote on its choice
    (``collective_algorithm_config``): a 1D one is one ring through all members, and with ``colors:1`` it
    sends in one direction. `pairs` are those of a permute or a send, by the members' numbers; without them a
    permute goes to the next neighbour and a send to the farthest device. With `in_rounds` the hops' latency
    and the bytes add up, as where a device passes on only what has come to it; the book takes the longer of
    both."""
    op = op.removesuffix("-start")
    levels = [level for level in levels if level.size > 1]
    if not levels:
        return NOTHING
    is_next = True
    if op in SHIFTS or op in MESSAGES:
        moved = None if pairs is None else [(source, target) for source, target in pairs if source != target]
        members = math.prod(level.size for level in levels)
        shifts = {(target - source) % members for source, target in moved or ()}
        is_next = shifts <= {1} or shifts <= {members - 1}
        by_formula = _sent(op, size, levels, moved)
    else:
        by_formula = _in_stages(op, size, _stages(levels, strategy), in_rounds)
    if not by_formula.bound:
        return by_formula
    words = by_formula.convention
    start = max(level.spec.start for level in levels)
    is_short = start + by_formula.latency_seconds >= by_formula.bandwidth_seconds
    if start:
        words += f", and {duration(start)} to start"
    if any(level.kind == "network" and level.spec.latency == DCN_LATENCY for level in levels):
        words += "; the network's own latency is not published, so it takes longer"
    if op == RAGGED:
        words += ", as if all parts were equal"
    by_formula = replace(
        by_formula,
        seconds=start + by_formula.seconds,
        bound="latency" if start and is_short else by_formula.bound,
        convention=words,
        start_seconds=start,
    )
    if not is_next and any(level.is_torus for level in levels):
        return by_formula
    known = measured_times(op, levels, measured) if measured else ()
    return _as_measured(by_formula, size, levels, known) if known else by_formula


def _as_measured(
    formula: CollectiveTime, size: int, levels: Sequence[LinkLevel], known: tuple[MeasuredTimes, ...]
) -> CollectiveTime:
    seconds = sum(times.seconds(size, formula.seconds) for times in known) / len(known)
    first, over = known[0], ", ".join(dict.fromkeys(times.over for times in known))
    if near := first.near(size):
        words = f"measured over {over}: "
        words += " and ".join(f"{_bytes(point.size)} in {duration(point.seconds)}" for point in near)
        start = first.rising[0].seconds
    elif first.regimes:
        # Where a regime ends before its line meets the next one, the step between them counts as bytes.
        line, *others = [times.regime(size) for times in known if times.regimes]
        start = sum(regime.latency for regime in (line, *others)) / (1 + len(others))
        words = f"measured over {over}: {_bytes(size)} at {rate(line.bandwidth)}"
        words += f", and {duration(line.latency)} of latency" if line.latency else ""
    else:
        start = formula.start_seconds + formula.latency_seconds
        words = f"{formula.convention}, as other sizes were measured over {over}"
    latency = min(seconds, start)
    names = _names(level for level in levels if level.size > 1)
    bound = "latency" if latency >= seconds - latency else names
    # The part of the bandwidth that the formula would have to count with.
    bandwidth = seconds - latency
    reached = formula.reached * formula.bandwidth_seconds / bandwidth if bandwidth else 1.0
    return replace(
        formula,
        seconds=seconds,
        latency_seconds=latency,
        bandwidth_seconds=bandwidth,
        bound=bound,
        convention=words,
        is_measured=bool(near or first.regimes),
        start_seconds=0.0,
        reached=reached or 1.0,
    )


class _Stage:
    """Levels that a collective passes at once: the axes of a torus, or one level of another kind. With
    `one_ring` a single ring passes through all members. `shared` members of a chip use its links together.
    `carriers` are the levels with the directions that each carries in, `bandwidth` the bytes per second into
    one device, `hops` along each level those from the farthest device and the seconds of one."""

    def __init__(
        self, levels: Sequence[LinkLevel], one_ring: bool = False, directions: int = 2, shared: int = 1
    ) -> None:
        self.levels, self.shared = levels, shared
        self.members = math.prod(level.size for level in levels)
        if one_ring and len(levels) > 1:
            # A ring through a grid closes where a side is even or an axis closes itself.
            kind: LevelKind = "ring" if any(one.size % 2 == 0 or one.closes for one in levels) else "line"
            slowest = min(levels, key=lambda level: level.one_way)
            levels = [replace(slowest, kind=kind, size=self.members, name=_names(levels))]
        self.carriers = [(level, directions if level.closes else level.peers) for level in levels]
        self.bandwidth = sum(ways * level.one_way for level, ways in self.carriers) / shared
        self.hops = [(level.farthest(ways) * level.hops, level.spec.latency) for level, ways in self.carriers]

    @property
    def rates(self) -> str:
        """``2 × 45 GB/s``, ``4 × 45 GB/s``, ``2 × 45 GB/s + 45 GB/s``."""
        ways: Counter[float] = Counter()
        for level, directions in self.carriers:
            ways[level.one_way] += directions
        words = " + ".join(f"{_many(count)}{rate(one_way)}" for one_way, count in ways.items())
        return f"{words} that {self.shared} cores share" if self.shared > 1 else words

    @property
    def described(self) -> str:
        """``a ring of 4 along x, both directions``."""
        if len(self.carriers) > 1 and all(ways == 2 and level.hops == 1 for level, ways in self.carriers):
            rings = " and ".join(f"of {level.size} along {level.name}" for level, _ in self.carriers)
            return f"rings {rings} at once, both directions"
        words = " and ".join(_described(level, ways) for level, ways in self.carriers)
        return f"{words}, at once" if len(self.carriers) > 1 else words

    @property
    def floor(self) -> str:
        """The latency in words: ``2 hops of 1 µs``."""
        hops = self.hops
        if len({latency for _, latency in hops}) == 1:
            hops = [(sum(count for count, _ in hops), hops[0][1])]
        return " and ".join(
            f"{count} hop{'s' * (count > 1)} of {duration(latency)}" for count, latency in hops if latency
        )


def _described(level: LinkLevel, ways: int) -> str:
    many = level.size
    if not level.is_torus:
        words = {"switch": f"{many} through {level.name}", "network": f"{many} over {level.name}"}
        return words.get(level.kind, f"the {many} cores of a chip")
    shared = f", {level.hops} hops apart" if level.hops > 1 else ""
    shared += " on shared links" if level.messages > 1 else ""
    if level.closes:
        way = "both directions" if ways == 2 else "one direction"
        return f"a ring of {many} along {level.name}, {way}{shared}"
    return f"{'two' if many == 2 else f'a line of {many}'} along {level.name}{shared}"


def _stages(levels: Sequence[LinkLevel], strategy: str) -> list[_Stage]:
    """The stages of a collective, the innermost first: cores of a chip, a torus or a switch, a network."""
    torus = [level for level in levels if level.is_torus]
    one_ring = "1D" in strategy or strategy.startswith("StrategyRing")
    cores, switches, networks = (
        [_Stage([level]) for level in reversed(levels) if level.kind == kind]
        for kind in ("chip", "switch", "network")
    )
    shared = math.prod(stage.members for stage in cores)
    rings = [_Stage(torus, one_ring, 1 if "colors:1" in strategy else 2, shared)] if torus else []
    return [*cores, *rings, *switches, *networks]


class _Part(NamedTuple):
    """The bytes of one stage: seconds as they lie and as the book counts them, in words."""

    stage: _Stage
    seconds: float
    textbook: float
    words: str


def _in_stages(op: str, size: int, stages: list[_Stage], in_rounds: bool) -> CollectiveTime:
    times = GATHERS.get(op, 1)
    parts: list[_Part] = []
    inner = 1
    for stage in stages:
        if op in GATHERS:
            parts.append(_gathered(times, size / inner, stage))
            inner *= stage.members
        elif op in EXCHANGES:
            parts.append(_exchanged(size, stage))
        else:
            # All bytes pass every device once, in pieces; halves go in both directions of a ring.
            seconds = size / stage.bandwidth
            words = f"{stage.described}: {_bytes(size)} over {stage.rates}, pipelined"
            parts.append(_Part(stage, seconds, seconds, words))
    textbook = max(part.textbook for part in parts)
    slowest = max(parts, key=lambda part: part.seconds)
    if any(stage.levels[0].nccl for stage in stages):
        loads = [(part.stage.levels[0], part.seconds) for part in parts]
        return _by_nccl(op, loads, " while ".join(part.words for part in parts), textbook)
    latency = times * sum(sum(count * per_hop for count, per_hop in stage.hops) for stage in stages)
    bandwidth = sum(part.seconds for part in parts)
    adds = in_rounds or op in BROADCASTS
    words = "; then ".join(part.words for part in parts)
    if floors := [stage.floor for stage in stages if stage.floor]:
        floor = "twice " * (times == 2) + " and ".join(floors)
        words += f", and {floor}" if adds else f"; at least {floor}"
    seconds = latency + bandwidth if adds else max(latency, bandwidth)
    bound = "latency" if latency >= bandwidth else _names(slowest.stage.levels)
    return CollectiveTime(seconds, latency, bandwidth, max(textbook, latency), bound, words)


def _gathered(times: int, size: float, stage: _Stage) -> _Part:
    whole, members = times * size / stage.bandwidth, stage.members
    real = whole * (members - 1) / members
    rounded = stage.levels[0].kind == "network" or all(level.closes for level, _ in stage.carriers)
    twice = "twice " * (times == 2)
    words = f"{stage.described}: {twice}{members - 1}/{members} of {_bytes(size)} over {stage.rates}"
    slowest, along, shares = max(_on_one_axis(stage), default=(0.0, "", ""))
    if times * size * slowest > real * 1.001:
        # The other levels are done sooner.
        real = times * size * slowest
        words = f"{stage.described}: {twice}{shares} of {_bytes(size)} on links along {along}"
    return _Part(stage, real, whole if rounded else real, words)


def _on_one_axis(stage: _Stage) -> Iterator[tuple[float, str, str]]:
    """For each axis of the torus the seconds of a byte that its links need, which several levels may share,
    its name, and the parts of the bytes in words. A level of n joins n blocks, and into each come (n-1)/n of
    the bytes over the links of all N/n members."""
    if not stage.levels[0].is_torus or len(stage.carriers) < 2:
        return
    for word in dict.fromkeys(word for level, _ in stage.carriers for word in level.words):
        own = [(level, ways) for level, ways in stage.carriers if word in level.words]
        needs = [(level.size - 1) / stage.members / (ways * level.one_way) for level, ways in own]
        shares = [
            f"{level.size - 1}/{stage.members} over {_many(ways)}{rate(level.one_way)}" for level, ways in own
        ]
        yield sum(needs) * stage.shared, word, " and ".join(shares)


def _exchanged(held: int, stage: _Stage) -> _Part:
    """An all-to-all: every device keeps 1/N of the `held` bytes and sends each other one as much. Along a
    torus each byte makes V/(4·W) hops on a ring, V/(4·w) on a line, V being the bytes that all members
    hold."""
    if stage.levels[0].is_torus:
        there = held * stage.shared
        crossings = [
            (level.size * level.size // 4 / level.size / way, level) for level, way in stage.carriers
        ]
        often, busiest = max(crossings, key=lambda crossing: crossing[0] / crossing[1].one_way)
        real = often * there / busiest.one_way
        over = f"over each link of {rate(busiest.one_way)}"
        words = f"{stage.described}: {often:.3g} × {_bytes(there)} {over}"
    else:
        members = stage.members
        real = held * (members - 1) / members / stage.bandwidth
        words = f"{stage.described}: {members - 1}/{members} of {_bytes(held)} over {stage.rates}"
    return _Part(stage, real, real, words)


def _sent(op: str, size: int, levels: Sequence[LinkLevel], pairs: Pairs | None) -> CollectiveTime:
    """A message of each device to another, or a single one, which takes all axes of a torus at once."""
    is_single = op in MESSAGES or (pairs is not None and len(pairs) == 1)
    # On a line the last one goes all the way back to the first.
    routes: Iterable[Route] = (
        (level.farthest(2) if is_single or not level.closes else 1, 1.0) for level in levels
    )
    if pairs is not None:
        routes = _routed(pairs, levels)
    moving = [(level, *route) for level, route in zip(levels, routes, strict=True) if route[0]]
    if not moving:
        return NOTHING
    latency = sum(hops * level.hops * level.spec.latency for level, hops, _ in moving)
    hops = sum(hops * level.hops for level, hops, _ in moving)
    loads = [(often * size / level.one_way, level) for level, _, often in moving]
    most, level = max(loads, key=lambda load: load[0])
    over = f"{_bytes(size)} over {rate(level.one_way)}"
    if is_single and len(moving) > 1 and all(level.is_torus for level, *_ in moving):
        bandwidth = sum(level.one_way for level, *_ in moving)
        most, over = size / bandwidth, f"{_bytes(size)} over {len(moving)} links at once, {rate(bandwidth)}"
    elif most > 1.001 * size / level.one_way:
        over = f"{most * level.one_way / size:.3g} × {over}, as messages share links"
    if level.nccl:
        both_ways = pairs is not None and {(target, source) for source, target in pairs} == {*pairs}
        is_pair = math.prod(level.size for level in levels) == 2
        swaps = op == EXCHANGE or is_single or both_ways or is_pair
        # Measured swaps are in noise above a ring at a few sizes.
        ways = (op, EXCHANGE) if swaps else (op,)
        carried = [(level, seconds) for seconds, level in loads]
        time = min((_by_nccl(way, carried, over, most) for way in ways), key=attrgetter("seconds"))
        if pairs is None and not swaps and EXCHANGE in NCCL[level.nccl]:
            time = replace(time, convention=f"{time.convention}; pairs that swap take less")
        return time
    where = _names(level for level, *_ in moving)
    told = f"{hops} hop{'s' * (hops > 1)} along {where}: {duration(latency)}, then {over}"
    bound = "latency" if latency >= most else where if is_single else level.name
    return CollectiveTime(latency + most, latency, most, latency + most, bound, told)


def _routed(pairs: Pairs, levels: Sequence[LinkLevel]) -> Iterator[Route]:
    """The routes along each level of messages that take the outer levels first, each the shortest way; half
    of one that goes to the other side of a ring goes either way."""
    inner = math.prod(level.size for level in levels)
    for level in levels:
        outer, inner, size = inner, inner // level.size, level.size
        if not level.is_torus:
            yield int(any(source // inner % size != target // inner % size for source, target in pairs)), 1.0
            continue
        # By line along the level and direction, where messages enter and leave its links.
        loads: dict[tuple[int, int, bool], defaultdict[int, float]] = {}
        most = 0
        for source, target in pairs:
            begin, end = source // inner % size, target // inner % size
            if begin == end:
                continue
            ways = {end > begin: abs(end - begin)}
            if level.closes:
                ways[end < begin] = size - abs(end - begin)
            hops = min(ways.values())
            most = max(most, hops)
            shortest = [up for up, count in ways.items() if count == hops]
            for up in shortest:
                load = loads.setdefault((target // outer, source % inner, up), defaultdict(float))
                first = begin if up else end
                load[first] += 1 / len(shortest)
                load[first + hops] -= 1 / len(shortest)
        # Beyond the end of a ring it goes on at its begin.
        sums = ([*accumulate(load[at] for at in range(2 * size))] for load in loads.values())
        yield most, max((max(map(add, load, load[size:])) for load in sums), default=0.0)


def _by_nccl(
    op: str, loads: Sequence[tuple[LinkLevel, float]], words: str, textbook: float
) -> CollectiveTime:
    inside = [load for load in loads if load[0].kind != "network"]
    outside = [load for load in loads if load[0].kind == "network"]
    slowest, longest = max(loads, key=lambda load: load[1])
    # A ring passes from node to node once less than there are nodes; other messages once.
    crossed = {level: GATHERS[op] * (level.size - 1) if op in GATHERS else 1 for level, _ in outside}
    latency, bandwidth = nccl_time(
        slowest.nccl,
        op,
        math.prod(level.size for level, _ in inside),
        max((seconds for _, seconds in inside), default=0.0),
        max((seconds for _, seconds in outside), default=0.0),
        sum(count * level.spec.latency for level, count in crossed.items()),
    )
    reached = longest / bandwidth if bandwidth else 1.0
    words = f"{words} at {reached:.0%} of that, and {duration(latency)} to start"
    bound = "latency" if latency >= bandwidth else slowest.name
    seconds = latency + bandwidth
    return CollectiveTime(
        seconds, latency, bandwidth, textbook, bound, words, reached=reached, is_fitted=True
    )


def _names(levels: Iterable[LinkLevel]) -> str:
    return " and ".join(dict.fromkeys(word for level in levels for word in level.words))


def _many(count: int) -> str:
    return f"{count} × " if count > 1 else ""


def _bytes(count: float) -> str:
    return human_bytes(round(count))
