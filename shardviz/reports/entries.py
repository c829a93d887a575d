"""Collectives with what they cost in all their runs, and where in the user's program they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardviz.errors import plural
from shardviz.hlo import ShardyModule
from shardviz.hlo.arguments import pieces_of, shared_steps
from shardviz.hlo.named_scopes import program_place

if TYPE_CHECKING:
    from shardviz.hlo import Collective, HloModule
    from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp

Phase = Literal["forward", "recomputed", "backward", "optimizer"]


@dataclass(frozen=True)
class CollectiveEntry:
    """A collective of a program.

    `scopes` are the user's names around it, outermost first (`named_scopes`). `phase` is "forward" for all of
    a program that takes no gradients; outside of what is differentiated it is "optimizer" for what is
    certainly made of gradients, and None for the rest, such as metrics. `argument` is the path of the
    argument whose elements it moves, "" where they are computed, or several arguments'; `gradient_of` has the
    paths of those whose gradients it sums, () where that is not certain. `link` names the slowest links that
    it uses ("ICI", "DCN", "NVLink", "network"), "" where that is not known. `seconds` and `exposed` are those
    of one run: all of it, and those for which the device waits; None where nobody can tell.
    """

    collective: Collective
    phase: Phase | None = "forward"
    scopes: tuple[str, ...] = ()
    argument: str = ""
    gradient_of: tuple[str, ...] = ()
    link: str = ""
    seconds: float | None = None
    exposed: float | None = None

    @property
    def runs(self) -> int | None:
        """The number of its runs; None in a loop of unknown length."""
        return self.collective.count

    @property
    def place(self) -> str:
        """The argument that it moves, or whose gradient it sums, else the scopes that it stands in; of
        several gradients ``4 of params['layers']``."""
        if self.argument or not self.gradient_of:
            return self.argument or "/".join(self.scopes)
        pieces = [pieces_of(each) for each in self.gradient_of]
        tree = "".join(pieces[0][: shared_steps(pieces)])
        told = tree if len(pieces) == 1 else f"{len(pieces)} of {tree or 'the arguments'}"
        rest = self.collective.arrays - len(pieces)
        return f"{told}, {plural(rest, 'more array')}" if rest > 0 else told

    @property
    def all_bytes(self) -> int | None:
        """`Collective.bytes` of all runs."""
        return None if self.runs is None else self.runs * self.collective.bytes

    @property
    def all_wire_bytes(self) -> int | None:
        """Bytes that a device sends at least, in all runs."""
        return None if self.runs is None else self.runs * self.collective.wire_bytes

    @property
    def all_seconds(self) -> float | None:
        """Seconds of all runs, hidden or not."""
        return None if self.seconds is None or self.runs is None else self.seconds * self.runs

    @property
    def all_exposed(self) -> float | None:
        """Seconds of all runs for which the device waits."""
        return None if self.exposed is None or self.runs is None else self.exposed * self.runs


def entries_of(
    module: HloModule | ShardyModule, timeline: ProgramTimeline | None = None
) -> tuple[CollectiveEntry, ...]:
    """The collectives of a module in program order, without local slices; timed where there is a timeline.

    The module's `argument_names` and the collectives' origins are there where it was read with origins.
    """
    moving = [each for each in module.collectives if each.op != "slice"]
    places = [program_place(each.op_name) for each in moving]
    takes_gradients = any(place.phase == "backward" for place in places)
    names, gradients, uses = (
        ((), {}, frozenset())
        if isinstance(module, ShardyModule)
        else (module.argument_names, module.gradients, module.gradient_uses)
    )
    timed = {} if timeline is None else {op.collective: op for op in timeline.ops}
    found = []
    for collective, place in zip(moving, places, strict=True):
        phase: Phase | None = place.phase
        if takes_gradients and not place.is_differentiated:
            phase = "optimizer" if collective.name in uses else None
        op = timed.get(collective.name)
        found.append(
            CollectiveEntry(
                collective,
                phase,
                place.scopes,
                _argument(collective, names),
                tuple(names[number] for number in gradients.get(collective.name, ())),
                link="" if op is None or timeline is None else _link(op, timeline),
                seconds=None if op is None else op.seconds,
                exposed=None if op is None or op.seconds is None else op.exposed,
            )
        )
    return tuple(found)


def _argument(collective: Collective, names: Sequence[str]) -> str:
    """The one argument whose elements a collective moves, by its path."""
    origin = collective.origin
    if origin is None or origin.computed or len(origin.arguments) != 1:
        return ""
    (number,) = origin.arguments
    return names[number] if number < len(names) else ""


def _link(op: TimedOp, timeline: ProgramTimeline) -> str:
    """The slowest kind of links that an operation uses."""
    lane = timeline.lanes[op.lane]
    return lane.name if lane.kind == "network" else timeline.links if lane.kind == "axis" else ""
