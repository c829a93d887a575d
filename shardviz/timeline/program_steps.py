"""A scheduled module as steps: what occupies the device, what runs beside it, what is waited for.

The steps of a computation are in the order of its schedule. An asynchronous operation begins at one step and
is waited for at another, maybe in the next iteration of a loop: then the loop's state carries it, and it is
known by its path there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shardviz.timeline.durations import Duration
from shardviz.timeline.instruction_work import Path
from shardviz.timeline.link_times import Channel
from shardviz.timeline.program_timeline import Lane

Token = tuple[int, Path]
"""Something that is under way: the number of the step that began it, or of the loop that passed it on.

A parameter of the computation has the number -1.
"""
CARRIED = -1


@dataclass(slots=True)
class ProgramStep:
    """One step of a computation; `reads` are the numbers of earlier steps whose results it takes."""

    name: str
    reads: tuple[int, ...] = ()


@dataclass(slots=True)
class TimedStep(ProgramStep):
    """An operation that takes `duration` on a lane.

    `ticks` is its length. The device waits for one that is not `is_async`. `channels` are the links that it
    occupies; the device's own work has none. `collective` is the name of the one that it is, or has inside.
    """

    op: str = ""
    lane: Lane = field(default_factory=lambda: Lane("compute", "compute"))
    duration: Duration = field(default_factory=lambda: Duration(None, "unknown"))
    ticks: int = 0
    channels: tuple[Channel, ...] = ()
    is_async: bool = False
    source: str = ""
    collective: str = ""


@dataclass(slots=True)
class DoneStep(ProgramStep):
    """The device waits until what `token` names is done."""

    token: Token = (CARRIED, ())


@dataclass(slots=True)
class LoopStep(ProgramStep):
    """A loop whose body runs `count` times, None where the text does not tell.

    `enters` has what is under way when it begins, by the path in its state.
    """

    body: Block | None = None
    count: int | None = None
    enters: Mapping[Path, Token] = field(default_factory=dict)


@dataclass(slots=True)
class BranchesStep(ProgramStep):
    """A conditional, which runs one of its branches."""

    blocks: tuple[Block, ...] = ()


@dataclass(slots=True)
class CallStep(ProgramStep):
    """A computation that runs once at this place."""

    block: Block | None = None


@dataclass(slots=True)
class Block:
    """The steps of a computation; `leaves` has what is under way at its end, by the path in its result."""

    name: str
    steps: list[ProgramStep]
    leaves: Mapping[Path, Token] = field(default_factory=dict)
    channels: frozenset[Channel] = frozenset()
