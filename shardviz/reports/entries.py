"""Collectives with what they cost in all their runs and where in the user's program they stand: alike ones
together, their sums, and those of them that somebody asks for, in an order."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from shardviz.errors import QuestionError, did_you_mean, plural, quote
from shardviz.hlo import Collective, HloModule, ShardyModule
from shardviz.hlo.arguments import pieces_of, shared_steps
from shardviz.hlo.collective import OPS
from shardviz.hlo.named_scopes import program_place

if TYPE_CHECKING:
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline

Phase = Literal["forward", "recomputed", "backward", "optimizer"]
By = Literal["op", "axes", "link", "phase", "source"]
Sort = Literal["cost", "order", "bytes"]
EVERY = "*"
"""In a name, in place of a number in which its collectives differ."""
_NUMBER = re.compile(r"\d+")
_Amount = TypeVar("_Amount", int, float)


@dataclass(frozen=True)
class CollectiveEntry:
    """A collective of a program.

    `scopes` are the user's names around it, outermost first. `phase` is "forward" for all of a program that
    takes no gradients; outside of what is differentiated it is "optimizer" for what is certainly made of
    gradients, and None for the rest, such as metrics. `argument` is the path of the one argument whose
    elements it moves, else ""; `gradient_of` has the paths of those whose gradients it certainly sums. `link`
    names the slowest links that it uses ("ICI", "DCN", "NVLink", "network"). `seconds` are those of one run
    and `exposed` those for which the device waits, None where nobody can tell; `optimistic` says why it may
    take longer. The figures of `all_` runs are None in a loop of unknown length, too."""

    collective: Collective
    phase: Phase | None = "forward"
    scopes: tuple[str, ...] = ()
    argument: str = ""
    gradient_of: tuple[str, ...] = ()
    link: str = ""
    seconds: float | None = None
    exposed: float | None = None
    optimistic: str = ""

    @property
    def runs(self) -> int | None:
        """The number of its runs; None in a loop of unknown length."""
        return self.collective.count

    @property
    def place(self) -> str:
        """The argument that it moves, or whose gradient it sums, else the scopes that it stands in; of
        several gradients ``4 of params['layers']``, of few fields ``state.model: .up, .down``."""
        if self.argument or not self.gradient_of:
            return self.argument or "/".join(self.scopes)
        pieces = [pieces_of(path) for path in self.gradient_of]
        depth = shared_steps(pieces)
        tree, fields = "".join(pieces[0][:depth]), {"".join(path[depth : depth + 1]) for path in pieces}
        if 1 < len(pieces) == len(fields) <= 3 and tree:
            told = f"{tree}: {', '.join(sorted(fields))}"
        else:
            told = tree if len(pieces) == 1 else f"{len(pieces)} of {tree or 'the arguments'}"
        rest = self.collective.arrays - len(pieces)
        return f"{told}, {plural(rest, 'more array')}" if rest > 0 else told

    def _in_all(self, amount: _Amount | None) -> _Amount | None:
        return None if amount is None or self.runs is None else amount * self.runs

    @property
    def all_bytes(self) -> int | None:
        return self._in_all(self.collective.bytes)

    @property
    def all_wire_bytes(self) -> int | None:
        return self._in_all(self.collective.wire_bytes)

    @property
    def all_seconds(self) -> float | None:
        return self._in_all(self.seconds)

    @property
    def all_exposed(self) -> float | None:
        return self._in_all(self.exposed)


def entries_of(
    module: HloModule | ShardyModule, timeline: ProgramTimeline | None = None
) -> tuple[CollectiveEntry, ...]:
    """The collectives of a module in program order, without local slices; timed where there is a timeline."""
    moving = [collective for collective in module.collectives if collective.op != "slice"]
    places = [program_place(collective.op_name) for collective in moving]
    takes_gradients = any(place.phase == "backward" for place in places)
    compiled = None if isinstance(module, ShardyModule) else module
    names = () if compiled is None else compiled.argument_names
    gradients = {} if compiled is None else compiled.gradients
    uses = frozenset() if compiled is None else compiled.gradient_uses
    timed = {} if timeline is None else {op.collective: op for op in timeline.ops}
    entries = []
    for collective, place in zip(moving, places, strict=True):
        phase: Phase | None = place.phase
        if takes_gradients and not place.is_differentiated:
            phase = "optimizer" if collective.name in uses else None
        # The one argument whose elements it moves.
        origin = collective.origin
        moved = () if origin is None or origin.computed or len(origin.arguments) != 1 else origin.arguments
        op, link = timed.get(collective.name), ""
        if op is not None and timeline is not None and timeline.lanes[op.lane].kind in ("network", "axis"):
            # The slowest kind of links that it uses.
            lane = timeline.lanes[op.lane]
            link = lane.name if lane.kind == "network" else timeline.links
        entries.append(
            CollectiveEntry(
                collective,
                phase,
                place.scopes,
                "".join(names[number] for number in moved if number < len(names)),
                tuple(names[number] for number in gradients.get(collective.name, ())),
                link=link,
                seconds=None if op is None else op.seconds,
                exposed=None if op is None or op.seconds is None else op.exposed,
                optimistic="" if op is None else op.optimistic,
            )
        )
    return tuple(entries)


@dataclass(frozen=True)
class AlikeEntries:
    """Entries that differ in numbers of their scopes and arguments alone, in program order; `name` is their
    `place`, with `EVERY` for such a number. Figures are of all runs, None where one is not known."""

    entries: tuple[CollectiveEntry, ...]
    name: str

    @property
    def first(self) -> CollectiveEntry:
        return self.entries[0]

    @property
    def runs(self) -> int | None:
        return _sum(entry.runs for entry in self.entries)

    @property
    def bytes(self) -> int | None:
        return _sum(entry.all_bytes for entry in self.entries)

    @property
    def wire_bytes(self) -> int | None:
        return _sum(entry.all_wire_bytes for entry in self.entries)

    @property
    def seconds(self) -> float | None:
        return _sum((entry.all_seconds for entry in self.entries), math.fsum)

    @property
    def exposed(self) -> float | None:
        return _sum((entry.all_exposed for entry in self.entries), math.fsum)


def _sum(amounts: Iterable[_Amount | None], add: Callable[[list[_Amount]], _Amount] = sum) -> _Amount | None:
    every = list(amounts)
    known = [amount for amount in every if amount is not None]
    return add(known) if len(known) == len(every) else None


def alike(entries: Iterable[CollectiveEntry], by_schedule: bool = True) -> tuple[AlikeEntries, ...]:
    """The entries in groups, in the order of each group's first; without `by_schedule`, asynchronous ones and
    others are together, and so are those of several source lines."""
    groups: defaultdict[tuple[object, ...], list[CollectiveEntry]] = defaultdict(list)
    for entry in entries:
        one = entry.collective
        key = (
            (one.op, one.axes, one.operand_shape, one.result_shape, one.dtype, one.arrays, one.bytes),
            (one.source, one.is_async) if by_schedule else (),
            (one.between_slices, one.is_host_transfer, one.count is None),
            () if one.axes else one.groups,  # without axes these tell who takes part
            (entry.phase, numberless("/".join(entry.scopes)), numberless(entry.argument), entry.link),
            numberless(" ".join(entry.gradient_of)),
        )
        groups[key].append(entry)
    return tuple(AlikeEntries((*own,), common_name(each.place for each in own)) for own in groups.values())


def numberless(name: str) -> str:
    """A name with `EVERY` in place of its numbers."""
    return _NUMBER.sub(EVERY, name)


def common_name(alike_names: Iterable[str]) -> str:
    """Names that are the same without their numbers as one, with `EVERY` for those that differ."""
    names = list(dict.fromkeys(alike_names))
    numbers = [_NUMBER.findall(name) for name in names]
    same = iter([len(set(column)) == 1 for column in zip(*numbers, strict=False)])
    return _NUMBER.sub(lambda number: number[0] if next(same, False) else EVERY, names[0])


@dataclass(frozen=True)
class CostSum:
    """The entries of one `name` ("" where it is not known), in all their runs on one device, without the
    `unknown` ones in loops of unknown length; seconds are None where no entry has an estimate."""

    name: str
    count: int
    runs: int
    bytes: int
    wire_bytes: int
    seconds: float | None
    exposed: float | None
    unknown: int = 0


_KEYS: dict[By, Callable[[CollectiveEntry], str]] = {
    "op": lambda entry: entry.collective.op,
    "axes": lambda entry: ", ".join(entry.collective.axes),
    "link": lambda entry: entry.link,
    "phase": lambda entry: entry.phase or "",
    "source": lambda entry: entry.collective.source,
}


def sums(entries: Iterable[CollectiveEntry], by: By) -> tuple[CostSum, ...]:
    """A sum for each name, the most expensive first: by exposed seconds, then by bytes sent."""
    named: defaultdict[str, list[CollectiveEntry]] = defaultdict(list)
    for entry in entries:
        named[_KEYS[by](entry)].append(entry)
    made = [cost_sum(those, name) for name, those in named.items()]
    return tuple(sorted(made, key=lambda cost: (-(cost.exposed or 0.0), -cost.wire_bytes)))


def cost_sum(entries: Iterable[CollectiveEntry], name: str = "") -> CostSum:
    every = list(entries)
    known = [entry for entry in every if entry.runs is not None]
    timed = [entry for entry in known if entry.seconds is not None]
    return CostSum(
        name,
        len(every),
        sum(entry.runs or 0 for entry in known),
        sum(entry.all_bytes or 0 for entry in known),
        sum(entry.all_wire_bytes or 0 for entry in known),
        math.fsum(entry.all_seconds or 0.0 for entry in timed) if timed else None,
        math.fsum(entry.all_exposed or 0.0 for entry in timed) if timed else None,
        len(every) - len(known),
    )


_Group = TypeVar("_Group", bound=AlikeEntries)


@dataclass(frozen=True)
class Selection:
    """The part of a program that is shown, sorted by "cost" (exposed seconds, or bytes sent), "order" (the
    program's) or "bytes" (sent in all runs), of whose groups the first `top` are shown. `axes` are mesh axes
    of which a collective must have one, and `source` is a file, ``file:line`` or a part of a scope, or of the
    path of an argument that is moved or whose gradient is summed."""

    sort: Sort = "cost"
    top: int | None = None
    ops: tuple[str, ...] = ()
    axes: tuple[str, ...] = ()
    least_bytes: float = 0
    source: str = ""

    def chosen(self, entries: Iterable[CollectiveEntry]) -> tuple[CollectiveEntry, ...]:
        """The entries that pass, in program order, those of unknown length with any number of bytes."""
        return tuple(entry for entry in entries if self._has(entry))

    def groups(self, entries: Iterable[CollectiveEntry]) -> tuple[AlikeEntries, ...]:
        """All that pass the filters, alike ones together, in the order that is asked for."""
        return self.in_order(alike(self.chosen(entries)))

    def in_order(self, groups: tuple[_Group, ...]) -> tuple[_Group, ...]:
        """Groups in the order asked for; of equal cost as they come, those of unknown cost first."""
        if self.sort == "order":
            return groups
        by_time = self.sort == "cost" and any(group.exposed is not None for group in groups)

        def cost(group: AlikeEntries) -> list[float]:
            amounts = (group.exposed if by_time else 0.0, group.wire_bytes)
            return [-math.inf if amount is None else -amount for amount in amounts]

        return tuple(sorted(groups, key=cost))

    def shown(self, entries: Iterable[CollectiveEntry]) -> tuple[CollectiveEntry, ...]:
        """The entries of the first `top` groups, in program order."""
        chosen = self.chosen(entries)
        first = {id(entry) for group in self.groups(chosen)[: self.top] for entry in group.entries}
        return tuple(entry for entry in chosen if id(entry) in first)

    def check(self, entries: Iterable[CollectiveEntry], mesh: Mesh | None = None) -> None:
        """Raise `QuestionError` for an operation or an axis that the program does not have."""
        moving = [entry.collective for entry in entries]
        ops = dict.fromkeys(collective.op for collective in moving)
        axes = dict.fromkeys(() if mesh is None else mesh.axis_names)
        axes |= dict.fromkeys(axis.partition(":")[0] for collective in moving for axis in collective.axes)
        # A collective that this program happens to lack is a fair question.
        for names, known, fair, article, kind in (
            (self.ops, ops, OPS, "an", "operation"),
            (self.axes, axes, (), "a", "mesh axis"),
        ):
            for name in names:
                if name not in known and name not in fair:
                    there = f"this program has {', '.join(known) or f'no {kind}'}"
                    hint = did_you_mean(name, known) + there
                    raise QuestionError(f"{quote(name)} is not {article} {kind} of this program", hint)

    def _has(self, entry: CollectiveEntry) -> bool:
        one = entry.collective
        if self.ops and one.op not in self.ops:
            return False
        if self.axes and not {axis.partition(":")[0] for axis in one.axes} & {*self.axes}:
            return False
        if entry.all_bytes is not None and entry.all_bytes < self.least_bytes:
            return False
        start = one.source.find(self.source)
        if self.source and start >= 0 and (start == 0 or one.source[start - 1] == "/"):
            return one.source[start + len(self.source) :][:1] in ("", "/", ":")
        places = "/".join(entry.scopes), entry.argument, *entry.gradient_of
        return any(self.source in location for location in places)


BY_COST = Selection()
"""Everything, the most expensive first."""
