"""The seconds of a step from those of its work and its communication, by what is taken to overlap.

Communication that gathers parameters or reduces their gradients can run beside the work of other layers; that
of activations stands between two statements of a layer. By default the first is hidden behind the work as far
as that lasts, and the second is waited for. ``none`` hides nothing, so that a step is the sum of its plan's
steps; ``all`` hides everything, as "How to Scale Your Model" counts: the longer of work and communication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from shardviz.planner.search.program_tables import Multipliers, ProgramSharding
from shardviz.planner.states.moves import Axes

Overlap = Literal["none", "parameters", "all"]
OVERLAPS: tuple[Overlap, ...] = get_args(Overlap)
LITTLE = 1e-3
"""The least weight of a side of the longer of two, so that of equal sums the one with less of it is
chosen."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step of one device.

    `work` is local; `communication` by the axes of its groups, all of it; `exposed` the part of it that is
    not hidden; `bubble` what a pipeline waits. `seconds` are those of the step.
    """

    work: float
    communication: tuple[tuple[Axes, float], ...]
    exposed: float
    bubble: float
    seconds: float

    @property
    def communication_seconds(self) -> float:
        return sum(seconds for _, seconds in self.communication)


def step_time(found: ProgramSharding, overlap: Overlap, layers: float, bubble: float = 0.0) -> StepTime:
    """The time of so many layers on each device; `bubble` is what a pipeline waits, as a part of the rest."""
    work, hidden, waited = overlapping(found, overlap, layers)
    busy = max(work, hidden) + waited
    by_axes = {
        axes: (found.exposed.get(axes, 0.0) + found.hidden.get(axes, 0.0)) * layers
        for axes in (*found.exposed, *found.hidden)
    }
    return StepTime(work, tuple(by_axes.items()), busy - work, busy * bubble, busy * (1 + bubble))


def overlapping(found: ProgramSharding, overlap: Overlap, layers: float) -> tuple[float, float, float]:
    """Seconds of the work of so many layers, of the communication that it can hide, and of all other."""
    exposed, hidden = (sum(each.values()) * layers for each in (found.exposed, found.hidden))
    if overlap == "none":
        return found.work * layers, 0.0, exposed + hidden
    if overlap == "all":
        return found.work * layers, exposed + hidden, 0.0
    return found.work * layers, hidden, exposed


def multipliers(overlap: Overlap, share: float, memory: float) -> Multipliers:
    """Weights whose least sum is a bound on the time of a step: of the longer of work and hidden
    communication they take the part `share` of the second, and of the first the rest."""
    if overlap == "none":
        return Multipliers(memory=memory)
    hidden = max(share, LITTLE)
    return Multipliers(max(1 - share, LITTLE), hidden if overlap == "all" else 1.0, hidden, memory)
